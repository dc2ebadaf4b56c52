"""The function Hydra calls for every job: one point of a sweep with one or more seeds."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from hydra.core.hydra_config import HydraConfig
from hydra.types import RunMode
from omegaconf import DictConfig

from ddobench.cli import hydra_hooks
from ddobench.cli.settings import configured_seeds, read_settings
from ddobench.progress import reporting
from ddobench.seeds import Seeds

if TYPE_CHECKING:
    import pandas as pd

    from ddobench.runner.execute import Outcome
    from ddobench.runner.spec import Specification
    from ddobench.scores import Unit
    from ddobench.store.runs import Store

# what the sweep of this process has specified already, by the overrides of each point
_specified: dict[tuple[str, ...], "Specification"] = {}

hydra_hooks.register()  # worker processes of a launcher start here


def hand_on(overrides: Sequence[str], spec: "Specification") -> None:
    """Let the jobs of a point in this process use what the sweep has specified."""
    _specified[tuple(overrides)] = spec


def forget_all() -> None:
    """Begin another sweep."""
    _specified.clear()


def run_job(cfg: DictConfig) -> "Outcome":
    """Run the seeds of `cfg` that are not stored yet."""
    from ddobench.cli.pending import pending
    from ddobench.runner.spec import specify
    from ddobench.store.runs import Store

    hydra = HydraConfig.get()
    seeds = configured_seeds(cfg)
    settings = read_settings(cfg)
    store = Store(settings.results)
    if hydra.mode == RunMode.MULTIRUN:
        from ddobench.runner.execute import execute

        point = tuple(word for word in hydra.overrides.task if not word.startswith("seed="))
        spec = _specified.get(point) or specify(cfg, hydra.runtime.choices)
        return execute(spec, [*seeds], store)

    spec = specify(cfg, hydra.runtime.choices)
    missing = pending(store, spec.place(store), seeds)
    if missing:
        spec.build()
    if settings.plan:
        from ddobench.cli.costs import estimate_cost

        cost = estimate_cost(store, spec) if missing else None
        told = f", {cost.describe()}" if cost else ""
        print(f"{spec.title}: {len(missing)} of {len(seeds)} seeds to run{told}; "
              "plan=true runs nothing")  # fmt: skip
        raise SystemExit(0)
    if not missing:
        print(_describe(spec, seeds, 0, store))
        raise SystemExit(0)
    settings.check_number(len(missing))
    from ddobench.runner.execute import Outcome, execute

    with reporting(len(missing)):
        batches = missing.split(spec.stack)
        outcome = sum((execute(spec, [*batch], store) for batch in batches), Outcome())
    print(_describe(spec, seeds, len(missing), store))
    if outcome.failed:
        raise SystemExit(1)
    return outcome


def _describe(spec: "Specification", seeds: Seeds, fresh: int, store: "Store") -> str:
    """Say in one line what the asked-for runs gave."""
    from ddobench.scores import HEADLINE, tabled_scores
    from ddobench.store.runs import load

    folder = spec.place(store).folder
    runs = load(folder)
    runs = runs[runs["seed"].isin(seeds)]
    ok = runs[runs["status"] == "ok"]
    news = "already stored" if not fresh else "stored"
    head = f"{spec.title}, {'seed' if len(seeds) == 1 else f'{len(seeds)} seeds,'}"
    head += f" {seeds}" if len(seeds) == 1 else " mean"
    if ok.empty:
        reasons = "; ".join(sorted(set(runs["reason"])))
        return f"{head}: {runs['status'].iloc[0]}: {reasons} ({news} in {folder})"
    told = [
        f"{score.prefix} {_format_mean(score.unit, ok, float(ok[score.name].mean()))}"
        for score in tabled_scores()
        if score.leaderboard and ok[score.name].notna().any()
    ]
    if ok[HEADLINE.name].isna().all():
        told.append("no new design was measured")
    return f"{head}: {', '.join(told)} ({news} in {folder})"


def _format_mean(unit: "Unit", runs: "pd.DataFrame", mean: float) -> str:
    """Return a mean for one line on a screen."""
    if unit.fraction:
        return f"{mean:.0%}"
    told = f"({runs[unit.sign_column].iloc[0]})" if unit.sign_column else unit.sign
    return f"{mean:.3g} {told}".rstrip()
