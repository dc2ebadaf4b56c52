"""Graph recovery: every score by hand on a small example."""

import pytest

from ddobench.graphs import Graph, Recovery

TRUTH = Graph.from_edges(5, [(0, 1), (1, 2), (2, 3), (3, 4)])


def test_every_score_by_hand() -> None:
    found = Graph.from_edges(5, [(0, 1), (1, 2), (0, 4)])  # two right, one wrong, two missed
    recovery = Recovery.of(found, TRUTH)
    assert recovery.describe() == pytest.approx(
        {
            "precision": 2 / 3,
            "recall": 2 / 4,
            "f1": 4 / 7,
            "false_positive_rate": 1 / 6,
            "structural_distance": 3,
        }
    )


def test_the_truth_is_recovered_perfectly() -> None:
    scores = Recovery.of(TRUTH, TRUTH).describe()
    assert scores == {
        "precision": 1.0, "recall": 1.0, "f1": 1.0,
        "false_positive_rate": 0.0, "structural_distance": 0,
    }  # fmt: skip


def test_a_share_of_nothing_is_nothing() -> None:
    empty = Graph.from_edges(3, [])
    full = Graph.from_cliques(3, [range(3)])
    assert Recovery.of(empty, full).precision == 0.0
    assert Recovery.of(full, empty).recall == 0.0
    assert Recovery.of(empty, empty).f1 == 0.0
    assert Recovery.of(full, full).false_positive_rate == 0.0


def test_graphs_of_different_sizes_are_not_compared() -> None:
    with pytest.raises(ValueError, match="graphs on 3 and 5 variables cannot be compared"):
        Recovery.of(Graph.from_edges(3, []), TRUTH)
