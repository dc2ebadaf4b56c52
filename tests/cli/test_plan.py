"""A plan estimates what runs will cost by measured runs, and marks guesses."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from ddobench.cli.plan import (
    TABLE,
    Cost,
    Published,
    describe_costs,
    estimate_cost,
    read_published,
    tabulate,
)
from ddobench.progress import format_bytes, format_seconds
from ddobench.runner.spec import Specification
from ddobench.store.records import Record
from ddobench.store.runs import Store
from tests.support.records import PUBLISHED, needs_published, record_of, row_of

SPEC = Specification(
    task="toy", method="mine", budget="tiny", d=3, n=10, device="cpu", seeds_per_job=50, config={},
    task_departures={}, method_departures={}, digest="abc", task_digest="t",
)  # fmt: skip


def fill(folder: Path, spec: Specification = SPEC, **row: Any) -> Store:
    """Store two runs of a specification that took one and three seconds by default."""
    store = Store(folder)
    for seed, seconds in enumerate((1.0, 3.0)):
        values = {"d": spec.d, "n": spec.n, "digest": spec.digest, "seconds_cpu": seconds} | row
        store.write(spec.place(store), Record(row_of(seed, **values)))
    return store


def test_a_cost_is_the_mean_of_stored_runs_of_the_same_specification(tmp_path: Path) -> None:
    store = fill(tmp_path)
    cost = estimate_cost(store, SPEC)
    assert cost is not None
    assert (cost.cpu, cost.runs, cost.guess) == (2.0, 2, "")
    assert cost.disk == pytest.approx(SPEC.place(store).file(0).stat().st_size, rel=0.01)
    assert cost.describe() == "about 2 s of CPU time each (by 2 stored runs of it)"


def test_runs_with_other_settings_or_of_another_size_give_a_guess(tmp_path: Path) -> None:
    store = fill(tmp_path)
    other = estimate_cost(store, replace(SPEC, digest="other"))
    assert other is not None
    assert (other.cpu, other.guess) == (2.0, "by other settings of this method and task")
    larger = estimate_cost(store, replace(SPEC, digest="larger", d=6, n=40))
    assert larger is not None
    assert larger.cpu == 16.0
    assert "a guess from another size" in larger.describe()


@pytest.mark.parametrize("changes", [{"method": "other"}, {"task": "other"}, {"budget": "full"}])
def test_runs_of_another_method_task_or_budget_give_nothing(
    tmp_path: Path, changes: dict[str, Any]
) -> None:
    spec: Any = replace(SPEC, digest="other", **changes)
    assert estimate_cost(fill(tmp_path), spec) is None
    assert estimate_cost(Store(tmp_path / "nowhere"), SPEC) is None


def test_published_runs_give_a_guess_where_no_similar_run_is_stored(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    published = [
        Published("toy", "mine", budget, 3, n, runs=7, cpu=cpu, iterations=20, designs=100)
        for budget, n, cpu in (("tiny", 10, 5.0), ("tiny", 1000, 9.0), ("full", 10, 900.0))
    ]
    monkeypatch.setattr("ddobench.cli.plan.read_published", lambda: published)
    empty = Store(tmp_path / "empty")
    same = estimate_cost(empty, SPEC)
    assert same is not None
    assert same.describe() == (
        "about 5 s of CPU time each (a guess by 7 published runs of another machine)"
    )
    assert same.disk > 2 * 20 * 100 * 4
    larger = estimate_cost(empty, replace(SPEC, n=20))
    assert larger is not None
    assert larger.cpu == 10.0
    assert "a guess from published runs of another size and machine" in larger.describe()
    stored = estimate_cost(fill(tmp_path), SPEC)
    assert stored is not None
    assert stored.cpu == 2.0


@needs_published
def test_the_table_of_published_costs_is_that_of_the_published_records() -> None:
    assert tabulate(PUBLISHED) == TABLE.read_text(encoding="utf-8")
    line = [one for one in read_published() if (one.method, one.d, one.n) == ("fgm", 41, 10000)]
    assert {one.task for one in line} >= {"chain"}


def test_a_job_needs_memory_for_its_rows_and_the_designs_of_all_iterations(tmp_path: Path) -> None:
    store = Store(tmp_path)
    store.write(SPEC.place(store), record_of(0, length=5, seconds_cpu=1.0))  # of 4 designs
    cost = estimate_cost(store, SPEC)
    assert cost is not None
    assert cost.memory == 8 * (10 * 4 + 5 * 4 * 3)


def test_runs_without_a_cost_are_ignored(tmp_path: Path) -> None:
    assert estimate_cost(fill(tmp_path, status="declined"), SPEC) is None
    assert estimate_cost(fill(tmp_path / "odd", seconds_cpu=float("nan")), SPEC) is None


def test_a_plan_sums_costs_and_suggests_how_many_seeds_a_job_should_have(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("os.cpu_count", lambda: 2)
    planned = [(50, Cost(219.0, 150_000.0, 1e8, 5)), (50, Cost(1.0, 10_000.0, 1e6, 5)), (7, None)]
    assert describe_costs(planned, Store("runs")).splitlines() == [
        "about 3.06 h of CPU time, 91.7 min on the 2 cores of this machine if they have nothing "
        "else to do, and 8 MB on disk",
        "on a cluster: seeds_per_job=8 makes an array of 14 jobs, the longest of about 29.2 min "
        "of CPU time, with at least 1.3 GB of memory each",
        "not counted: 7 runs that nothing stored is like",
    ]
    assert describe_costs([(7, None)], Store("runs")) == (
        "what they cost is not known, as no run like them is stored in runs: "
        "run one seed of each to know"
    )


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0.0123, "0.0123 s"), (100, "100 s"), (600, "10 min"), (9e4, "25 h"), (9e5, "10.4 days")],
)
def test_a_time_is_formatted_in_a_suitable_unit(seconds: float, text: str) -> None:
    assert format_seconds(seconds) == text


@pytest.mark.parametrize(("size", "text"), [(5, "5 B"), (1500, "1.5 KB"), (2.5e11, "250 GB")])
def test_a_size_is_formatted_in_a_suitable_unit(size: float, text: str) -> None:
    assert format_bytes(size) == text
