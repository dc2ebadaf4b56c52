"""Promises of the runner, with tasks and methods small enough to see through."""

import inspect
import logging
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest
import torch
from torch import Tensor

from ddobench import progress
from ddobench.contracts import Dataset, Method, OneSeedMethod, Proposal, Space
from ddobench.rng import Stream, Streams
from ddobench.runner import batches
from ddobench.runner.batches import Outcome, execute
from ddobench.runner.run import collect, run_seeds
from ddobench.runner.spec import Specification
from ddobench.scores import COSTS
from ddobench.store.records import Record
from ddobench.store.runs import Store, load, load_curves, read_record
from tests.support.fakes import Climb, Sum, specify_fake


@pytest.fixture
def store(tmp_path: Path) -> Store:
    """Return an empty store."""
    return Store(tmp_path / "runs")


def run(spec: Specification, seeds: Sequence[int], store: Store) -> dict[int, Record]:
    """Run seeds and read them back."""
    execute(spec, seeds, store)
    return {seed: read_record(spec.place(store).file(seed)) for seed in seeds}


@dataclass(kw_only=True)
class Echo(Method):
    """Propose the start designs; what the tests below change one thing about."""

    def fit(self, data: Dataset, rng: Streams) -> None:
        """Remember what was shown."""
        self.data, self.rng = data, rng

    def propose(self, starts: Tensor, rng: Streams) -> Iterator[Proposal]:  # noqa: ARG002
        """Yield the starts."""
        yield Proposal(starts)


class Declining(Echo):
    """Decline everything, and break if asked to work all the same."""

    def declines(self, data: Dataset) -> str | None:
        """Say why."""
        return f"{data.space.d} variables are too many"

    def fit(self, data: Dataset, rng: Streams) -> None:  # noqa: ARG002
        """Never get here."""
        raise AssertionError("a declined run was fitted")


class Breaking(Echo):
    """Raise while fitting."""

    healed: ClassVar[bool] = False

    def fit(self, data: Dataset, rng: Streams) -> None:
        """Raise with a message of two lines."""
        if not self.healed:
            raise ArithmeticError("no convergence\nand more about it")
        super().fit(data, rng)


class BreakingForOne(Echo):
    """Report that the second seed of a batch broke down."""

    def failures(self) -> Mapping[int, str]:
        """Name the second position where there is one."""
        return {i: "loss is NaN" for i, seed in enumerate(self.rng.seeds) if seed == 1}


class Whole(Echo):
    """Refuse more than two seeds at once."""

    seeds_at_once: ClassVar[int | None] = 2
    batches: ClassVar[list[tuple[int, ...]]] = []

    def fit(self, data: Dataset, rng: Streams) -> None:
        """Note the seeds."""
        assert not hasattr(self, "data"), "a method object was used for two batches"
        self.batches.append(rng.seeds)
        super().fit(data, rng)


class OneByOne(OneSeedMethod):
    """Shift the starts by the mean of the data and a random step."""

    def fit_one(self, x: Tensor, y: Tensor, space: Space, rng: Stream) -> None:
        """Remember the mean."""
        assert (x.shape, y.shape) == ((20, 3), (20,))
        assert space == Space(3)
        self.mean = x.mean(dim=0) + rng.normal(3)

    def propose_one(self, starts: Tensor, rng: Stream) -> Iterator[Tensor]:
        """Yield two iterations."""
        yield starts
        yield starts + self.mean + rng.normal(*starts.shape)

    def predict_one(self, x: Tensor) -> Tensor:
        """Predict the first coordinate."""
        return x[:, 0]


class Mutating(Echo):
    """Go on working in the very tensors that were yielded."""

    def propose(self, starts: Tensor, rng: Streams) -> Iterator[Proposal]:  # noqa: ARG002
        """Yield the same tensors twice, changed in between and afterwards."""
        x, predicted = torch.zeros_like(starts), torch.zeros(starts.shape[:2])
        for _ in range(2):
            yield Proposal(x, predicted)
            x += 1
            predicted += 1


