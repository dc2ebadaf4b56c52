"""The sweeper: stacks jobs that differ only in their seed, and drops what is stored.

It is Hydra's basic sweeper up to the list of jobs, so every launcher works with it unchanged. A job
gets `seed='0-9,20-24'` with at most `seeds_per_job` seeds.
"""

import copy
import itertools
import shlex
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from hydra._internal.core_plugins.basic_sweeper import BasicSweeper
from hydra.core.config_loader import ConfigLoader
from hydra.core.override_parser.overrides_parser import OverridesParser
from hydra.core.utils import JobReturn
from hydra.types import HydraContext, TaskFunction
from omegaconf import DictConfig, OmegaConf

from ddobench import registry
from ddobench.cli.argv import QUOTES, spell
from ddobench.errors import UsageError
from ddobench.progress import reporting
from ddobench.seeds import format_seeds, parse_seeds

DEFAULT_RESULTS = "results/runs"

if TYPE_CHECKING:
    from ddobench.runner.execute import Outcome
    from ddobench.runner.spec import Specification
    from ddobench.store.runs import Place, Store


@dataclass(frozen=True)
class Point:
    """One point of a sweep: everything but the seed."""

    overrides: list[str]
    spec: "Specification"
    seeds: tuple[int, ...]
    missing: list[int]


class PointLoader:
    """Hydra's configuration loader, which composes each point of a sweep only once.

    Composing costs about 0.1 s; the jobs of a point differ in nothing but their seeds.
    """

    def __init__(self, loader: ConfigLoader) -> None:
        self.loader = loader
        self.points: dict[tuple[str, ...], DictConfig] = {}

    def load_sweep_config(self, master: DictConfig, overrides: list[str]) -> DictConfig:
        """Return the configuration of a job."""
        rest = tuple(word for word in overrides if not word.startswith("seed="))
        if rest not in self.points:
            self.points[rest] = self.loader.load_sweep_config(master, list(rest))
        cfg = copy.deepcopy(self.points[rest])
        for word in overrides[len(rest) :]:
            cfg.seed = word.removeprefix("seed=").strip(QUOTES)
            cfg.hydra.overrides.task.append(word)
        return cfg

    def __getattr__(self, name: str) -> Any:
        if name == "loader":  # not there yet while a worker unpickles this
            raise AttributeError(name)
        return getattr(self.loader, name)


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
        self.loader = PointLoader(hydra_context.config_loader)
        context = HydraContext(
            config_loader=cast(ConfigLoader, self.loader), callbacks=hydra_context.callbacks
        )
        super().setup(hydra_context=context, task_function=task_function, config=config)

    def sweep(self, arguments: list[str]) -> list[Sequence[JobReturn]]:
        """Launch what is missing, wait for it, and say how it went."""
        from ddobench.store.runs import Store

        assert self.config is not None
        assert self.launcher is not None
        store = Store(self.config.results_dir)
        points = self._points(arguments, store)
        total = sum(len(point.seeds) for point in points)
        missing = sum(len(point.missing) for point in points)
        if self.config.plan:
            _print_plan(points, total, missing)
            return []
        if not missing:
            print(f"nothing to run: all {total} runs of this sweep are stored in {store.folder}")
            return []
        jobs = _jobs(points, self.config.seeds_per_job)
        if missing < total:
            print(f"{total - missing} of {total} runs are stored already; {missing} to go")
        began = time.perf_counter()
        try:
            with reporting(missing):
                returns = self.launcher.launch(jobs, initial_job_idx=0)
        except KeyboardInterrupt:
            left = sum(
                len(store.missing(point.spec.place(store), point.missing)) for point in points
            )
            print(f"interrupted: {total - left} of {total} runs are stored; "
                  "the same command continues with the rest")  # fmt: skip
            raise SystemExit(130) from None
        outcome = _sum_up([job.return_value for job in returns])
        print(_summary(outcome, time.perf_counter() - began, store))
        if outcome.failed:
            raise SystemExit(1)
        return [returns]

    def _points(self, arguments: list[str], store: "Store") -> list[Point]:
        """Compose and check every point before anything is launched; equal ones count once."""
        from ddobench.cli.job import forget_all

        forget_all()
        points: dict[tuple[Place, tuple[int, ...]], Point] = {}
        for case in self.cases:
            words = [f"{key}={value}" for key, value in case.items()]
            for point in self._product([*self._parse_config(), *words, *arguments], store):
                points.setdefault((point.spec.place(store), point.seeds), point)
        return list(points.values())

    def _product(self, words: list[str], store: "Store") -> list[Point]:
        """Return every combination of the values that the words give to their keys."""
        from ddobench.cli.job import hand_on
        from ddobench.runner.spec import specify

        assert self.config is not None
        typed = [spell(word) for word in words]
        parser = OverridesParser.create(config_loader=cast(ConfigLoader, self.loader))
        overrides = parser.parse_overrides(typed)
        swept = _sweep_values(overrides)
        seeds = [word.partition("=")[2] for word in swept.pop("seed", [])]
        lone = all(not o.is_sweep_override() for o in overrides if o.key_or_group != "seed")
        if lone and not self.params and not any(self.cases):
            # Hydra has composed the only point already.
            self.loader.points[tuple(words[0] for words in swept.values())] = self.config
        points = []
        for combination in itertools.product(*swept.values()):
            cfg = self.loader.load_sweep_config(self.config, list(combination))
            spec = specify(cfg, cfg.hydra.runtime.choices)
            wanted = _seeds(seeds, cfg)
            missing = store.missing(spec.place(store), wanted)
            if missing:
                spec.build()  # so that all errors come before the first run
            hand_on(combination, spec)
            points.append(Point(list(combination), spec, wanted, missing))
        return points


def _sweep_values(overrides: Sequence[Any]) -> dict[str, list[str]]:
    """Return the spellings `key=value` that each key takes; a later override replaces a earlier."""
    for override in overrides:
        if override.is_discrete_sweep() and not [*override.sweep_string_iterator()]:
            raise UsageError(_describe_nothing(override))
    batches = BasicSweeper.split_arguments([*overrides], max_batch_size=None)
    swept: dict[str, dict[str, None]] = {}
    for words in batches[0]:
        for word in words:
            swept.setdefault(word.partition("=")[0], {})[word] = None
    return {key: list(words) for key, words in swept.items()}


def _describe_nothing(override: Any) -> str:
    """Say that a list of values has come out empty, which Hydra takes for nothing said at all."""
    group = override.key_or_group
    names = [entry.name for entry in registry.entries(group)]
    remedy = f"there are {', '.join(names)}" if names else f"write {group}=VALUE or a wider range"
    return f"{override.input_line} names no {group} at all; {remedy}"


def _seeds(typed: list[str], cfg: DictConfig) -> tuple[int, ...]:
    if not typed:
        return parse_seeds(
            OmegaConf.to_object(cfg.seed) if OmegaConf.is_list(cfg.seed) else cfg.seed
        )
    return parse_seeds(",".join(word.strip("[]" + QUOTES) for word in typed))


def _jobs(points: Sequence[Point], seeds_per_job: int) -> list[list[str]]:
    return [
        [*point.overrides, f"seed='{format_seeds(point.missing[i : i + seeds_per_job])}'"]
        for point in points
        for i in range(0, len(point.missing), seeds_per_job)
    ]


def _print_plan(points: Sequence[Point], total: int, missing: int) -> None:
    for point in points:
        print(f"{point.spec.title}: {len(point.missing)} of {len(point.seeds)} seeds to run")
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
