"""The function that Hydra calls for every job: one point of a sweep with one or more seeds."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from hydra.core.hydra_config import HydraConfig
from hydra.types import RunMode
from omegaconf import DictConfig

from ddobench.cli import hooks
from ddobench.cli.argv import JobError, Request, configured_seeds, read_settings
from ddobench.errors import UsageError
from ddobench.progress import reporting
from ddobench.seeds import Seeds

if TYPE_CHECKING:
    import pandas as pd

    from ddobench.runner.batches import Outcome
    from ddobench.runner.spec import Specification
    from ddobench.scores import Unit
    from ddobench.store.runs import Place, Store

hooks.register()  # also in the worker processes of a launcher, which import this module first


@dataclass(frozen=True)
class Job:
    """A function of a composed configuration and the request; launchers pickle it for workers."""

    function: Callable[[Any, Request], Any]
    request: Request

    def __call__(self, cfg: DictConfig) -> Any:
        """Run the function; hand an error of a single run past Hydra, which would print more."""
        try:
            return self.function(cfg, self.request)
        except Exception as error:
            if HydraConfig.get().mode == RunMode.MULTIRUN:
                raise
            raise JobError(error) from None


def run_job(cfg: DictConfig, request: Request) -> "Outcome":
    """Run the seeds of `cfg` that are not stored yet."""
    from ddobench.runner.spec import specify
    from ddobench.store.runs import Store

    hydra = HydraConfig.get()
    settings = read_settings(cfg)
    store = Store(settings.results)
    if hydra.mode != RunMode.MULTIRUN:  # the sweeper has checked its points
        _check_effects(cfg, request)
    spec = specify(cfg, hydra.runtime.choices)
    if hydra.mode == RunMode.MULTIRUN:
        from ddobench.runner.batches import execute

        # The sweeper chose the seeds of this job; launchers pass them on as text.
        return execute(spec, [*configured_seeds(cfg)], store, request.command)

    seeds = request.seeds or configured_seeds(cfg)
    if settings.describe:
        print(_describe_task(spec, seeds))
        raise SystemExit(0)
    missing = find_missing(store, spec.place(store), seeds)
    if missing:
        spec.build()
    if settings.plan:
        from ddobench.cli.plan import describe_point

        print(f"{describe_point(store, spec, len(missing), len(seeds))[0]}; plan=true runs nothing")
        raise SystemExit(0)
    if not missing:
        print(_describe(spec, seeds, 0, store))
        raise SystemExit(0)
    settings.check_number(len(missing))
    from ddobench.runner.batches import Outcome, execute

    with reporting(len(missing)):
        stacks = missing.split(spec.stack)
        outcome = sum(
            (execute(spec, [*stack], store, request.command) for stack in stacks), Outcome()
        )
    print(_describe(spec, seeds, len(missing), store))
    if outcome.failed:
        raise SystemExit(1)
    return outcome


def _describe_task(spec: "Specification", seeds: Seeds) -> str:
    """Return what a task is, and the terms of the paper's theorem for its seeds."""
    from ddobench.coverage import TERMS
    from ddobench.runner.run import find_terms

    task = spec.build_task()
    about = task.describe()
    lines = [about.title, about.formula, about.text]
    for seed, terms in zip(seeds, find_terms(task, task.problem([*seeds]), [*seeds]), strict=True):
        lines += ["", f"seed {seed}"]
        for name, label in TERMS.items():
            number = terms.known.get(name)
            found = f"{number:.3g}" if number is not None else f"unknown: {terms.absent[name]}"
            lines.append(f"  {label:<52}{found}")
    return "\n".join(lines)


def _check_effects(cfg: DictConfig, request: Request) -> None:
    """Raise for a setting of a single run that would have no effect."""
    from ddobench.cli.effects import Effects

    for word in request.overrides:
        if word.startswith(("hydra/launcher=", "hydra.launcher.")):
            raise UsageError(f"{word} has no effect on a single run; add -m to launch a sweep")
    effects = Effects()
    effects.add(cfg, HydraConfig.get().runtime.choices, request.overrides)
    effects.check()


def find_missing(store: "Store", place: "Place", wanted: Seeds) -> Seeds:
    """Return the wanted seeds without a readable file; only existing files are read."""
    return wanted.without(store.sound(place, wanted))


def _describe(spec: "Specification", seeds: Seeds, fresh: int, store: "Store") -> str:
    """Return one line with the scores of the runs that were asked for."""
    from ddobench.scores import HEADLINE, tabled_scores
    from ddobench.store.runs import load

    folder = spec.place(store).folder
    runs = load(folder)
    runs = runs[runs["seed"].isin(seeds)]
    ok = runs[runs["status"] == "ok"]
    where = f"({'stored' if fresh else 'already stored'} in {folder})"
    head = f"{spec.title}, {'seed' if len(seeds) == 1 else f'{len(seeds)} seeds,'}"
    head += f" {seeds}" if len(seeds) == 1 else " mean"
    if ok.empty:
        reasons = "; ".join(sorted(set(runs["reason"])))
        return f"{head}: {runs['status'].iloc[0]}: {reasons} {where}"
    parts = [
        f"{score.prefix} {_format_mean(score.unit, ok, float(ok[score.name].mean()))}"
        for score in tabled_scores()
        if score.leaderboard and ok[score.name].notna().any()
    ]
    if ok[HEADLINE.name].isna().all():
        parts.append("no new design was measured")
    return f"{head}: {', '.join(parts)} {where}"


def _format_mean(unit: "Unit", runs: "pd.DataFrame", mean: float) -> str:
    """Return a mean with its unit, for one line on a screen."""
    if unit.fraction:
        return f"{mean:.0%}"
    sign = f"({runs[unit.sign_column].iloc[0]})" if unit.sign_column else unit.sign
    return f"{mean:.3g} {sign}".rstrip()
