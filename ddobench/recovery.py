"""How close a discovered graph comes to the true one, edge by edge."""

from dataclasses import dataclass

from ddobench.graphs import Graph


@dataclass(frozen=True)
class Recovery:
    """Counts of right and wrong edges; a share of nothing is 0."""

    found: int  # edges in both
    invented: int  # edges discovered only
    missed: int  # true edges not discovered
    pairs: int  # of variables

    @classmethod
    def of(cls, discovered: Graph, truth: Graph) -> "Recovery":
        """Compare two graphs on the same variables."""
        if discovered.d != truth.d:
            raise ValueError(f"graphs on {discovered.d} and {truth.d} variables cannot be compared")
        ours, true = set(discovered.edges), set(truth.edges)
        pairs = truth.d * (truth.d - 1) // 2
        return cls(len(ours & true), len(ours - true), len(true - ours), pairs)

    @property
    def precision(self) -> float:
        """The share of discovered edges that are true."""
        return _share(self.found, self.found + self.invented)

    @property
    def recall(self) -> float:
        """The share of true edges that are discovered: the true-positive rate."""
        return _share(self.found, self.found + self.missed)

    @property
    def f1(self) -> float:
        """The harmonic mean of precision and recall."""
        return _share(2 * self.found, 2 * self.found + self.invented + self.missed)

    @property
    def false_positive_rate(self) -> float:
        """The share of absent edges that are discovered."""
        return _share(self.invented, self.pairs - self.found - self.missed)

    @property
    def distance(self) -> int:
        """The structural Hamming distance: edges to add or remove."""
        return self.invented + self.missed

    def describe(self) -> dict[str, float]:
        """Return all scores by name."""
        return {
            "precision": self.precision,
            "recall": self.recall,
            "f1": self.f1,
            "false_positive_rate": self.false_positive_rate,
            "structural_distance": self.distance,
        }


def _share(part: int, whole: int) -> float:
    return part / whole if whole else 0.0