class PredictingInPlace(Echo):
    """Standardise designs in place before predicting."""

    def predict(self, x: Tensor) -> Tensor:
        """Spoil the argument."""
        x *= 0
        return x.sum(dim=-1)


class Fixed(Echo):
    """Yield the proposals of the class."""

    proposals: ClassVar[list[Proposal]] = []

    def propose(self, starts: Tensor, rng: Streams) -> Iterator[Proposal]:  # noqa: ARG002
        """Yield the proposals."""
        yield from self.proposals


def collect_fixed(*proposals: Proposal) -> Any:
    """Collect given proposals for two seeds, at most four designs of three variables."""
    method = type("Proposing", (Fixed,), {"proposals": list(proposals)})()
    return collect(method, torch.zeros(2, 4, 3), Streams([0, 1], "test"))


def test_a_run_is_stored_with_everything_that_is_promised(store: Store) -> None:
    spec = specify_fake(Climb, steps=3)
    assert execute(spec, [4, 2], store) == Outcome(ok=2)
    record = read_record(spec.place(store).file(2))
    problem = Sum(d=3, n=20).problem([2, 2])
    y = problem.data.y[0].numpy()
    row = record.row
    assert (row["task"], row["method"], row["d"], row["n"], row["seed"]) == (
        "sum",
        "climb",
        3,
        20,
        2,
    )
    assert (row["status"], row["digest"], row["budget"]) == ("ok", spec.digest, "test")
    assert row["best_visible"] == pytest.approx((y.max() - y.mean()) / y.std())
    assert row["optimum"] == pytest.approx((10 - y.mean()) / y.std())
    assert row["regret_final"] == pytest.approx(row["optimum"] - row["final_model"])
    assert row["final_model"] == record.curves["value_model"][-1]
    assert row["best_oracle"] == record.curves["value_oracle"].max()
    assert min(row[cost.name] for cost in COSTS) > 0
    assert record.config == spec.config
    assert record.provenance["batch"] == 2
    assert {"packages", "revision", "cpu", "threads"} <= record.provenance.keys()
    assert record.curves["iteration"].tolist() == [0, 1, 2, 3]
    assert record.curves["largest"].shape == (4,)
    assert record.designs is not None
    truth = problem.evaluate(torch.from_numpy(record.designs.copy())[None].expand(2, -1, -1))[0]
    stored = getattr(record, "values")[-1]  # noqa: B009 - not a pandas frame
    assert stored == pytest.approx(truth.numpy(), rel=1e-5, nan_ok=True)


def test_every_method_starts_from_the_same_visible_designs(store: Store) -> None:
    climbed = run(specify_fake(Climb, steps=0), [0, 1], store)
    echoed = run(specify_fake(Echo), [0, 1], store)
    for seed in (0, 1):
        assert np.array_equal(climbed[seed].designs, echoed[seed].designs)  # type: ignore[arg-type]
        visible = Sum(d=3, n=20).problem([seed]).data.x[0].float().numpy()
        assert all((visible == design).all(axis=1).any() for design in echoed[seed].designs)  # type: ignore[union-attr]


def same_result(one: Record, other: Record) -> bool:
    """Tell whether two records hold the same numbers, bit for bit."""
    arrays = ("values", "predictions", "designs")
    return all(
        np.array_equal(getattr(one, name), getattr(other, name), equal_nan=True) for name in arrays
    ) and all(
        np.array_equal(curve, other.curves[name], equal_nan=True)
        for name, curve in one.curves.items()
    )


@pytest.mark.bits
@pytest.mark.parametrize("method", [Climb, OneByOne])
def test_a_seed_does_not_depend_on_its_companions(
    method: type[Method], store: Store, tmp_path: Path
) -> None:
    together = run(specify_fake(method), [3, 0, 5], store)
    alone = run(specify_fake(method), [5], Store(tmp_path / "alone"))
    assert same_result(together[5], alone[5])
    assert not same_result(together[5], together[0])


