"""The sweeper: stacks jobs that differ only in their seed, and drops what is stored.

It is Hydra's basic sweeper up to the list of jobs, so every launcher works with it unchanged. Only
the jobs of this process skip Hydra's launcher, which would compose each configuration again. A job
gets `seed='0-9,20-24'` with at most `seeds_per_job` seeds. By default there are only as many as
keep all workers of a launcher busy.
"""

import logging
import shlex
import sys
import time
from collections.abc import Sequence
from concurrent.futures.process import BrokenProcessPool
from contextlib import redirect_stderr
from dataclasses import dataclass
from io import StringIO
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hydra.core.override_parser.overrides_parser import OverridesParser
from hydra.core.plugins import Plugins
from hydra.core.utils import JobReturn, JobStatus
from hydra.types import HydraContext, TaskFunction
from omegaconf import DictConfig, OmegaConf

from ddobench.cli.argv import (
    DEFAULT_RESULTS,
    LISTED,
    Request,
    configured_seeds,
    read_seeds,
    read_settings,
    to_hydra,
)
from ddobench.cli.effects import Effects
from ddobench.cli.plan import Product, describe_costs, describe_point, multiply
from ddobench.cli.slurm_queue import limit_signal, watching_queue
from ddobench.cli.workers import (
    check_installed,
    count_cores,
    count_workers,
    share_seeds,
    sharing_the_machine,
    split_jobs,
    use_private_folder,
)
from ddobench.errors import UsageError
from ddobench.progress import following, reporting
from ddobench.seeds import Seeds

if TYPE_CHECKING:
    from ddobench.runner.batches import Outcome
    from ddobench.runner.spec import Specification
    from ddobench.store.runs import Place, Store

Plugins.instance()  # imports Hydra's own plug-ins anew, so it comes before we derive from one

from hydra._internal.core_plugins.basic_launcher import BasicLauncher  # noqa: E402
from hydra._internal.core_plugins.basic_sweeper import BasicSweeper  # noqa: E402

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Point:
    """One point of a sweep: everything but the seed."""

    overrides: list[str]
    spec: "Specification"
    seeds: Seeds
    missing: Seeds


