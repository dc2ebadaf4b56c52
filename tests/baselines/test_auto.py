"""Auto: uses the candidate that predicts hidden rows best and stays near them, or no candidate."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import pytest
import torch
from torch import Tensor

import ddobench.baselines.auto as auto_module
from ddobench.baselines.auto import Auto, thin_rows
from ddobench.cli.hooks import specify_points
from ddobench.contracts import Dataset, Method, Proposal, Space
from ddobench.errors import UsageError
from ddobench.parts.choosing import Trial, take_seeds
from ddobench.planes import LocalPlanes, Values
from ddobench.rng import Streams

SEEDS = [3, 4, 5]


@dataclass(kw_only=True)
class Believer(Method):
    """Predicts that the value is a given coordinate, and climbs it."""

    name: ClassVar[str] = "believer"

    column: int
    steps: int = 1
    stride: float = 0.1
    scale: float = 1.0  # of its predictions
    bias: float | Tensor = 0.0  # of its predictions of designs that are no rows

    def declines(self, data: Dataset) -> str | None:
        return "it knows no such variable" if self.column >= data.space.d else None

    def fit(self, data: Dataset, rng: Streams) -> None:
        self.rows = data.n
        self.drawn = rng.child("draw").uniform(1)

    def propose(self, starts: Tensor, rng: Streams) -> Iterator[Proposal]:  # noqa: ARG002
        for _ in range(self.steps + 1):
            yield Proposal(starts, self.predict(starts) + self.bias)
            move = torch.eye(starts.shape[2], dtype=starts.dtype)[self.column]
            starts = starts + self.stride * move

    def predict(self, x: Tensor) -> Tensor:
        return self.scale * x[..., self.column]


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


def chosen(auto: Auto) -> list[str]:
    return [one["chosen"] for one in auto.diagnostics()]


def judged(auto: Auto, name: str, seed: int = 0) -> dict[str, Any]:
    (one,) = [x for x in auto.diagnostics()[seed]["candidates"] if x["candidate"] == name]
    return dict(one)


def test_each_seed_gets_the_candidate_that_predicts_its_hidden_rows() -> None:
    report = fit(make_data([0, 1, 0])).diagnostics()
    assert [one["chosen"] for one in report] == ["first", "second", "first"]
    for one in report:
        (entry,) = [entry for entry in one["candidates"] if entry["chosen"]]
        assert entry["candidate"] == one["chosen"]
        assert entry["held_out_top_rank"] == pytest.approx(1.0)
        assert entry["held_out_error"] == pytest.approx(0.0)
        assert entry["off_surface"] <= 1
        assert entry["nearest"] <= 1


def test_the_smaller_error_is_chosen_at_equal_ranks_whatever_the_order() -> None:
    shrunk, right = Believer(column=0, scale=0.5), Believer(column=0)
    for candidates in ({"shrunk": shrunk, "right": right}, {"right": right, "shrunk": shrunk}):
        auto = fit(make_data([0, 0, 0]), **candidates)
        assert chosen(auto) == ["right"] * 3
        ranks = [judged(auto, name)["held_out_top_rank"] for name in ("right", "shrunk")]
        assert ranks == pytest.approx([1.0, 1.0])


def test_the_chosen_candidate_is_fitted_to_all_rows_and_others_to_those_not_hidden() -> None:
    auto = fit(make_data([0, 0, 0]))
    assert isinstance(auto.candidates["first"], Believer)
    assert auto.candidates["first"].rows == 200
    assert isinstance(auto.candidates["second"], Believer)
    assert auto.candidates["second"].rows == 160


def test_a_large_table_is_judged_by_some_of_its_rows_and_others_by_all_of_theirs(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    data = make_data([0, 1, 0])
    before = fit(data).diagnostics()
    for most, shown in ((200, 160), (199, 159), (100, 60)):
        monkeypatch.setattr(auto_module, "MOST_ROWS", most)
        full, quick = Believer(column=0), Believer(column=0)
        auto = Auto(candidates={"first": full}, trials={"first": quick})
        auto.fit(data, Streams(SEEDS, "method/fit"))
        assert (full.rows, quick.rows) == (200, shown)
        assert (fit(data).diagnostics() == before) == (most == 200)


def test_rows_to_judge_by_are_evenly_spaced_by_value_with_the_best_among_them() -> None:
    data = make_data([0, 1, 2])
    assert thin_rows(data, 200) is data
    some = thin_rows(data, 50)
    assert torch.equal(some.y, data.y.sort(dim=1, descending=True).values[:, ::4])
    assert torch.equal(some.x[1, :, 1], some.y[1])


def test_the_best_visible_design_is_proposed_if_no_candidate_is_better_than_chance() -> None:
    data = make_data([2, 2, 2])
    auto = fit(data)
    assert chosen(auto) == ["naive"] * 3
    assert all(
        "no better than their mean" in judged(auto, x)["reason"] for x in ("first", "second")
    )
    starts = data.x[:, :5]
    (proposal,) = auto.propose(starts, Streams(SEEDS, "method/propose"))
    assert torch.equal(proposal.designs, data.best()[:, None].expand_as(starts))


def test_a_candidate_whose_designs_leave_the_rows_loses_to_the_next() -> None:
    far, near = Believer(column=0, stride=9.0), Believer(column=0, scale=0.9)
    auto = fit(make_data([0, 0, 0]), far=far, near=near)
    assert chosen(auto) == ["near"] * 3
    assert judged(auto, "far")["nearest"] > 1
    assert "times as far" in judged(auto, "far")["reason"]
    assert judged(auto, "near")["reason"] == ""


def test_designs_off_the_planes_of_rows_lose_only_where_rows_lie_on_a_surface(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def ratios(_: LocalPlanes, designs: Values) -> tuple[Values, Values]:
        return np.full(len(designs), 1.5), np.full(len(designs), 0.5)

    monkeypatch.setattr(LocalPlanes, "ratios", ratios)
    data = make_data([0, 0, 0])
    for filled, name in ((0.6, "first"), (2.0, "naive")):
        auto = Auto(candidates={"first": Believer(column=0)}, filled=filled)
        auto.fit(data, Streams(SEEDS, "method/fit"))
        assert chosen(auto) == [name] * 3
        list(auto.propose(data.x[:, :5], Streams(SEEDS, "method/propose")))
        assert [one["kept_designs"] for one in auto.diagnostics()] == [1.0] * 3


def test_a_promise_that_the_error_cannot_carry_loses_to_the_best_row() -> None:
    data = make_data([0, 0, 0])
    auto = fit(data, boaster=Believer(column=0, scale=0.5, bias=100.0))
    assert chosen(auto) == ["naive"] * 3
    entry = judged(auto, "boaster")
    assert "its held-out error carries" in entry["reason"]
    assert entry["carried_gain"] < entry["promised_gain"]


def test_a_candidate_that_expects_a_loss_loses_to_the_best_row() -> None:
    auto = fit(make_data([0, 0, 0]), humble=Believer(column=0, bias=-5.0))
    assert chosen(auto) == ["naive"] * 3
    assert "sd below the best row" in judged(auto, "humble")["reason"]


def test_a_predicted_gain_is_shrunk_by_the_held_out_error() -> None:
    data = make_data([0, 0, 0])
    auto = fit(data, bold=Believer(column=0, scale=1.2, bias=1.0))
    (entry,) = auto.diagnostics()[0]["candidates"]
    assert 0.01 < entry["held_out_error"] < 0.1
    best = data.x[:, data.y[0].argmax()][:, None]  # (S, 1, d)
    (proposal,) = auto.propose(best, Streams(SEEDS, "method/propose"))
    assert proposal.predicted is not None
    top = data.y[0].max()
    bare = 1.2 * proposal.designs[0, 0, 0] + 1.0
    expected = top + (bare - top) * (1 - entry["held_out_error"])
    torch.testing.assert_close(proposal.predicted[0, 0], expected)


def test_final_designs_that_leave_the_rows_are_replaced() -> None:
    data = make_data([0, 0, 0])
    auto = fit(data, first=Believer(column=0))
    starts = data.x[:, :5].clone()
    starts[0, 1:] += 50.0
    starts[1] += 50.0
    (proposal,) = auto.propose(starts, Streams(SEEDS, "method/propose"))
    moved = torch.tensor([0.1, 0.0, 0.0], dtype=torch.float64)
    torch.testing.assert_close(proposal.designs[0], (starts[0, :1] + moved).expand(5, 3))
    assert torch.equal(proposal.designs[1], data.best()[1].expand(5, 3))
    torch.testing.assert_close(proposal.designs[2], starts[2] + moved)
    assert proposal.predicted is not None
    torch.testing.assert_close(proposal.predicted[1], data.y[1].max().expand(5))
    assert [one["kept_designs"] for one in auto.diagnostics()] == [0.2, 0.0, 1.0]


def test_final_designs_that_promise_too_much_are_replaced() -> None:
    data = make_data([0, 0, 0])
    believer = Believer(column=0, scale=0.9)
    auto = fit(data, first=believer)
    starts = data.x[:, :5].clone()
    believer.bias = torch.tensor([[0, 1e3, 0, 0, 0], [1e3] * 5, [0] * 5])
    (proposal,) = auto.propose(starts, Streams(SEEDS, "method/propose"))
    assert [one["kept_designs"] for one in auto.diagnostics()] == [0.8, 0.0, 1.0]
    assert proposal.predicted is not None
    assert proposal.predicted.max() < 10
    torch.testing.assert_close(proposal.predicted[1], data.y[1].max().expand(5))
    assert torch.equal(proposal.designs[1], data.best()[1].expand(5, 3))


def test_seeds_that_chose_differently_propose_side_by_side() -> None:
    data = make_data([0, 1, 2])
    starts = data.x[:, :5]
    (last,) = fit(data).propose(starts, Streams(SEEDS, "method/propose"))
    torch.testing.assert_close(last.designs[0, :, 0], starts[0, :, 0] + 0.1)
    torch.testing.assert_close(last.designs[1, :, 1], starts[1, :, 1] + 0.3)
    assert torch.equal(last.designs[2], data.best()[2].expand(5, 3))


def test_a_candidate_proposes_as_it_would_by_itself() -> None:
    data = make_data([0, 0, 0])
    auto, alone = fit(data), Believer(column=0)
    alone.fit(data, Streams(SEEDS, "method/fit"))
    chosen = auto.candidates["first"]
    assert isinstance(chosen, Believer)
    assert torch.equal(chosen.drawn, alone.drawn)


def test_a_candidate_that_takes_long_is_judged_by_its_trial_and_used_itself() -> None:
    full, quick = Believer(column=0), Believer(column=0)
    auto = Auto(candidates={"first": full}, trials={"first": quick}, names={"first": "first d=1"})
    auto.fit(make_data([0, 0, 0]), Streams(SEEDS, "method/fit"))
    assert (full.rows, quick.rows) == (200, 160)
    assert chosen(auto) == ["first d=1"] * 3


def test_candidates_for_surfaces_are_considered_only_there() -> None:
    data = make_data([0, 0, 0], n=400)
    bent = data.x.clone()
    for column in (1, 2):
        bent[0, :, column] = torch.sin(bent[0, :, 0] + column)
    wide = torch.cat([bent, bent.square(), bent.cos()], dim=2)  # seed 0: a curve in nine columns
    wide[1:] = Streams(SEEDS[1:], "test/wide").normal(400, 9, dtype=torch.float64)
    y = wide[..., 0]
    auto = Auto(candidates={"first": Believer(column=1)}, on_surfaces={"bent": Believer(column=0)})
    auto.fit(Dataset(x=wide, y=y, space=Space(9)), Streams(SEEDS, "method/fit"))
    assert judged(auto, "bent", 0)["held_out_error"] == pytest.approx(0.0)
    assert "these fill their space" in judged(auto, "bent", 1)["reason"]


def test_a_seed_does_not_depend_on_its_companions() -> None:
    data = make_data([0, 1, 2])
    auto = fit(data)
    (together,) = auto.propose(data.x[:, :5], Streams(SEEDS, "method/propose"))
    alone = make_auto()
    alone.fit(take_seeds(data, [1]), Streams(SEEDS[1:2], "method/fit"))
    (one,) = alone.propose(data.x[1:2, :5], Streams(SEEDS[1:2], "method/propose"))
    assert torch.equal(one.designs[0], together.designs[1])
    assert alone.diagnostics()[0]["chosen"] == auto.diagnostics()[1]["chosen"]


def test_the_reason_of_a_candidate_that_declines_is_recorded() -> None:
    report = fit(
        make_data([0, 0, 0]), other=Believer(column=7), first=Believer(column=0)
    ).diagnostics()
    reasons = {entry["candidate"]: entry["reason"] for entry in report[0]["candidates"]}
    assert reasons == {"other": "it knows no such variable", "first": ""}
    assert report[0]["chosen"] == "first"


def test_too_few_rows_choose_no_candidate() -> None:
    report = fit(make_data([0, 0, 0], n=39)).diagnostics()
    assert {one["chosen"] for one in report} == {"naive"}
    assert "fewer than 20 rows" in report[0]["candidates"][0]["reason"]


@pytest.mark.parametrize(("rows", "hidden"), [(10_000, 1000), (200, 40), (100, 40), (40, 20)])
def test_half_of_the_hidden_rows_are_among_the_best(rows: int, hidden: int) -> None:
    data = make_data([0, 0, 0], n=rows)
    trial = Trial.among(data, 90.0, 20)
    assert trial.y.shape == (3, hidden)
    assert trial.shown.n == rows - hidden
    best = data.y.sort(dim=1, descending=True).values[:, :hidden]
    assert torch.equal(trial.y[:, : hidden // 2], best[:, 1::2])
    both = torch.cat([trial.y, trial.shown.y], dim=1)
    assert torch.equal(both.sort(dim=1).values, data.y.sort(dim=1).values)


def test_every_candidate_is_named_as_one_can_type_it() -> None:
    (spec,) = specify_points([["method=auto", "task=chain"]])
    method = spec.config["method"]
    for key, built in {**method["candidates"], **method["on_surfaces"]}.items():
        name, *overrides = method["names"].get(key, key).split()
        (typed,) = specify_points([[f"method={name}", *overrides, "task=chain"]])
        parts = typed.config["method"]
        assert {k: v for k, v in parts.items() if k != "card"} == built


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
    assert [one["candidate"] for one in report[0]["candidates"]] == [
        "first",
        "linear",
        "fgm graph=pairs",
    ]
    assert {one["chosen"] for one in report} == {"fgm graph=pairs"}
    *_, last = auto.propose(x[:, :4], Streams(SEEDS, "method/propose"))
    assert last.predicted is not None
    torch.testing.assert_close(
        last.predicted[:, 0], cells.amax(dim=2).sum(dim=1), atol=0.1, rtol=0.0
    )
    continuous = fit(make_data([0, 1, 0])).diagnostics()
    assert [one["candidate"] for one in continuous[0]["candidates"]] == ["first", "second"]
