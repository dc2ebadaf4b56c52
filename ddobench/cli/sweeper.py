"""The sweeper: stacks jobs that differ only in their seed, and drops what is stored.

It is Hydra's basic sweeper up to the list of jobs, so every launcher works with it unchanged. A job
gets `seed='0-9,20-24'` with at most `seeds_per_job` seeds, and unless that is told no more than
keep all workers of a launcher busy.
"""

import copy
import logging
import shlex
import time
from collections.abc import Callable, Sequence
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast
from uuid import uuid4

from hydra._internal.config_loader_impl import ConfigLoaderImpl
from hydra._internal.core_plugins.basic_launcher import BasicLauncher
from hydra._internal.core_plugins.basic_sweeper import BasicSweeper
from hydra.core.config_loader import ConfigLoader
from hydra.core.config_search_path import ConfigSearchPath
from hydra.core.override_parser.overrides_parser import OverridesParser
from hydra.core.utils import JobReturn
from hydra.types import HydraContext, TaskFunction
from omegaconf import DictConfig, OmegaConf

from ddobench.cli.argv import QUOTES, spell
from ddobench.cli.product import Product, multiply
from ddobench.cli.settings import DEFAULT_RESULTS, LISTED, configured_seeds, read_settings
from ddobench.cli.workers import (
    check_installed,
    count_cores,
    count_workers,
    share_seeds,
    sharing_the_machine,
    split_jobs,
)
from ddobench.progress import following, reporting
from ddobench.seeds import Seeds, parse_seeds

if TYPE_CHECKING:
    from ddobench.runner.execute import Outcome
    from ddobench.runner.spec import Specification
    from ddobench.store.runs import Place, Store

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Point:
    """One point of a sweep: everything but the seed."""

    overrides: list[str]
    spec: "Specification"
    seeds: Seeds
    missing: Seeds


class PointLoader:
    """Hydra's configuration loader, which composes each point of a sweep only once.

    Composing costs about 0.05 s; the jobs of a point differ in nothing but their seeds. A launcher
    pickles the loader with every job. It travels as the names of its folders alone: with the points
    of all other jobs, a job would cost the more the more there are.
    """

    def __init__(self, find: Callable[[], ConfigLoader]) -> None:
        self.find = find
        self.points: dict[tuple[str, ...], DictConfig] = {}
        self.sweep = uuid4().hex

    @cached_property
    def loader(self) -> ConfigLoader:
        """The one that composes; a worker knows too little of Hydra to make it any earlier."""
        return self.find()

    def __reduce__(self) -> tuple[Any, ...]:
        return _find_loader, (self.sweep, self.loader.get_search_path())

    def compose(self, master: DictConfig, overrides: tuple[str, ...]) -> DictConfig:
        """Return the configuration of a point, to be read only."""
        if overrides not in self.points:
            self.points[overrides] = self.loader.load_sweep_config(master, list(overrides))
        return self.points[overrides]

    def load_sweep_config(self, master: DictConfig, overrides: list[str]) -> DictConfig:
        """Return the configuration of a job."""
        rest = tuple(word for word in overrides if not word.startswith("seed="))
        cfg = copy.deepcopy(self.compose(master, rest))
        for word in overrides[len(rest) :]:
            cfg.seed = word.removeprefix("seed=").strip(QUOTES)
            cfg.hydra.overrides.task.append(word)
        return cfg

    def __getattr__(self, name: str) -> Any:
        return getattr(self.loader, name)


def _find_loader(sweep: str, path: ConfigSearchPath) -> PointLoader:
    """Return the loader that this process has for the jobs of a sweep, a new one for the first."""
    if sweep not in _loaders:
        _loaders.clear()
        _loaders[sweep] = PointLoader(partial(ConfigLoaderImpl, path))
    return _loaders[sweep]


_loaders: dict[str, PointLoader] = {}  # of worker processes, by sweep


