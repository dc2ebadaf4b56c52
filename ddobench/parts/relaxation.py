"""Categorical designs as real codes, and back, for methods that need gradients.

Design-Bench (Trabucco, Geng, Kumar, Levine 2022) represents a variable with q categories by q - 1
logits: the logarithm of its one-hot code mixed with some uniform mass, minus that of category 0.
For one-hot h this is log(1 + 1.5 q) (h_k - h_0) at its mass of 0.4. As codes are standardised
afterwards, neither the factor nor the mass has an effect. So the codes here are h_k - h_0, k >= 1
(`logits`, the default: a bit has one code), or all of h (`onehot`). Decoding takes the largest
code, with a logit of 0 for category 0, so that a decoded design always has whole categories.

The pipeline relaxes designs itself; `RelaxedMethod` does so for methods without parts.
"""

from abc import abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from ddobench.contracts import Dataset, Method, Privileged, Proposal, Space
from ddobench.errors import check_one_of
from ddobench.graphs import Graph
from ddobench.rng import Streams

RELAXATIONS = ("logits", "onehot")


@dataclass(frozen=True)
class Relaxation:
    """The map from categories to codes, and back to the category with the largest code."""

    sizes: tuple[int, ...]  # categories of each variable
    variables: Tensor  # (e,) the variable of each code
    levels: Tensor  # (e,) and its category

    @classmethod
    def of(cls, space: Space, kind: str = "logits") -> "Relaxation":
        """Return the relaxation of a categorical space."""
        assert space.sizes is not None
        check_one_of("method.relaxation", kind, RELAXATIONS)
        first = 1 if kind == "logits" else 0  # category 0 is the reference, or has a code too
        codes = [(i, k) for i, size in enumerate(space.sizes) for k in range(first, size)]
        variables, levels = torch.tensor(codes, dtype=torch.int64).view(-1, 2).unbind(dim=1)
        return cls(space.sizes, variables, levels)

    def encode(self, x: Tensor) -> Tensor:  # (S, K, d) -> (S, K, e)
        """Return the codes of categories."""
        entries = x[..., self.variables]  # (S, K, e)
        codes = (entries == self.levels).to(torch.float64)
        return codes if self._has_all else codes - (entries == 0).to(codes)

    def decode(self, codes: Tensor) -> Tensor:  # (S, K, e) -> (S, K, d)
        """Return the category with the largest code, variable by variable."""
        table = self.tabulate(codes.to(torch.float64).nan_to_num(-torch.inf))
        return table.argmax(dim=-1).to(torch.float64)

    def tabulate(self, codes: Tensor) -> Tensor:  # (S, K, e) -> (S, K, d, q)
        """Return the codes of each category, with 0 for a reference and minus infinity for none."""
        shape = (*codes.shape[:2], len(self.sizes), max(self.sizes))
        table = codes.new_full(shape, -torch.inf)
        table[..., 0] = 0.0
        table[..., self.variables, self.levels] = codes
        return table

    def relax(self, data: Dataset) -> Dataset:
        """Return the table with codes in place of categories."""
        known = data.privileged.graphs
        graphs = None if known is None else tuple(map(self.lift, known))
        return replace(
            data,
            x=self.encode(data.x),
            space=Space(len(self.levels)),
            privileged=Privileged(graphs=graphs),
        )

    def lift(self, graph: Graph) -> Graph:
        """Return the graph of codes for a graph of variables; codes of a variable are joined."""
        own: list[list[int]] = [[] for _ in self.sizes]
        for code, variable in enumerate(self.variables.tolist()):
            own[variable].append(code)
        cliques = [[code for i in clique for code in own[i]] for clique in graph.cliques]
        return Graph.from_cliques(len(self.levels), cliques)

    @property
    def _has_all(self) -> bool:
        """Whether category 0 has a code too."""
        return len(self.levels) == sum(self.sizes)


@dataclass(kw_only=True)
class RelaxedMethod(Method):
    """A method without parts that works on continuous designs.

    Categorical designs are relaxed for it, and its proposals are decoded to categories, whose value
    it then predicts.
    """

    relaxation: str = "logits"

    def __post_init__(self) -> None:
        check_one_of("method.relaxation", self.relaxation, RELAXATIONS)

    @abstractmethod
    def fit_codes(self, data: Dataset, rng: Streams) -> None:
        """Fit a continuous table."""

    @abstractmethod
    def propose_codes(self, starts: Tensor, rng: Streams) -> Iterator[Proposal]:
        """Yield continuous designs at each iteration, given visible ones (S, K, e)."""

    def predict_codes(self, x: Tensor) -> Tensor | None:  # noqa: ARG002 - a default for all methods
        """Return the value of continuous designs (S, K, e) by the model, (S, K), or None."""
        return None

    def count_codes(self, space: Space) -> int:
        """Return the number of codes of a design."""
        relaxed = self._relax(space)
        return space.d if relaxed is None else len(relaxed.levels)

    def fit(self, data: Dataset, rng: Streams) -> None:
        """Fit the table, relaxed if designs are categorical."""
        self._relaxed = self._relax(data.space)
        self.fit_codes(data if self._relaxed is None else self._relaxed.relax(data), rng)

    def propose(self, starts: Tensor, rng: Streams) -> Iterator[Proposal]:
        """Yield designs, decoded if they are categorical."""
        for proposal in self.propose_codes(self._encode(starts), rng):
            if self._relaxed is None:
                yield proposal
            else:
                designs = self._relaxed.decode(proposal.designs)
                yield Proposal(designs, iteration=proposal.iteration)

    def predict(self, x: Tensor) -> Tensor | None:  # (S, K, d) -> (S, K)
        """Return the value of designs by the model."""
        return self.predict_codes(self._encode(x))

    def _relax(self, space: Space) -> Relaxation | None:
        return Relaxation.of(space, self.relaxation) if space.categorical else None

    def _encode(self, x: Tensor) -> Tensor:  # (S, K, d) -> (S, K, e)
        return x if self._relaxed is None else self._relaxed.encode(x)
