"""Auto: uses the candidate that ranks the best rows best, or the best visible design."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

import pytest
import torch
from torch import Tensor

from ddobench.baselines.auto import Auto
from ddobench.cli.hooks import specify_points
from ddobench.contracts import Dataset, Method, Proposal, Space
from ddobench.errors import UsageError
from ddobench.rng import Streams

SEEDS = [3, 4, 5]


@dataclass(kw_only=True)
class Believer(Method):
    """Predicts that the value is a given coordinate, and climbs it."""

    name: ClassVar[str] = "believer"

    column: int
    steps: int = 1

    def declines(self, data: Dataset) -> str | None:
        return "it knows no such variable" if self.column >= data.space.d else None

    def fit(self, data: Dataset, rng: Streams) -> None:
        self.rows = data.n
        self.drawn = rng.child("draw").uniform(1)

    def propose(self, starts: Tensor, rng: Streams) -> Iterator[Proposal]:  # noqa: ARG002
        for _ in range(self.steps + 1):
            yield Proposal(starts, self.predict(starts))
            starts = starts + torch.eye(starts.shape[2], dtype=starts.dtype)[self.column]

    def predict(self, x: Tensor) -> Tensor:
        return x[..., self.column]


def make_data(columns: list[int], n: int = 200) -> Dataset:
    """Return a table in which the value of each seed is one of the coordinates."""
    x = Streams(SEEDS, "test/x").normal(n, 3, dtype=torch.float64)
    y = torch.stack([rows[:, column] for rows, column in zip(x, columns, strict=True)])
    return Dataset(x=x, y=y, space=Space(3))


def make_auto(**candidates: Method) -> Auto:
    believers = {"first": Believer(column=0), "second": Believer(column=1, steps=3)}
    return Auto(candidates=candidates or believers)


def fit(data: Dataset, **candidates: Method) -> Auto:
    auto = make_auto(**candidates)
    auto.fit(data, Streams(SEEDS, "method/fit"))
    return auto


def test_each_seed_gets_the_candidate_that_ranks_its_best_rows() -> None:
    report = fit(make_data([0, 1, 0])).diagnostics()
    assert [one["chosen"] for one in report] == ["first", "second", "first"]
    for one in report:
        chosen = [report for report in one["candidates"] if report["chosen"]]
        assert [entry["candidate"] for entry in chosen] == [one["chosen"]]
        assert chosen[0]["held_out_top_rank"] == pytest.approx(1.0)
        assert chosen[0]["held_out_error"] == pytest.approx(0.0)


def test_the_chosen_candidate_is_fitted_to_all_rows() -> None:
    auto = fit(make_data([0, 0, 0]))
    assert isinstance(auto.candidates["first"], Believer)
    assert auto.candidates["first"].rows == 200
    assert isinstance(auto.candidates["second"], Believer)
    assert auto.candidates["second"].rows == 180


def test_the_best_visible_design_is_proposed_if_no_candidate_is_better_than_chance() -> None:
    data = make_data([2, 2, 2])
    auto = fit(data)
    assert {one["chosen"] for one in auto.diagnostics()} == {"naive"}
    starts = data.x[:, :5]
    for proposal in auto.propose(starts, Streams(SEEDS, "method/propose")):
        assert torch.equal(proposal.designs, data.best()[:, None].expand_as(starts))


def test_seeds_that_chose_differently_propose_side_by_side() -> None:
    data = make_data([0, 1, 2])
    starts = data.x[:, :5]
    proposals = list(fit(data).propose(starts, Streams(SEEDS, "method/propose")))
    assert len(proposals) == 4
    last = proposals[-1].designs
    torch.testing.assert_close(last[0, :, 0], starts[0, :, 0] + 1)
    torch.testing.assert_close(last[1, :, 1], starts[1, :, 1] + 3)
    assert torch.equal(last[2], data.best()[2].expand(5, 3))


@pytest.mark.parametrize("columns", [[0, 0, 0], [0, 1, 2], [2, 2, 2]])
def test_the_number_of_iterations_does_not_depend_on_the_choices(columns: list[int]) -> None:
    data = make_data(columns)
    proposals = list(fit(data).propose(data.x[:, :5], Streams(SEEDS, "method/propose")))
    assert len(proposals) == 4  # those of the longer candidate


def test_a_candidate_proposes_as_it_would_by_itself() -> None:
    data = make_data([0, 0, 0])
    auto, alone = fit(data), Believer(column=0)
    alone.fit(data, Streams(SEEDS, "method/fit"))
    chosen = auto.candidates["first"]
    assert isinstance(chosen, Believer)
    assert torch.equal(chosen.drawn, alone.drawn)


def test_the_reason_of_a_candidate_that_declines_is_recorded() -> None:
    report = fit(
        make_data([0, 0, 0]), other=Believer(column=7), first=Believer(column=0)
    ).diagnostics()
    reasons = {entry["candidate"]: entry["reason"] for entry in report[0]["candidates"]}
    assert reasons == {"other": "it knows no such variable", "first": ""}
    assert report[0]["chosen"] == "first"


def test_too_few_rows_choose_no_candidate() -> None:
    report = fit(make_data([0, 0, 0], n=50)).diagnostics()
    assert {one["chosen"] for one in report} == {"naive"}
    assert "fewer than 20 rows" in report[0]["candidates"][0]["reason"]


@pytest.mark.parametrize(
    ("rows", "hidden"), [(10_000, 1000), (200, 20), (100, 20), (40, 20), (39, 4)]
)
def test_at_least_twenty_rows_are_hidden_if_possible(rows: int, hidden: int) -> None:
    (spec,) = specify_points([["method=auto", "task=chain", f"n={rows}"]])
    percentile = spec.config["method"]["percentile"]
    assert rows - round(rows * percentile / 100) == hidden
    assert spec.method_variant == ""


def test_what_cannot_be_is_refused() -> None:
    with pytest.raises(UsageError, match=r"method\.candidates must name at least one"):
        Auto(candidates={})
    with pytest.raises(UsageError, match=r"method\.percentile must be between 0 and 100"):
        Auto(candidates={"first": Believer(column=0)}, percentile=100.0)


def test_categories_have_two_more_candidates() -> None:
    rng = Streams(SEEDS, "test/categories")
    x = rng.integers(4, 600, 5).to(torch.float64)
    cells = rng.child("cells").normal(2, 16, dtype=torch.float64)  # of the pairs (0, 1) and (2, 3)
    places = (4 * x[..., 0::2][..., :2] + x[..., 1::2]).long()  # (S, N, 2)
    y = sum(cells[:, pair].gather(1, places[..., pair]) for pair in range(2))
    assert isinstance(y, Tensor)
    data = Dataset(x=x, y=y, space=Space(5, (4,) * 5))
    auto = fit(data, first=Believer(column=4))
    report = auto.diagnostics()
    assert [one["candidate"] for one in report[0]["candidates"]] == ["first", "linear", "pairs"]
    assert {one["chosen"] for one in report} == {"pairs"}
    *_, last = auto.propose(x[:, :4], Streams(SEEDS, "method/propose"))
    assert last.predicted is not None
    torch.testing.assert_close(
        last.predicted[:, 0], cells.amax(dim=2).sum(dim=1), atol=0.1, rtol=0.0
    )
    continuous = fit(make_data([0, 1, 0])).diagnostics()
    assert [one["candidate"] for one in continuous[0]["candidates"]] == ["first", "second"]
