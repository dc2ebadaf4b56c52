"""Settings chosen on visible rows: the rows, the rules, and the record."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar

import pytest
import torch
from torch import Tensor

from ddobench.check.method_promises import companions
from ddobench.check.promises import Subject
from ddobench.contracts import Dataset, Hidden, Method, Privilege, Privileged, Proposal, Space
from ddobench.errors import UsageError
from ddobench.graphs import Graph
from ddobench.parts.choosing import Selected, Trial
from ddobench.rng import Streams
from tests.support.catalogue import specification

SEEDS = [3, 4]


@dataclass(kw_only=True)
class Bent(Method):
    """Predicts a power of the first coordinate, and moves by a step along it."""

    name: ClassVar[str] = "bent"

    power: float = 1.0
    scale: float = 1.0
    step: float = 0.0
    asked: frozenset[Privilege] = frozenset()

    def privileges(self, space: Space) -> frozenset[Privilege]:  # noqa: ARG002
        return self.asked

    def fit(self, data: Dataset, rng: Streams) -> None:  # noqa: ARG002
        self.rows = data.n
        self.best = data.y.max(dim=1).values
        self.graphs = data.privileged.graphs

    def propose(self, starts: Tensor, rng: Streams) -> Iterator[Proposal]:  # noqa: ARG002
        yield Proposal(starts, self.predict(starts))
        moved = starts.clone()
        moved[..., 0] += self.step
        yield Proposal(moved, self.predict(moved))

    def predict(self, x: Tensor) -> Tensor:
        first = x[..., 0]
        return self.scale * first.sign() * first.abs() ** self.power


def make_data(n: int = 300) -> Dataset:
    x = Streams(SEEDS, "test/x").normal(n, 2, dtype=torch.float64)
    return Dataset(x=x, y=x[..., 0], space=Space(2))


def select(rule: str, data: Dataset, **candidates: Method) -> Selected:
    chooser = Selected(rule=rule, candidates=candidates)
    chooser.fit(data, Streams(SEEDS, "method/fit"))
    return chooser


def chosen(method: Selected) -> list[str]:
    return [report["chosen"] for report in method.diagnostics()]


def test_the_error_rule_takes_the_smallest_error_and_the_rank_rule_the_best_order() -> None:
    wide, reverse = Bent(scale=5.0), Bent(scale=-0.01)
    assert chosen(select("error", make_data(), wide=wide, reverse=reverse)) == ["reverse"] * 2
    assert chosen(select("rank", make_data(), reverse=reverse, wide=wide)) == ["wide"] * 2


def test_the_referee_rule_takes_the_search_that_ends_highest() -> None:
    method = select("referee", make_data(), still=Bent(), far=Bent(step=2.0), back=Bent(step=-1.0))
    assert chosen(method) == ["far"] * 2
    report = method.diagnostics()[0]["candidates"]
    values = {one["candidate"]: one["referee_value"] for one in report}
    assert values["far"] == pytest.approx(values["still"] + 2.0)
    assert values["back"] == pytest.approx(values["still"] - 1.0)


def test_what_is_chosen_is_fitted_to_all_rows_and_what_is_not_only_to_some() -> None:
    good, bad = Bent(), Bent(scale=-1.0)
    select("rank", make_data(), good=good, bad=bad)
    assert good.rows == 300
    assert bad.rows == 270


def test_the_rank_rule_hides_the_best_rows_and_the_error_rule_any() -> None:
    data = make_data()
    above = Trial.above(data, 90.0)
    assert above.y.shape == (2, 30)
    assert (above.y.amin(dim=1) >= above.shown.y.amax(dim=1)).all()
    anywhere = Trial.at_random(data, 90.0, Streams(SEEDS, "test/rows"))
    assert anywhere.y.shape == (2, 30)
    assert (anywhere.y.amin(dim=1) < anywhere.shown.y.amax(dim=1)).all()
    both = torch.cat([anywhere.y, anywhere.shown.y], dim=1)
    assert torch.equal(both.sort(dim=1).values, data.y.sort(dim=1).values)


def test_a_record_has_the_rule_and_all_candidates() -> None:
    for report in select("error", make_data(), one=Bent(), other=Bent(scale=2.0)).diagnostics():
        assert report["chosen_by"] == "error"
        assert [one["candidate"] for one in report["candidates"]] == ["one", "other"]
        assert [one["chosen"] for one in report["candidates"]] == [True, False]


@pytest.mark.parametrize("rule", ["error", "rank", "referee"])
def test_with_too_few_rows_the_first_candidate_is_taken(rule: str) -> None:
    method = select(rule, make_data(n=50), first=Bent(scale=-1.0), second=Bent())
    assert chosen(method) == ["first"] * 2
    assert "fewer than 20 rows" in method.diagnostics()[0]["candidates"][0]["reason"]


def test_candidates_get_the_graphs_that_they_ask_for() -> None:
    graphs = (Graph.from_edges(2, []), Graph.from_edges(2, [(0, 1)]))
    data = make_data()
    known_data = Dataset(x=data.x, y=data.y, space=data.space, privileged=Privileged(graphs=graphs))
    one = Bent(asked=frozenset({"graph"}))
    method = select("rank", known_data, one=one)
    assert method.privileges(data.space) == {"graph"}
    assert one.graphs == graphs


@pytest.mark.slow
@pytest.mark.bits
@pytest.mark.parametrize("rule", ["heldout_top", "referee"])
def test_a_seed_chooses_and_records_the_same_beside_other_seeds(rule: str) -> None:
    subject = Subject(specification("chain", "ga", f"select={rule}"))
    assert companions(subject, (7, 3), [(3,)]) is None


def test_hidden_coordinates_are_declined() -> None:
    method = Selected(rule="rank", candidates={"one": Bent(asked=frozenset({"hidden"}))})
    data = make_data()
    known = Privileged(hidden=Hidden(data.x, lambda z: z, lambda x: x))
    known_data = Dataset(x=data.x, y=data.y, space=data.space, privileged=known)
    assert "hidden coordinates are of all" in str(method.declines(known_data))


@pytest.mark.parametrize(
    ("settings", "complaint"),
    [
        ({"rule": "oracle"}, r"select\.rule must be one of error, rank, referee, got 'oracle'"),
        ({"percentile": 100.0}, r"select\.percentile must be between 0 and 100, got 100\.0"),
        ({"scouts": 0}, r"select\.scouts must be a whole number of at least 1"),
        ({"candidates": {}}, r"method\.candidates must name at least one method"),
    ],
)
def test_invalid_settings_are_refused(settings: dict[str, Any], complaint: str) -> None:
    with pytest.raises(UsageError, match=complaint):
        Selected(**{"rule": "rank", "candidates": {"one": Bent()}, **settings})