class SeedSweeper(BasicSweeper):
    """Launches one job per point and `seeds_per_job` missing seeds.

    With `cases`, a list of further `params`, a sweep is the union of one product for each of them.
    Typed methods leave out the cases of other methods, unless no case names one of them.
    """

    request: Request

    def __init__(
        self,
        max_batch_size: int | None,
        params: dict[str, str] | None = None,
        cases: Sequence[dict[str, str]] | None = None,
    ) -> None:
        super().__init__(max_batch_size, params)
        self.cases = cases or [{}]

    def setup(
        self, *, hydra_context: HydraContext, task_function: TaskFunction, config: DictConfig
    ) -> None:
        """Take the request from the job, and check that the launcher is installed."""
        from ddobench.cli.job import Job

        assert isinstance(task_function, Job)
        self.request = task_function.request
        launcher = _read_launcher(config)
        check_installed(str(config.hydra.runtime.choices.get("hydra/launcher")), launcher)
        super().setup(hydra_context=hydra_context, task_function=task_function, config=config)

    def sweep(self, arguments: list[str]) -> list[Sequence[JobReturn]]:
        """Launch what is missing, wait for it, and print how it went."""
        from ddobench.store.runs import Store

        assert self.config is not None
        settings = read_settings(self.config)
        if settings.describe:
            raise UsageError("describe=true is for one task; leave out -m")
        store = Store(settings.results)
        products = [self._product(*pair) for pair in reduce_cases(arguments, self.cases)]
        for sentence in dict.fromkeys(s for product in products for s in product.left_out):
            print(sentence)
        number = sum(product.number for product in products)
        if settings.plan and number > LISTED:
            print(f"{number} points, each with its seeds: a plan lists {LISTED} at most; "
                  "plan=true runs nothing")  # fmt: skip
            return []
        settings.check_number(number)  # composing them would take hours
        points = self._points(products, store)
        total = sum(len(point.seeds) for point in points)
        missing = sum(len(point.missing) for point in points)
        if settings.plan:
            _print_plan(points, total, missing, store)
            return []
        if not missing:
            print(f"nothing to run: all {total} runs of this sweep are stored in {store.folder}")
            return []
        settings.check_number(missing)
        if missing < total:
            print(f"{total - missing} of {total} runs are stored already; {missing} to go")
        began = time.perf_counter()
        returns = self._launch(points, store, total, missing)
        outcome = _sum_up(returns)
        print(_summary(outcome, missing, time.perf_counter() - began, store))
        if outcome.failed:
            raise SystemExit(1)
        return [returns]

    def _product(self, arguments: list[str], case: dict[str, str]) -> Product:
        """Return the combinations of one case: its own settings, replaced by what is typed."""
        assert self.hydra_context is not None
        settings = {**(self.params or {}), **case}
        swept = settings.pop("seed", None)
        seeds = self.request.seeds
        if seeds is None and swept is not None:
            seeds = read_seeds(str(swept))
        words = [to_hydra(f"{key}={value}") for key, value in settings.items()]
        parser = OverridesParser.create(config_loader=self.hydra_context.config_loader)
        overrides = parser.parse_overrides([*words, *arguments])
        return multiply([o for o in overrides if o.key_or_group != "seed"], seeds)

    def _points(self, products: Sequence[Product], store: "Store") -> list[Point]:
        """Compose and check every point before anything is launched; equal ones count once."""
        from ddobench.cli.job import find_missing
        from ddobench.runner.spec import specify

        assert self.config is not None
        assert self.hydra_context is not None
        loader = self.hydra_context.config_loader
        points: dict[tuple[Place, Seeds], Point] = {}
        effects = Effects()
        typed = {word.partition("=")[0].lstrip("+") for word in self.request.overrides}
        # Without several values there is one point, which Hydra has composed already.
        lone = not (self.params or any(self.cases) or any(product.sweeps for product in products))
        for overrides, seeds in ((point, p.seeds) for p in products for point in p):
            cfg = self.config if lone else loader.load_sweep_config(self.config, list(overrides))
            own = [word for word in overrides if word.partition("=")[0].lstrip("+") in typed]
            effects.add(cfg, cfg.hydra.runtime.choices, own)  # an experiment may set more
            spec = specify(cfg, cfg.hydra.runtime.choices)
            wanted = configured_seeds(cfg) if seeds is None else seeds
            place = spec.place(store)
            missing = find_missing(store, place, wanted)
            if missing:
                spec.build()  # so that all errors come before the first run
            points.setdefault((place, wanted), Point(list(overrides), spec, wanted, missing))
        for note in effects.check():
            print(note)
        return list(points.values())

    def _launch(
        self, points: Sequence[Point], store: "Store", total: int, missing: int
    ) -> Sequence[JobReturn]:
        """Run the jobs; if that ends early, print how many runs are stored."""
        from ddobench.store.sweeps import announce

        assert self.launcher is not None
        assert self.config is not None

        def print_rest(why: str) -> None:
            from ddobench.cli.job import find_missing

            left = sum(
                len(find_missing(store, point.spec.place(store), point.missing)) for point in points
            )
            print(f"{why}: {total - left} of {total} runs are stored; "
                  "the same command continues with the rest")  # fmt: skip

            if queue is not None and (rest := queue.describe_rest()):
                print(rest)

        goals = [(point.spec.place(store), point.missing) for point in points]
        local = isinstance(self.launcher, BasicLauncher)  # its jobs report their own progress
        command, queue = self.request.command, None
        try:
            with announce(store, command, goals) as sweep, reporting(missing) as reporter:
                if local:
                    return [_run_here(*job, store, command) for job in split_points(points)]
                target = _read_launcher(self.config).get("_target_")
                with (
                    following(lambda: sweep.count_done(store.folder), reporter),
                    watching_queue(target) as queue,
                ):
                    return self._spread(points)
        except KeyboardInterrupt:
            print_rest("interrupted")
            raise SystemExit(130) from None
        except BrokenProcessPool:
            print_rest("a worker process was killed, perhaps for want of memory")
            raise SystemExit(1) from None
        except Exception as error:  # of the launcher; errors of a job come with its result
            from ddobench.cli.messages import explain

            if local or explain(error):
                raise
            log.warning("%s: %s", type(error).__name__, error)
            print_rest("the launcher gave up" if queue is None else queue.describe_end())
            raise SystemExit(1) from None

    def _spread(self, points: Sequence[Point]) -> list[JobReturn]:
        """Hand jobs to a launcher with workers of its own, as many as it can take."""
        assert self.launcher is not None
        assert self.config is not None
        launcher, cores = _read_launcher(self.config), count_cores()
        workers = count_workers(launcher, cores)
        jobs = [
            [*point.overrides, f"seed='{seeds}'"] for point, seeds in split_points(points, workers)
        ]
        if workers > 1:
            runs = sum(len(point.missing) for point in points)
            print(f"{runs} runs in {len(jobs)} jobs for {workers} workers")
        returns: list[JobReturn] = []
        use_private_folder(self.launcher)
        limit_signal(self.launcher)
        with sharing_the_machine(launcher):
            for portion in split_jobs(jobs, launcher, self.max_batch_size, cores):
                returns += self.launcher.launch(portion, initial_job_idx=len(returns))
        return returns


