"""Where the nodes of a graph are drawn: the same graph always alike, without any randomness.

The shapes that a reader knows by sight are drawn as such: a path and a chain of triangles as a
ribbon that turns back where it is long, a ring as a circle, a ladder with its rungs upright. Other
graphs are relaxed after Kamada and Kawai. Separate parts stand side by side.
"""

from collections.abc import Callable, Sequence
from math import ceil, cos, pi, sin, sqrt

import networkx as nx
import numpy as np

Position = tuple[float, float]
Layout = dict[int, Position]  # neighbours are about 1 apart
Sides = Callable[[int], tuple[float, float]]  # how far along the ribbon, how far to its left

_ROW = 10.0  # length of the straight parts of a ribbon
_TURN = 1.5  # radius of its turns
_APART = 1.4  # between separate parts
_SHELF = 12.0  # width after which separate parts begin another row


def lay_out(graph: "nx.Graph[int]") -> Layout:
    """Place every node."""
    parts = [_in_order(graph.subgraph(nodes)) for nodes in nx.connected_components(graph)]
    parts.sort(key=lambda part: (-len(part), min(part)))
    return _shelve([_lay_out_part(part) for part in parts])


def _in_order(graph: "nx.Graph[int]") -> "nx.Graph[int]":
    """Return the same graph, whatever the order in which it was built."""
    ordered: nx.Graph[int] = nx.Graph()
    ordered.add_nodes_from(sorted(graph))
    ordered.add_edges_from(sorted((min(edge), max(edge)) for edge in graph.edges))
    return ordered


def name_shape(graph: "nx.Graph[int]") -> str:
    """Return the name of a shape that looks alike at any size, or "" for any other graph."""
    nodes = sorted(graph)
    edges = {tuple(sorted(edge)) for edge in graph.edges}
    if len(nodes) > 2:
        for name, drawn in _SHAPES.items():
            if edges == drawn(nodes):
                return name
    return ""


def _lay_out_part(part: "nx.Graph[int]") -> Layout:
    shape = name_shape(part)
    if shape == "ring":
        return _on_circle(sorted(part))
    if shape == "star":
        hub, *leaves = sorted(part)
        return {hub: (0.0, 0.0), **_on_circle(leaves)}
    if shape in _RIBBONS:
        return _on_ribbon(sorted(part), _RIBBONS[shape])
    if len(part) < 3:
        return {node: (float(i), 0.0) for i, node in enumerate(sorted(part))}
    return _relax(part)


def _on_circle(nodes: Sequence[int]) -> Layout:
    """Go around clockwise from the top."""
    turn = 2 * pi / len(nodes)
    radius = 0.5 / sin(turn / 2)
    return {node: (radius * sin(i * turn), radius * cos(i * turn)) for i, node in enumerate(nodes)}


def _on_ribbon(nodes: Sequence[int], sides: Sides) -> Layout:
    """Go to and fro in rows of equal length."""
    length = sides(len(nodes) - 1)[0]
    turn = pi * _TURN
    rows = ceil((length + turn) / (_ROW + turn)) if length > 1.3 * _ROW else 1
    row = (length - (rows - 1) * turn) / rows
    places = (sides(i) for i in range(len(nodes)))
    return {
        node: _along_ribbon(distance, left, row)
        for node, (distance, left) in zip(nodes, places, strict=True)
    }


def _along_ribbon(distance: float, left: float, row: float) -> Position:
    """Return the point so far along a ribbon that winds downwards, and so far to its left."""
    period = row + pi * _TURN
    k = int(distance // period) if distance > row + 1e-9 else 0
    rest = distance - k * period
    forward = 1 if k % 2 == 0 else -1
    base = -2 * _TURN * k
    if rest <= row + 1e-9:
        x = rest if forward > 0 else row - rest
        return x, base + forward * left
    angle = (rest - row) / _TURN  # from 0 at the end of a row to pi at the start of the next
    radius = _TURN + forward * left
    end = row if forward > 0 else 0.0
    return end + forward * radius * sin(angle), base - _TURN + radius * cos(angle)


def _relax(part: "nx.Graph[int]") -> Layout:
    """Relax a connected part, its longest direction level and its first node on the left."""
    nodes = sorted(part)
    planar = nx.is_planar(part)
    start = nx.planar_layout(part) if planar else _on_circle(nodes)
    relaxed = nx.kamada_kawai_layout(part, pos=start)
    places = np.array([relaxed[node] for node in nodes])  # (nodes, 2)
    places -= places.mean(axis=0)
    places = places @ np.linalg.svd(places, full_matrices=False)[2].T
    places *= np.where(places[0] > 0, (-1.0, 1.0), (1.0, -1.0))  # and rather above than below
    at = dict(zip(nodes, places, strict=True))
    scale = float(np.mean([np.linalg.norm(at[a] - at[b]) for a, b in part.edges]))
    return {node: (float(x) / scale, float(y) / scale) for node, (x, y) in at.items()}


def _shelve(parts: Sequence[Layout]) -> Layout:
    """Put parts side by side, in rows from the top."""
    placed: Layout = {}
    x = y = lowest = 0.0
    for part in parts:
        xs, ys = zip(*part.values(), strict=True)
        width, height = max(xs) - min(xs), max(ys) - min(ys)
        if placed and x + width > _SHELF:
            x, y = 0.0, lowest - _APART
        for node, (a, b) in part.items():
            placed[node] = (x + a - min(xs), y + b - max(ys))
        x += width + _APART
        lowest = min(lowest, y - height)
    return placed


def _pairs(nodes: Sequence[int], *steps: int) -> set[tuple[int, ...]]:
    return {(a, b) for step in steps for a, b in zip(nodes, nodes[step:], strict=False)}


_SHAPES: dict[str, Callable[[Sequence[int]], set[tuple[int, ...]]]] = {
    "path": lambda nodes: _pairs(nodes, 1),
    "ring": lambda nodes: _pairs(nodes, 1) | {(nodes[0], nodes[-1])},
    "star": lambda nodes: {(nodes[0], leaf) for leaf in nodes[1:]},
    "chain of triangles": lambda nodes: _pairs(nodes, 1) | _pairs(nodes[::2], 1),
    "strip of triangles": lambda nodes: _pairs(nodes, 1, 2),
    "ladder": lambda nodes: _pairs(nodes, 2) | set(zip(nodes[::2], nodes[1::2], strict=False)),
}
_RIBBONS: dict[str, Sides] = {
    "path": lambda i: (float(i), 0.0),
    "chain of triangles": lambda i: (i / 2, sqrt(3) / 2 * (i % 2 - 0.5)),
    "strip of triangles": lambda i: (i / 2, sqrt(3) / 2 * (i % 2 - 0.5)),
    "ladder": lambda i: (float(i // 2), i % 2 - 0.5),
}
