"""Where a search begins, as a declared choice: the best visible rows, or the starts of all methods.

Most published methods climb from the best 128 rows of the table, where ours share random visible
starts. What is published of a method therefore names both its steps and where they begin: climbing
from the best rows is worth more than many a model. Both are read off the visible table.
"""

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from ddobench.contracts import Dataset
from ddobench.errors import check_one_of, check_whole
from ddobench.parts.search import Ascent

BEGINNINGS = ("top", "starts")


@dataclass(kw_only=True)
class TopAscent(Ascent):
    """Gradient ascent of few designs, from the best visible rows."""

    name: ClassVar[str] = "top_ascent"

    begin_at: str = "top"
    designs: int = 128

    def __post_init__(self) -> None:
        super().__post_init__()
        check_beginning(self.begin_at, self.designs)

    def begin(self, starts: Tensor, data: Dataset) -> Tensor:  # (S, K, d) -> (S, at most K, d)
        """Return the rows to climb from."""
        return pick_beginning(self.begin_at, self.designs, starts, data)


def check_beginning(begin_at: str, designs: int) -> None:
    """Raise unless there is such a beginning."""
    check_one_of("search.begin_at", begin_at, BEGINNINGS)
    check_whole("search.designs", designs, 1)


def pick_beginning(begin_at: str, designs: int, starts: Tensor, data: Dataset) -> Tensor:
    """Return the best visible rows, best first, or the first of starts (S, K, d), (S, few, d).

    They are never more than the starts, nor more than there are rows.
    """
    few = min(designs, starts.shape[1])
    if begin_at == "starts":
        return starts[:, :few]
    order = data.y.sort(dim=1, descending=True, stable=True).indices[:, :few]  # (S, few)
    return torch.take_along_dim(data.x, order[..., None], dim=1)