def test_a_lone_seed_is_recorded_once(store: Store) -> None:
    assert execute(specify_fake(Climb), [3], store) == Outcome(ok=1)
    runs = load(store.folder)
    assert runs["seed"].tolist() == [3]
    assert read_record(store.folder / runs["path"][0]).provenance["batch"] == 1


def test_a_declined_run_is_recorded_with_its_reason_and_not_tried_again(store: Store) -> None:
    spec = specify_fake(Declining)
    assert execute(spec, [0, 1], store) == Outcome(declined=2)
    runs = load(store.folder)
    assert runs["status"].tolist() == ["declined"] * 2
    assert runs["reason"].tolist() == ["3 variables are too many"] * 2
    assert runs["best_visible"].notna().all()
    assert runs["final_model"].isna().all()
    assert load_curves(store.folder).empty
    assert execute(spec, [0, 1], store) == Outcome()


def test_a_batch_that_breaks_leaves_its_error_and_is_tried_again(
    store: Store, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    spec = specify_fake(Breaking)
    line = inspect.getsourcelines(Breaking.fit)[1] + 3  # the one that raises
    assert execute(spec, [0, 1], store) == Outcome(failed=2)
    runs = load(store.folder)
    assert runs["status"].tolist() == ["failed"] * 2
    assert runs["reason"].tolist() == ["ArithmeticError: no convergence"] * 2
    assert "Traceback" in (store.folder / runs["path"][0]).read_text()
    assert caplog.messages == [
        "breaking on sum d=3 n=20 seed 0-1 failed together, retrying each alone: "
        "ArithmeticError: no convergence",
        "breaking on sum d=3 n=20 seed 0 failed: ArithmeticError: no convergence, at "
        f"{__file__}:{line} (traceback in {spec.place(store).error(0)})",
        "breaking on sum d=3 n=20 seed 1 failed: ArithmeticError: no convergence, at "
        f"{__file__}:{line} (traceback in {spec.place(store).error(1)})",
    ]
    monkeypatch.setattr(Breaking, "healed", True)
    assert execute(spec, [0, 1], store) == Outcome(ok=2)
    assert load(store.folder)["status"].tolist() == ["ok"] * 2


def test_one_seed_that_breaks_down_does_not_take_the_others_with_it(
    store: Store, caplog: pytest.LogCaptureFixture
) -> None:
    spec = specify_fake(BreakingForOne)
    assert execute(spec, [0, 1, 2], store) == Outcome(ok=2, failed=1)
    runs = load(store.folder).set_index("seed")
    assert runs["status"].to_dict() == {0: "ok", 1: "failed", 2: "ok"}
    assert runs["reason"][1] == "loss is NaN"
    assert "breakingforone on sum d=3 n=20 seed 1 failed: loss is NaN" in caplog.text
    assert execute(spec, [0, 1, 2], store) == Outcome(failed=1)


def test_what_is_stored_is_not_run_again(store: Store) -> None:
    spec = specify_fake(Climb)
    execute(spec, [0, 1], store)
    before = spec.place(store).file(0).stat().st_mtime_ns
    assert execute(spec, [0, 1, 2], store) == Outcome(ok=1)
    assert spec.place(store).file(0).stat().st_mtime_ns == before


def test_a_method_gets_no_more_seeds_at_once_than_it_wants_and_a_fresh_object_each_time(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Whole, "batches", [])
    assert execute(specify_fake(Whole), range(5), store) == Outcome(ok=5)
    assert Whole.batches == [(0, 1), (2, 3), (4,)]


def test_finished_batches_stay_when_a_later_one_is_interrupted(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    fit = Whole.fit

    def interrupt(self: Whole, data: Dataset, rng: Streams) -> None:
        if 2 in rng.seeds:
            raise KeyboardInterrupt("by hand")
        fit(self, data, rng)

    monkeypatch.setattr(Whole, "fit", interrupt)
    spec = specify_fake(Whole)
    with pytest.raises(KeyboardInterrupt, match="by hand"):
        execute(spec, range(5), store)
    assert store.missing(spec.place(store), range(5)) == [2, 3, 4]
    assert not list(store.folder.rglob("*.error.json"))


def test_a_method_for_one_seed_is_looped_over(store: Store) -> None:
    records = run(specify_fake(OneByOne), [0, 1], store)
    for record in records.values():
        assert record.row["status"] == "ok"
        assert record.curves["iteration"].tolist() == [0, 1]
        assert record.predictions is not None
        assert record.designs is not None
        assert np.array_equal(record.predictions[-1], record.designs[:, 0])


def test_a_proposal_is_copied_before_the_method_goes_on(store: Store) -> None:
    record = run(specify_fake(Mutating), [0], store)[0]
    assert record.predictions is not None
    assert getattr(record, "values").tolist() == [[0.0] * 5, [3.0] * 5]  # noqa: B009
    assert record.predictions.tolist() == [[0.0] * 5, [1.0] * 5]


def test_a_prediction_cannot_change_the_design_it_is_about(store: Store) -> None:
    spoilt = run(specify_fake(PredictingInPlace), [0], store)[0]
    clean = run(specify_fake(Echo), [0], store)[0]
    assert np.array_equal(spoilt.designs, clean.designs)  # type: ignore[arg-type]


def test_iterations_count_from_zero_unless_the_method_numbers_them() -> None:
    x = torch.zeros(2, 4, 3)
    trajectory = collect_fixed(Proposal(x), Proposal(x), Proposal(x, iteration=50), Proposal(x))
    assert trajectory.iterations == [0, 1, 50, 51]


def test_fewer_designs_than_starts_may_be_proposed() -> None:
    assert collect_fixed(Proposal(torch.zeros(2, 1, 3))).designs[0].shape == (2, 1, 3)


@pytest.mark.parametrize(
    "shape", [(2, 5, 3), (2, 0, 3), (1, 4, 3), (2, 4, 2), (4, 3), (2, 4, 3, 1)]
)
def test_a_proposal_of_the_wrong_shape_is_refused(shape: tuple[int, ...]) -> None:
    with pytest.raises(ValueError, match=r"must be \(S=2, at most K=4, d=3\), got \("):
        collect_fixed(Proposal(torch.zeros(shape)))


def test_the_number_of_designs_may_not_change_on_the_way() -> None:
    with pytest.raises(ValueError, match=r"shape of the first, \(2, 4, 3\), got \(2, 3, 3\)"):
        collect_fixed(Proposal(torch.zeros(2, 4, 3)), Proposal(torch.zeros(2, 3, 3)))


@pytest.mark.parametrize("shape", [(4,), (2, 4, 1), (2, 1), (1, 4)])
def test_a_prediction_of_the_wrong_shape_is_refused(shape: tuple[int, ...]) -> None:
    with pytest.raises(ValueError, match=r"predictions must be \(S, K\) = \(2, 4\), got \("):
        collect_fixed(Proposal(torch.zeros(2, 4, 3), torch.zeros(shape)))


@pytest.mark.parametrize("second", [4, 5])
def test_iterations_must_increase(second: int) -> None:
    x = torch.zeros(2, 4, 3)
    with pytest.raises(ValueError, match=f"iterations must increase, got {second} after 5"):
        collect_fixed(Proposal(x, iteration=5), Proposal(x, iteration=second))


def test_a_method_that_proposes_nothing_is_refused() -> None:
    with pytest.raises(ValueError, match=r"proposed nothing; propose\(\) must yield at least once"):
        collect_fixed()


def test_a_method_without_predictions_is_scored_without_them(store: Store) -> None:
    record = run(specify_fake(Echo), [0], store)[0]
    assert record.predictions is None
    assert np.isnan(record.row["predicted_final"])
    assert np.isfinite(record.row["final_model"])


def test_an_unknown_optimum_leaves_the_regret_unknown(store: Store) -> None:
    spec = specify_fake(Echo)
    config = spec.config | {"task": spec.config["task"] | {"optimum": None}}
    record = run(replace(spec, config=config), [0], store)[0]
    assert np.isnan([record.row["optimum"], record.row["regret_final"]]).all()
    assert np.isfinite(record.row["final_model"])


def test_a_one_seed_method_refuses_a_batch() -> None:
    data = Sum(d=3, n=20).problem([0, 1]).data
    with pytest.raises(ValueError, match="a one-seed method was given 2 seeds at once"):
        OneByOne().fit(data, Streams([0, 1], "method"))


def test_each_batch_is_reported_as_it_ends(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    heard: list[object] = []

    class Ear(progress.Silent):
        def begin(self, work: str) -> None:
            heard.append(work)

        def finish(self, runs: int) -> None:
            heard.append(runs)

    monkeypatch.setattr(progress, "_active", Ear())
    execute(specify_fake(Whole), range(3), store)
    work = "whole on sum d=3 n=20 seed"
    assert heard == [f"{work} 0-1", 2, f"{work} 2", 1]


def test_seconds_are_shared_by_the_seeds_of_a_batch(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = iter([0.0, 8.0, 20.0, 21.0])
    monkeypatch.setattr("ddobench.runner.run.time.perf_counter", lambda: next(clock))
    execute(specify_fake(Echo), range(4), store)
    runs = load(store.folder)
    for part, seconds in (("fit", 2.0), ("propose", 3.0), ("evaluate", 0.25)):
        assert runs[f"seconds_{part}"].tolist() == [seconds] * 4


def test_outcomes_add_up() -> None:
    total = Outcome(ok=1, failed=2) + Outcome(ok=3, declined=4)
    assert total == Outcome(ok=4, declined=4, failed=2)
    assert total.runs == 10


def test_finished_runs_are_not_worth_a_warning(
    store: Store, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.INFO):
        execute(specify_fake(Climb), [0, 1], store)
    assert caplog.messages == []


def test_a_run_tells_when_it_was_finished_and_not_when_it_began(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    ended: list[datetime] = []

    def slowly(*arguments: Any) -> list[Record]:
        records = run_seeds(*arguments)
        time.sleep(1.1)  # the stamp has whole seconds
        ended.append(datetime.now(UTC).replace(microsecond=0))
        return records

    monkeypatch.setattr(batches, "run_seeds", slowly)
    execute(specify_fake(Climb), [0, 1], store)
    stamps = [datetime.fromisoformat(stamp) for stamp in load(store.folder)["finished"]]
    assert len(stamps) == 2
    assert all(stamp >= ended[0] for stamp in stamps)


class Cursed(Climb):
    """Breaks down whenever one seed is there, or leaves by the back door."""

    name: ClassVar[str] = "cursed"
    curse: ClassVar[BaseException] = ArithmeticError("cursed")

    def fit(self, data: Dataset, rng: Streams) -> None:
        """Look at the seeds first."""
        if 1 in rng.seeds:
            raise self.curse
        super().fit(data, rng)


@pytest.mark.parametrize(
    ("curse", "reason"),
    [(ArithmeticError("cursed"), "ArithmeticError: cursed"), (SystemExit(0), "SystemExit: 0")],
)
def test_a_batch_that_breaks_for_one_seed_is_run_one_by_one_and_only_that_seed_fails(
    store: Store, monkeypatch: pytest.MonkeyPatch, curse: BaseException, reason: str
) -> None:
    monkeypatch.setattr(Cursed, "curse", curse)
    assert execute(specify_fake(Cursed), [0, 1, 2], store) == Outcome(ok=2, failed=1)
    runs = load(store.folder).set_index("seed")
    assert runs["status"].to_dict() == {0: "ok", 1: "failed", 2: "ok"}
    assert runs["reason"][1] == reason
