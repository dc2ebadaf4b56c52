"""The terms of the paper's theorem for one instance of a task: coverage, complexity, correlation.

The theorem bounds the regret of a method by three factors. Without a graph the first is the
coverage (a), the largest ratio of the density of a policy to that of the rows, over whole designs.
With a graph it is (b), the same over the variables of each clique, which is never larger. (b') is
the complexity of the clique functions, and sigma the largest correlation between two of them.

Policies are those of the paper. Of categories they are all distributions, so that (a) is one over
the least probability of a design. Of real numbers they are N(x*, s^2 I) around the optimum x*, with
s a twentieth of the smallest standard deviation of a variable. A task states what it knows as an
`Instance`, and a term that it does not know is absent with a reason. Methods never see any of this.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from math import inf, log, prod, sqrt
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

Values = NDArray[np.float64]
Cliques = Sequence[tuple[int, ...]]

POLICY = 0.05  # the standard deviation of a policy, in the smallest of a variable
DRAWS = 10_000  # rows behind a correlation

TERMS = {  # the columns of a run, with the sign of the theorem if it has one
    "log10_coverage": "(a) coverage of whole designs, log10",
    "log10_clique_coverage": "(b) coverage of cliques, log10",
    "clique_complexity": "(b') complexity of clique functions",
    "clique_correlation": "sigma, largest correlation of two clique functions",
    "clique_correlation_error": "standard error of sigma",
    "nearest_row": "distance of the optimum to the nearest row",
    "nearest_clique_row": "the same in the variables of the worst clique",
}


class Rows(Protocol):
    """The distribution that the rows of a task are drawn from."""

    def log_ratio(self, best: Values | str, variables: Sequence[int]) -> float | str:
        """Return the log of the largest ratio of a policy to the rows, or why there is none."""

    def dependent(self) -> NDArray[np.bool_]:  # (d, d)
        """Return which pairs of variables depend on each other; each does on itself."""

    def draw(self, generator: np.random.Generator, count: int) -> Values:  # (count, d)
        """Draw rows."""


@dataclass(frozen=True)
class NormalRows:
    """Normal rows, or an even mixture of two normal distributions at mean - shift and + shift."""

    mean: Values  # (d,)
    covariance: Values  # (d, d)
    shift: Values | None = None  # (d,)

    def log_ratio(self, best: Values | str, variables: Sequence[int]) -> float | str:
        """Maximise the ratio of two normal densities, in closed form.

        A mixture has the density of the normal distribution at its mean, times a constant and
        cosh(t), with t linear in x. The largest ratio at given t is quadratic in t, so that one
        number is left to be searched, in a concave function.
        """
        if isinstance(best, str):
            return best
        kept = np.asarray(variables)
        covariance, away = self.covariance[np.ix_(kept, kept)], (best - self.mean)[kept]
        square = POLICY**2 * float(self.covariance.diagonal().min())
        if square >= np.linalg.eigvalsh(covariance)[0]:
            return "it is infinite: the rows are narrower than the policy in some direction"
        narrowed = covariance - square * np.eye(len(kept))
        reach = np.linalg.solve(narrowed, away)
        ratio = (np.linalg.slogdet(covariance)[1] - len(kept) * log(square) + away @ reach) / 2
        if self.shift is None:
            return float(ratio)
        shift = self.shift[kept]
        tilt = np.linalg.solve(covariance, shift)
        peak, width = shift @ reach, square * tilt @ np.linalg.solve(narrowed, shift)
        from scipy.optimize import minimize_scalar  # slow to import, and a plan needs none

        least = minimize_scalar(
            lambda t: (t - peak) ** 2 / (2 * width) + np.logaddexp(t, -t) - log(2),
            bounds=(min(0.0, peak), max(0.0, peak)),
            options={"xatol": 1e-9 * (1 + abs(peak))},
        )
        return float(ratio + shift @ tilt / 2 - least.fun)

    def dependent(self) -> NDArray[np.bool_]:
        """Compare covariances with 0; a mixture makes all variables depend on each other."""
        found: NDArray[np.bool_] = (self.covariance != 0) | (self.shift is not None)
        return found

    def draw(self, generator: np.random.Generator, count: int) -> Values:
        """Draw rows."""
        normal = generator.standard_normal((count, len(self.mean)))
        rows: Values = self.mean + normal @ np.linalg.cholesky(self.covariance).T
        if self.shift is not None:
            rows += np.where(generator.random((count, 1)) < 0.5, -self.shift, self.shift)
        return rows


@dataclass(frozen=True)
class CategoricalRows:
    """Rows of categories in independent blocks of variables, each with a table of probabilities."""

    blocks: Sequence[tuple[tuple[int, ...], Values]]

    @classmethod
    def uniform(cls, sizes: Sequence[int]) -> "CategoricalRows":
        """Return the uniform distribution over all designs."""
        return cls([((i,), np.full(size, 1 / size)) for i, size in enumerate(sizes)])

    def log_ratio(self, best: Values | str, variables: Sequence[int]) -> float | str:  # noqa: ARG002
        """Return minus the log of the least probability, as any policy is allowed."""
        total = 0.0
        for own, table in self.blocks:
            others = tuple(axis for axis, v in enumerate(own) if v not in set(variables))
            least = float(table.sum(axis=others).min())
            if least <= 0:
                return "it is infinite: some designs have no probability"
            total -= log(least)
        return total

    def dependent(self) -> NDArray[np.bool_]:
        """Variables of the same block depend on each other."""
        d = 1 + max(v for own, _ in self.blocks for v in own)
        found = np.zeros((d, d), dtype=bool)
        for own, _ in self.blocks:
            found[np.ix_(own, own)] = True
        return found

    def draw(self, generator: np.random.Generator, count: int) -> Values:
        """Draw rows."""
        rows = np.empty((count, 1 + max(v for own, _ in self.blocks for v in own)))
        for own, table in self.blocks:
            cells = generator.choice(table.size, count, p=table.ravel())
            rows[:, own] = np.stack(np.unravel_index(cells, table.shape), axis=1)
        return rows


@dataclass(frozen=True)
class CliqueFunctions:
    """The functions that a task is a sum of, and the variables of each."""

    scopes: Cliques
    values: Callable[[Values], Values]  # (K, d) -> (K, number of functions)


@dataclass(frozen=True)
class Terms:
    """The terms that are known, and for each of the others the reason why it is not."""

    known: dict[str, float] = field(default_factory=dict)
    absent: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Instance:
    """What a task knows of one seed; a text in place of something says why it is unknown.

    All is in the coordinates of the true graph, which may be hidden from methods.
    """

    visible: Values  # (N, d)
    sizes: tuple[int, ...] | None  # the number of categories of each variable, None: real numbers
    cliques: Cliques | str = "the task knows no graph"
    best: Values | str = "no design is known that attains the optimum"  # (d,)
    rows: Rows | str = "the distribution of the rows is not known in closed form"
    functions: CliqueFunctions | str = "the functions of single cliques are not known"

    def terms(self, generator: np.random.Generator) -> Terms:
        """Compute all terms."""
        found = Terms()
        cliques = [] if isinstance(self.cliques, str) else self.cliques
        whole = [range(self.visible.shape[1])]
        for name, groups in (("log10_coverage", whole), ("log10_clique_coverage", cliques)):
            self._note(found, name, self._coverage(groups) if groups else self.cliques)
        for name, groups in (("nearest_row", whole), ("nearest_clique_row", cliques)):
            self._note(found, name, self._nearest(groups) if groups else self.cliques)
        self._note(found, "clique_complexity", self._complexity())
        correlation = self._correlation(generator)
        pair = correlation if isinstance(correlation, tuple) else (correlation, correlation)
        self._note(found, "clique_correlation", pair[0])
        self._note(found, "clique_correlation_error", pair[1])
        return found

    @staticmethod
    def _note(found: Terms, name: str, term: object) -> None:
        if isinstance(term, float):
            found.known[name] = term
        else:
            found.absent[name] = str(term)

    def _coverage(self, groups: Sequence[Sequence[int]]) -> float | str:
        """Return the largest log10 ratio in any of some groups of variables."""
        if isinstance(self.rows, str):
            return self.rows
        largest = -inf
        for group in groups:
            ratio = self.rows.log_ratio(self.best, group)
            if isinstance(ratio, str):
                return ratio
            largest = max(largest, ratio / log(10))
        return largest

    def _nearest(self, groups: Sequence[Sequence[int]]) -> float | str:
        """Return how far the optimum is from its nearest row, in the worst group of variables.

        The distance is that of `judging.Spread`: the root mean square of differences in standard
        deviations of the visible rows; of categories, the share of variables that differ.
        """
        if isinstance(self.best, str):
            return self.best
        if self.sizes is not None:
            differ = (self.visible != self.best).astype(float)  # (N, d)
            return max(float(differ[:, [*group]].mean(axis=1).min()) for group in groups)
        sd = self.visible.std(axis=0)
        squares = ((self.visible - self.best) / np.where(sd > 0, sd, 1.0)) ** 2  # (N, d)
        return max(sqrt(squares[:, [*group]].mean(axis=1).min()) for group in groups)

    def _complexity(self) -> float | str:
        """Return (b') for tables over the cliques, by their number of parameters."""
        if isinstance(self.cliques, str):
            return self.cliques
        if self.sizes is None:
            return "functions of real numbers have no number of parameters; a model of them has"
        cells = sum(prod(self.sizes[v] for v in clique) for clique in self.cliques)
        return sqrt(len(self.cliques) * cells / len(self.visible))

    def _correlation(self, generator: np.random.Generator) -> tuple[float, float] | str:
        """Return the largest absolute correlation of two clique functions, and its error.

        It is sampled, and the largest of several that are alike exceeds them by an error or two.
        Functions of independent variables have exactly 0.
        """
        if isinstance(self.functions, str):
            return self.functions
        if isinstance(self.rows, str):
            return self.rows
        values = self.functions.values(self.rows.draw(generator, DRAWS))  # (K, C)
        scaled = values - values.mean(axis=0)
        varied = np.flatnonzero((np.ptp(values, axis=0) > 0) & (scaled.std(axis=0) > 0))
        if len(varied) < 2:
            return "there is only one clique whose function varies"
        members = np.zeros((len(self.functions.scopes), self.visible.shape[1]))
        for place, scope in enumerate(self.functions.scopes):
            members[place, [*scope]] = 1
        related = (members @ self.rows.dependent() @ members.T)[np.ix_(varied, varied)] > 0
        np.fill_diagonal(related, val=False)
        if not related.any():
            return 0.0, 0.0
        scaled = scaled[:, varied] / scaled[:, varied].std(axis=0)
        correlations = np.where(related, scaled.T @ scaled / DRAWS, 0.0)
        first, second = np.unravel_index(np.abs(correlations).argmax(), correlations.shape)
        one, other, both = scaled[:, first], scaled[:, second], correlations[first, second]
        influence = one * other - both * (one**2 + other**2) / 2
        return float(abs(both)), float(influence.std() / sqrt(DRAWS))
