"""Categories as real codes and back, in the pipeline and in methods without parts."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pytest
import torch
from torch import Tensor

from ddobench.baselines.ridge import AdditiveRidge, QuadraticRidge
from ddobench.baselines.units import LowRankUnits
from ddobench.contracts import Dataset, Privileged, Proposal, Space
from ddobench.errors import UsageError
from ddobench.graphs import Graph
from ddobench.models.tensors import Standardiser
from ddobench.parts.coordinates import OwnAxes
from ddobench.parts.discovery import Complete
from ddobench.parts.latents import Identity, Latent, Scores, Stitched
from ddobench.parts.pipeline import Pipeline
from ddobench.parts.relaxation import RELAXATIONS, Relaxation, RelaxedMethod
from ddobench.parts.search import Cautious, Hop, Search
from ddobench.parts.surrogates import Surrogate
from ddobench.rng import Streams
from tests.support import lineups

SEEDS = (3, 5)
SIZES = (4, 2, 3, 4)
MIXED = Space(4, SIZES)

each_kind = pytest.mark.parametrize("kind", RELAXATIONS)
RNG = Streams([0], "test")
LETTERS = Dataset(
    torch.tensor([[[0.0, 2.0], [1.0, 0.0]]]), torch.tensor([[1.0, 2.0]]), Space(2, (2, 3))
)
REALS = Dataset(LETTERS.x / 3, LETTERS.y, Space(2))


def draw(n: int = 200, sizes: tuple[int, ...] = SIZES) -> Dataset:
    """Return tables in which every category has its own value, the last ones the largest."""
    rng = Streams(SEEDS, "test/x")
    columns = [rng.child(str(i)).integers(size, n) for i, size in enumerate(sizes)]
    x = torch.stack(columns, dim=-1).to(torch.float64)
    return Dataset(x=x, y=x.sum(dim=-1), space=Space(len(sizes), sizes))


def line_up(latent: Latent, surrogate: Surrogate, search: Search) -> Pipeline:
    return Pipeline(
        latent=latent, axes=OwnAxes(), graph=Complete(), surrogate=surrogate, search=search,
        device="cpu",
    )  # fmt: skip


UNITS = LowRankUnits(first_units=4, more_units=4, first_steps=20, more_steps=20, refit_steps=20,
                     polish_steps=20, restarts=1, rounds=1)  # fmt: skip
METHODS: dict[str, Callable[[], Pipeline]] = {
    "ga": lineups.ga,
    "coms": lineups.coms,
    "rwr": lineups.rwr,
    "linear": lambda: lineups.linear(steps=20),
    "additive": lambda: line_up(Stitched(), AdditiveRidge(rotations=2), Cautious(steps=4)),
    "quadratic": lambda: line_up(Stitched(), QuadraticRidge(), Cautious(steps=4)),
    "units": lambda: line_up(Stitched(), UNITS, Hop(steps=2, hops=2, hop_steps=2)),
}


def propose(method: Pipeline, data: Dataset, seeds: tuple[int, ...] = SEEDS) -> list[Proposal]:
    method.fit(data, Streams(seeds, "method/fit"))
    return list(method.propose(data.x[:, :8], Streams(seeds, "method/propose")))


@each_kind
def test_decoding_inverts_encoding(kind: str) -> None:
    data = draw()
    relaxation = Relaxation.of(MIXED, kind)
    assert torch.equal(relaxation.decode(relaxation.encode(data.x)), data.x)


def test_a_variable_with_q_categories_has_q_minus_1_codes() -> None:
    x = torch.tensor([[[0.0, 0.0], [1.0, 1.0], [1.0, 2.0]]])
    codes = Relaxation.of(Space(2, (2, 3))).encode(x)
    assert codes[0].tolist() == [[-1.0, -1.0, -1.0], [1.0, 1.0, 0.0], [1.0, 0.0, 1.0]]
    one_hot = Relaxation.of(Space(2, (2, 3)), "onehot").encode(x)
    assert one_hot[0].tolist() == [[1, 0, 1, 0, 0], [0, 1, 0, 1, 0], [0, 1, 0, 0, 1]]


@pytest.mark.parametrize("mass", [0.1, 0.4, 0.9])
def test_the_uniform_mass_of_design_bench_has_no_effect_once_codes_are_standardised(
    mass: float,
) -> None:
    x = draw(sizes=(4, 4, 4)).x
    soft = (1 - mass) * torch.nn.functional.one_hot(x.long(), 4).double() + mass / 4
    logits = soft.log()[..., 1:] - soft.log()[..., :1]
    theirs, ours = logits.flatten(2), Relaxation.of(Space(3, (4, 4, 4))).encode(x)
    torch.testing.assert_close(
        Standardiser.of(theirs).apply(theirs), Standardiser.of(ours).apply(ours)
    )


def test_the_largest_code_wins_and_the_reference_has_zero() -> None:
    relaxation = Relaxation.of(Space(2, (3, 3)))
    codes = torch.tensor([[[0.2, 0.1, -3.0, -0.1], [-0.5, 7.0, 0.0, 0.3]]])
    assert relaxation.decode(codes)[0].tolist() == [[1.0, 0.0], [2.0, 2.0]]


@each_kind
def test_codes_of_nan_are_decoded_to_categories(kind: str) -> None:
    relaxation = Relaxation.of(MIXED, kind)
    broken = torch.full((1, 3, len(relaxation.levels)), torch.nan)
    assert MIXED.contains(relaxation.decode(broken)).all()


def test_a_graph_of_variables_becomes_one_of_codes() -> None:
    relaxation = Relaxation.of(Space(3, (3, 2, 2)))
    lifted = relaxation.lift(Graph.from_edges(3, [(0, 1)]))
    assert lifted.cliques == ((0, 1, 2), (3,))
    bits = Graph.from_edges(3, [(0, 2)])
    assert Relaxation.of(Space(3, (2, 2, 2))).lift(bits) == bits


def test_a_relaxed_table_is_continuous_with_the_same_values_and_graphs() -> None:
    graph = Graph.from_edges(4, [(0, 1)])
    data = draw()
    known = Dataset(data.x, data.y, data.space, Privileged(graphs=(graph, graph)))
    relaxed = Relaxation.of(MIXED).relax(known)
    assert relaxed.space == Space(9)
    assert relaxed.privileged.graphs is not None
    assert relaxed.privileged.graphs[0].d == 9
    assert Relaxation.of(MIXED).relax(data).privileged == Privileged()


@pytest.mark.parametrize("name", METHODS)
def test_a_method_proposes_whole_categories_with_the_value_its_model_gives_these(name: str) -> None:
    data = draw()
    method = METHODS[name]()
    assert method.declines(data) is None
    for proposal in propose(method, data):
        assert MIXED.contains(proposal.designs).all()
        predicted = method.predict(proposal.designs)
        assert proposal.predicted is not None
        assert predicted is not None
        assert torch.equal(proposal.predicted, predicted)
    assert not method.failures()
    assert len(method.diagnostics()) == 2


@each_kind
def test_an_ascent_finds_the_best_categories_of_a_sum(kind: str) -> None:
    data = draw()
    method = lineups.linear(steps=60)
    method.relaxation = kind
    last = propose(method, data)[-1].designs
    assert (last == torch.tensor(SIZES) - 1.0).all()


def test_starts_are_proposed_as_they_are_before_the_first_step() -> None:
    data = draw()
    assert torch.equal(propose(lineups.ga(), data)[0].designs, data.x[:, :8])


@pytest.mark.parametrize("latent", [Scores(), Stitched()])
def test_normal_scores_of_categories_are_their_codes_standardised(latent: Latent) -> None:
    def end(latent: Latent) -> Tensor:
        return propose(line_up(latent, QuadraticRidge(), Cautious(steps=4)), draw())[-1].designs

    assert torch.equal(end(latent), end(Identity()))


def test_too_many_features_are_declined_and_counted() -> None:
    many = Dataset(torch.zeros(1, 3000, 32), torch.zeros(1, 3000), Space(32, (32,) * 32))
    for surrogate, features in ((QuadraticRidge(), "493,520"), (AdditiveRidge(), "59,520")):
        reason = line_up(Stitched(), surrogate, Cautious()).declines(many)
        assert reason is not None
        assert reason.startswith(f"a ridge regression on 992 codes has {features} features, and")


def test_an_unknown_relaxation_is_refused() -> None:
    with pytest.raises(UsageError, match=r"^method.relaxation must be "):
        Pipeline(
            latent=Identity(), axes=OwnAxes(), graph=Complete(), surrogate=QuadraticRidge(),
            search=Cautious(), relaxation="softmax",
        )  # fmt: skip


def test_a_seed_does_not_depend_on_other_seeds() -> None:
    data = draw()
    alone = Dataset(data.x[1:], data.y[1:], data.space)
    both, one = propose(lineups.ga(), data), propose(lineups.ga(), alone, SEEDS[1:])
    np.testing.assert_array_equal(both[-1].designs[1], one[-1].designs[0])


@dataclass(kw_only=True)
class Nudge(RelaxedMethod):
    """Add a little to every code, and value designs by the first."""

    name: ClassVar[str] = "nudge"

    def fit_codes(self, data: Dataset, rng: Streams) -> None:  # noqa: ARG002
        self.seen = data

    def propose_codes(self, starts: Tensor, rng: Streams) -> Iterator[Proposal]:  # noqa: ARG002
        yield Proposal(starts + 0.1, starts[..., 0], 7)

    def predict_codes(self, x: Tensor) -> Tensor:
        return x[..., 0]


def test_categories_are_relaxed_and_decoded() -> None:
    method = Nudge()
    method.fit(LETTERS, RNG)
    assert not method.seen.space.categorical
    assert method.seen.space.d == 3  # one code of the bit, two of the letter
    (proposal,) = method.propose(LETTERS.x, RNG)
    assert torch.equal(proposal.designs, LETTERS.x)
    assert proposal.iteration == 7
    assert proposal.predicted is None  # what was predicted of codes is not true of categories
    assert torch.equal(method.predict(LETTERS.x), torch.tensor([[-1.0, 1.0]], dtype=torch.float64))  # type: ignore[arg-type]


def test_real_designs_are_not_changed() -> None:
    method = Nudge()
    method.fit(REALS, RNG)
    assert method.seen is REALS
    (proposal,) = method.propose(REALS.x, RNG)
    assert torch.equal(proposal.designs, REALS.x + 0.1)
    assert proposal.predicted is not None


def test_an_unknown_relaxation_of_a_method_without_parts_is_refused() -> None:
    with pytest.raises(UsageError, match=r"relaxation must be one of logits, onehot, got 'bits'"):
        Nudge(relaxation="bits")
