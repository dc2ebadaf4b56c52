"""The kinds of functions a clique can have, by the word a configuration has for them."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from ddobench.errors import UsageError
from ddobench.exact.bumps import Cauchy, Form, Gaussian, Laplace, RBFSum, draw_rbf
from ddobench.exact.families import Cliques
from ddobench.exact.networks import FORMULA, NetworkSum, draw_networks
from ddobench.rng import Stream

CliqueSum = RBFSum | NetworkSum


@dataclass(frozen=True)
class Term:
    """One kind, and how to draw a sum of its functions over the cliques of a graph."""

    noun: str
    formula: str  # in the variables x_C of its clique
    draw: Callable[[int, Cliques, Stream], CliqueSum]
    largest: int | None = None  # variables of a clique, if not any number of them

    def check(self, size: int) -> None:
        """Raise unless a clique may have that many variables."""
        if self.largest is not None and size > self.largest:
            raise UsageError(
                f"task.clique_size must be at most {self.largest} for a {self.noun} per clique, "
                f"whose optimum is searched in all variables, got {size}; use {self.largest}"
            )


def _bump(noun: str, form: Form) -> Term:
    return Term(noun, form.formula, partial(draw_rbf, form=form))


TERMS = {
    "gaussian": _bump("Gaussian bump", Gaussian()),
    "laplace": _bump("Laplace bump", Laplace()),
    "cauchy": _bump("Cauchy bump", Cauchy()),
    "network": Term("random network", FORMULA, draw_networks, largest=3),
}
