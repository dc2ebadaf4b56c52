"""Families of graphs, given by the cliques of d variables."""

from collections.abc import Callable
from dataclasses import dataclass

from ddobench.errors import UsageError, check_one_of, check_whole
from ddobench.graphs import Graph
from ddobench.rng import Stream

Cliques = tuple[tuple[int, ...], ...]

FAMILIES = ("chain", "path", "ring", "star", "tree", "grid", "disconnected", "random")
KEPT_EDGES = 0.7  # share of the edges of a random 2-tree that stay
_SIZED = ("chain", "disconnected")
_SHAPES = {2: "edges", 3: "triangles"}


@dataclass(frozen=True)
class Family:
    """A way to arrange cliques of d variables, for d = first + k step with k >= 0."""

    title: str
    first: int
    step: int
    draw: Callable[[int, Stream], Cliques]  # the stream is used by random families only

    def check(self, d: int) -> None:
        """Raise an error if the family has no graph of d variables."""
        if d < self.first:
            raise UsageError(
                f"d must be at least {self.first} for {self.title}, got {d}; use {self.first}"
            )
        excess = (d - self.first) % self.step
        if excess:
            below = d - excess
            raise UsageError(
                f"d must be {self._rule()} for {self.title}, got {d}; "
                f"use {below} or {below + self.step}"
            )

    def _rule(self) -> str:
        if self.step == 2:
            return "odd" if self.first % 2 else "even"
        return f"one of {', '.join(str(self.first + i * self.step) for i in range(3))}, …"


def choose_family(name: str, clique_size: int | None, overlap: int | None) -> Family:
    """Return the named family; None means the default sizes (chain: 3 and 1)."""
    check_one_of("task.family", name, FAMILIES)
    if name not in _SIZED and not (clique_size is None and overlap is None):
        raise UsageError(
            f"task.clique_size and task.overlap belong to the families {' and '.join(_SIZED)}, "
            f"got family={name}; leave them null"
        )
    size = 3 if clique_size is None else clique_size
    check_whole("task.clique_size", size, 1)
    if name == "chain":
        return _chain(size, min(1, size - 1) if overlap is None else overlap)
    if name == "disconnected":
        return _disconnected(size, overlap)
    return _FIXED[name]


def _chain(size: int, overlap: int) -> Family:
    check_whole("task.overlap", overlap, 0)
    if overlap >= size:
        raise UsageError(
            f"task.overlap must be less than task.clique_size={size}, got {overlap}; "
            f"use 0 to {size - 1}"
        )
    # The variables that two cliques share are searched along one axis. If more than half of a
    # clique overlaps, variables are shared by three or more cliques, and tables do not fit into
    # memory.
    if 2 * overlap > size and (size, overlap) != (3, 2):
        raise UsageError(
            f"task.overlap must be at most half of task.clique_size={size} for an exact optimum "
            f"(2 of 3 works as well), got {overlap}; use {size // 2}"
        )
    step = size - overlap
    title = f"a chain of {_SHAPES.get(size, f'cliques of {size}')}"
    if (size, overlap) != (3, 1):
        title += f" overlapping in {overlap}"
    return Family(title, size, step, lambda d, _: _windows(d, size, step))


def _disconnected(size: int, overlap: int | None) -> Family:
    if overlap:
        raise UsageError(
            f"task.overlap must be 0 or null for disconnected cliques, got {overlap}; "
            "use family=chain for overlapping ones"
        )
    title = f"disconnected {_SHAPES.get(size, f'cliques of {size}')}"
    return Family(title, size, size, lambda d, _: _windows(d, size, size))


def _windows(d: int, size: int, step: int) -> Cliques:
    return tuple(tuple(range(start, start + size)) for start in range(0, d - size + 1, step))


def _path(d: int, _: Stream) -> Cliques:
    return _windows(d, 2, 1)


def _ring(d: int, _: Stream) -> Cliques:
    return tuple((i, (i + 1) % d) for i in range(d))


def _star(d: int, _: Stream) -> Cliques:
    return tuple((0, leaf) for leaf in range(1, d))


def _tree(d: int, _: Stream) -> Cliques:
    return tuple(((node - 1) // 2, node) for node in range(1, d))


def _grid(d: int, _: Stream) -> Cliques:
    """Number the 2 x d/2 grid column by column."""
    along = [(node, node + 2) for node in range(d - 2)]
    across = [(node, node + 1) for node in range(0, d, 2)]
    return tuple(sorted(along + across))


def _random(d: int, stream: Stream) -> Cliques:
    """Grow a 2-tree by joining every new node to an edge, then drop edges: treewidth at most 2."""
    edges = [(0, 1)]
    for node in range(2, d):
        a, b = edges[int(stream.integers(len(edges)))]
        edges += [(a, node), (b, node)]
    kept = (stream.uniform(len(edges)) < KEPT_EDGES).tolist()
    label = stream.permutation(d).tolist()
    stay = [(label[a], label[b]) for (a, b), keep in zip(edges, kept, strict=True) if keep]
    return Graph.from_edges(d, stay).cliques


_FIXED = {
    "path": Family("a path", 2, 1, _path),
    "ring": Family("a ring", 4, 1, _ring),  # three nodes would be one triangle
    "star": Family("a star", 3, 1, _star),
    "tree": Family("a binary tree", 2, 1, _tree),
    "grid": Family("a grid of two rows", 4, 2, _grid),
    "random": Family("a random graph of treewidth at most 2", 3, 1, _random),
}