def _read_launcher(config: DictConfig) -> dict[str, Any]:
    """Return the settings of the launcher as they are written."""
    launcher = OmegaConf.to_container(config.hydra.launcher)
    return (
        {str(key): value for key, value in launcher.items()} if isinstance(launcher, dict) else {}
    )


def split_points(points: Sequence[Point], workers: int = 1) -> list[tuple[Point, Seeds]]:
    """Return the points and seeds of each job."""
    shares = share_seeds([len(point.missing) for point in points], workers)
    return [
        (point, seeds)
        for point, share in zip(points, shares, strict=True)
        for seeds in point.missing.split(point.spec.seeds_per_job or min(share, point.spec.stack))
    ]


def _run_here(point: Point, seeds: Seeds, store: "Store", command: str) -> JobReturn:
    """Run a job as Hydra's launcher of this process would, but compose nothing again."""
    from ddobench.runner.batches import execute

    job = JobReturn(overrides=[*point.overrides, f"seed='{seeds}'"], status=JobStatus.COMPLETED)
    try:
        job.return_value = execute(point.spec, [*seeds], store, command)
    except Exception as error:  # the other jobs are run all the same
        job.status, job.return_value = JobStatus.FAILED, error
    return job


def reduce_cases(
    arguments: list[str], cases: Sequence[dict[str, str]]
) -> list[tuple[list[str], dict[str, str]]]:
    """Return the cases that a sweep has, each with the arguments for it.

    A case that names some of the typed methods is run with these, whatever else it sets.
    """
    typed = [word for word in arguments if word.startswith("method=")]
    asked = {name for word in typed for name in word.removeprefix("method=").split(",")}
    named = [asked & {*str(case.get("method", "")).split(",")} for case in cases]
    if not any(named):
        return [(arguments, case) for case in cases]
    rest = [word for word in arguments if word not in typed]
    return [
        ([*rest, f"method={','.join(sorted(own))}"] if own else arguments, case)
        for case, own in zip(cases, named, strict=True)
        if own or "method" not in case
    ]


def _print_plan(points: Sequence[Point], total: int, missing: int, store: "Store") -> None:
    planned = []
    for point in points:
        line, cost = describe_point(store, point.spec, len(point.missing), len(point.seeds))
        planned.append((len(point.missing), cost))
        print(line)
    if missing:
        print(describe_costs(planned, store))
    print(f"{missing} of {total} runs to do; plan=true runs nothing")


def _sum_up(returns: Sequence[JobReturn]) -> "Outcome":
    """Add up the outcomes of jobs, or raise the error of one."""
    from ddobench.cli.messages import explain
    from ddobench.runner.batches import Outcome

    overrides = StringIO()  # that Hydra prints of a job with an error
    try:
        with redirect_stderr(overrides):
            return sum((job.return_value for job in returns), Outcome())
    except Exception as error:
        if explain(error) is None:
            print(overrides.getvalue(), end="", file=sys.stderr)
        raise


def _summary(outcome: "Outcome", missing: int, seconds: float, store: "Store") -> str:
    parts = [f"{outcome.ok} runs finished"]
    if outcome.runs < missing:
        parts.append(f"{missing - outcome.runs} stored meanwhile by another process")
    if outcome.declined:
        parts.append(f"{outcome.declined} declined")
    if outcome.failed:
        parts.append(f"{outcome.failed} failed (the same command tries them again)")
    report = "python -m ddobench.report"
    if store.folder != Path(DEFAULT_RESULTS):
        report += f" results_dir={shlex.quote(str(store.folder))}"
    where = f"in {seconds:.1f} s; results are in {store.folder}"
    return f"{', '.join(parts)} {where}, see them with: {report}"
