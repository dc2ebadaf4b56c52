"""Categories as real codes, and back: the one place where categorical designs meet gradients.

Design-Bench (Trabucco, Geng, Kumar, Levine 2022) gives a variable with q categories q - 1 logits:
the logarithm of its one-hot code mixed with a little uniform mass, minus that of category 0. For
one-hot h that is log(1 + 1.5 q) (h_k - h_0) at its mass of 0.4; as codes are standardised next, the
factor, and with it the mass, has no effect on anything. So the codes here are h_k - h_0, k >= 1
(`logits`, the default: a bit has one code), or all of h (`onehot`). On the way back the largest
wins, category 0 having the logit 0; a design is always of whole categories.
"""

from dataclasses import dataclass, replace

import torch
from torch import Tensor

from ddobench.contracts import Dataset, Privileged, Space
from ddobench.errors import check_one_of
from ddobench.graphs import Graph

RELAXATIONS = ("logits", "onehot")


@dataclass(frozen=True)
class Relaxation:
    """The way from categories to codes, and back by the largest."""

    sizes: tuple[int, ...]  # categories of each variable
    variables: Tensor  # (e,) which variable a code belongs to
    levels: Tensor  # (e,) and which of its categories

    @classmethod
    def of(cls, space: Space, kind: str = "logits") -> "Relaxation":
        """Lay out the codes of a categorical space."""
        assert space.sizes is not None
        check_one_of("method.relaxation", kind, RELAXATIONS)
        first = 1 if kind == "logits" else 0  # category 0 is the reference, or has a code as well
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
        shape = (*codes.shape[:2], len(self.sizes), max(self.sizes))
        table = torch.full(shape, -torch.inf, dtype=torch.float64)
        table[..., 0] = 0.0
        table[..., self.variables, self.levels] = codes.to(table).nan_to_num(-torch.inf)
        return table.argmax(dim=-1).to(torch.float64)

    def relax(self, data: Dataset) -> Dataset:
        """Return the same table over codes, as if it had been continuous all along."""
        known = data.privileged.graphs
        graphs = None if known is None else tuple(map(self.lift, known))
        return replace(
            data,
            x=self.encode(data.x),
            space=Space(len(self.levels)),
            privileged=Privileged(graphs=graphs),
        )

    def lift(self, graph: Graph) -> Graph:
        """Return a graph of variables as one of codes, those of a variable all joined."""
        own: list[list[int]] = [[] for _ in self.sizes]
        for code, variable in enumerate(self.variables.tolist()):
            own[variable].append(code)
        cliques = [[code for i in clique for code in own[i]] for clique in graph.cliques]
        return Graph.from_cliques(len(self.levels), cliques)

    @property
    def _has_all(self) -> bool:
        """Whether category 0 has a code of its own."""
        return len(self.levels) == sum(self.sizes)