class SeedSweeper(BasicSweeper):
    """Launches one job per point and `seeds_per_job` missing seeds.

    With `cases`, a list of further `params`, a sweep is the union of one product for each of them.
    """

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
        """Hand the launcher a loader that composes each point once."""
        self.loader = PointLoader(lambda: hydra_context.config_loader)
        context = HydraContext(
            config_loader=cast(ConfigLoader, self.loader), callbacks=hydra_context.callbacks
        )
        launcher = _read_launcher(config)
        check_installed(str(config.hydra.runtime.choices.get("hydra/launcher")), launcher)
        super().setup(hydra_context=context, task_function=task_function, config=config)

    def sweep(self, arguments: list[str]) -> list[Sequence[JobReturn]]:
        """Launch what is missing, wait for it, and say how it went."""
        from ddobench.store.runs import Store

        assert self.config is not None
        settings = read_settings(self.config)
        store = Store(settings.results)
        products = [self._product(arguments, case) for case in self.cases]
        for sentence in dict.fromkeys(s for product in products for s in product.left_out):
            print(sentence)
        number = sum(product.number for product in products)
        if settings.plan and number > LISTED:
            print(f"{number} points, each with its seeds: a plan looks at {LISTED} at most; "
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
        outcome = _sum_up([job.return_value for job in returns])
        print(_summary(outcome, time.perf_counter() - began, store))
        if outcome.failed:
            raise SystemExit(1)
        return [returns]

    def _launch(
        self, points: Sequence[Point], store: "Store", total: int, missing: int
    ) -> Sequence[JobReturn]:
        """Run the jobs; if that ends early, say what is stored."""
        from ddobench.runner.provenance import command_line
        from ddobench.store.sweeps import announce

        assert self.launcher is not None

        def say_rest(why: str) -> None:
            left = sum(len(_pending(store, point.spec, point.missing)) for point in points)
            print(f"{why}: {total - left} of {total} runs are stored; "
                  "the same command continues with the rest")  # fmt: skip

        goals = [(point.spec.place(store), point.missing) for point in points]
        alone = isinstance(self.launcher, BasicLauncher)  # jobs of this process tell themselves
        try:
            with announce(store, command_line(), goals) as sweep, reporting(missing) as reporter:
                if alone:
                    return self.launcher.launch(make_jobs(points), initial_job_idx=0)
                with following(lambda: sweep.count_done(store.folder), reporter):
                    return self._spread(points)
        except KeyboardInterrupt:
            say_rest("interrupted")
            raise SystemExit(130) from None
        except BrokenProcessPool:
            say_rest("a worker process was killed, perhaps for want of memory")
            raise SystemExit(1) from None
        except Exception as error:  # of the launcher: those of a job are told with its result
            from ddobench.cli.messages import explain

            if alone or explain(error):
                raise
            log.warning("%s: %s", type(error).__name__, error)
            say_rest("the launcher gave up")
            raise SystemExit(1) from None

    def _spread(self, points: Sequence[Point]) -> list[JobReturn]:
        """Hand jobs to a launcher with workers of its own, as many as it can take."""
        assert self.launcher is not None
        assert self.config is not None
        launcher, cores = _read_launcher(self.config), count_cores()
        workers = count_workers(launcher, cores)
        jobs = make_jobs(points, workers)
        if workers > 1:
            runs = sum(len(point.missing) for point in points)
            print(f"{runs} runs in {len(jobs)} jobs for {workers} workers")
        returns: list[JobReturn] = []
        with sharing_the_machine(launcher):
            for portion in split_jobs(jobs, launcher, self.max_batch_size, cores):
                returns += self.launcher.launch(portion, initial_job_idx=len(returns))
        return returns

    def _points(self, products: Sequence[Product], store: "Store") -> list[Point]:
        """Compose and check every point before anything is launched; equal ones count once."""
        from ddobench.cli.job import forget_all, hand_on
        from ddobench.runner.spec import specify

        assert self.config is not None
        forget_all()
        points: dict[tuple[Place, Seeds], Point] = {}
        for combination, seeds in ((c, product.seeds) for product in products for c in product):
            cfg = self.loader.compose(self.config, combination)
            spec = specify(cfg, cfg.hydra.runtime.choices)
            wanted = _seeds(seeds, cfg)
            missing = _pending(store, spec, wanted)
            if missing:
                spec.build()  # so that all errors come before the first run
            hand_on(combination, spec)
            point = Point(list(combination), spec, wanted, missing)
            points.setdefault((spec.place(store), wanted), point)
        return list(points.values())

    def _product(self, arguments: list[str], case: dict[str, str]) -> Product:
        """Return what the words of a case and the typed ones give to their keys."""
        words = [f"{key}={value}" for key, value in case.items()]
        typed = [spell(word) for word in [*self._parse_config(), *words, *arguments]]
        parser = OverridesParser.create(config_loader=cast(ConfigLoader, self.loader))
        overrides = parser.parse_overrides(typed)
        product = multiply(overrides)
        lone = all(not o.is_sweep_override() for o in overrides if o.key_or_group != "seed")
        if lone and not self.params and not any(self.cases):
            # Hydra has composed the only point already.
            assert self.config is not None
            self.loader.points[next(iter(product))] = self.config
        return product


def _read_launcher(config: DictConfig) -> dict[str, Any]:
    """Return the settings of the launcher as they are written."""
    launcher = OmegaConf.to_container(config.hydra.launcher)
    return (
        {str(key): value for key, value in launcher.items()} if isinstance(launcher, dict) else {}
    )


def _pending(store: "Store", spec: "Specification", wanted: Seeds) -> Seeds:
    from ddobench.cli.pending import pending

    return pending(store, spec.place(store), wanted)


def _seeds(typed: list[str], cfg: DictConfig) -> Seeds:
    if not typed:
        return configured_seeds(cfg)
    return parse_seeds(",".join(word.strip("[]" + QUOTES) for word in typed))


def make_jobs(points: Sequence[Point], workers: int = 1) -> list[list[str]]:
    """Return the overrides of each job."""
    shares = share_seeds([len(point.missing) for point in points], workers)
    return [
        [*point.overrides, f"seed='{seeds}'"]
        for point, share in zip(points, shares, strict=True)
        for seeds in point.missing.split(point.spec.seeds_per_job or min(share, point.spec.stack))
    ]


def _print_plan(points: Sequence[Point], total: int, missing: int, store: "Store") -> None:
    from ddobench.cli.costs import describe_costs, estimate_cost

    planned = []
    for point in points:
        cost = estimate_cost(store, point.spec) if point.missing else None
        planned.append((len(point.missing), cost))
        told = f", {cost.describe()}" if cost else ""
        print(f"{point.spec.title}: {len(point.missing)} of {len(point.seeds)} seeds to run{told}")
    if missing:
        print(describe_costs(planned, store))
    print(f"{missing} of {total} runs to do; plan=true runs nothing")


def _sum_up(outcomes: Sequence["Outcome"]) -> "Outcome":
    from ddobench.runner.execute import Outcome

    return sum(outcomes, Outcome())


def _summary(outcome: "Outcome", seconds: float, store: "Store") -> str:
    parts = [f"{outcome.ok} runs finished"]
    if outcome.declined:
        parts.append(f"{outcome.declined} declined")
    if outcome.failed:
        parts.append(f"{outcome.failed} failed (the same command tries them again)")
    report = "python -m ddobench.report"
    if store.folder != Path(DEFAULT_RESULTS):
        report += f" results_dir={shlex.quote(str(store.folder))}"
    where = f"in {seconds:.1f} s; results are in {store.folder}"
    return f"{', '.join(parts)} {where}, see them with: {report}"
