"""The global maximum of a sum of Laplace bumps, which lies at one of finitely many points.

Along one variable, with the others held, each bump is a multiple of exp(-|x - m|), convex on either
side of its centre m. So the sum is convex between neighbouring centres and monotone outside of
them, and moving the variable to one of its centres costs nothing. Moved one after the other, all
variables of a maximiser sit at centres, and max-sum over these choices finds the best.
"""

import numpy as np
import torch

from ddobench.exact.bumps import RBFSum
from ddobench.exact.max_sum import Table, Values, maximise


def find_corner(f: RBFSum) -> Values:
    """Return a global maximiser (d,) of Laplace bumps."""
    choices: list[list[float]] = [[] for _ in range(f.d)]
    for clique, centre in zip(f.cliques, f.centres, strict=True):
        for variable, middle in zip(clique, centre.tolist(), strict=True):
            choices[variable].append(middle)
    choices = [own or [0.0] for own in choices]  # a variable of no clique is anywhere
    tables = [_tabulate(f, clique, choices) for clique in range(len(f.cliques))]
    _, best = maximise(tables, [len(own) for own in choices])
    return np.array([own[choice] for own, choice in zip(choices, best[0], strict=True)])


def _tabulate(f: RBFSum, clique: int, choices: list[list[float]]) -> Table:
    """Return the bump of a clique at every choice of its variables, with a seed axis of one."""
    distance = torch.zeros((), dtype=torch.float64)
    for variable, middle in zip(f.cliques[clique], f.centres[clique], strict=True):
        away = torch.tensor(choices[variable], dtype=torch.float64) - middle
        distance = distance[..., None] + f.form.distance(away)
    return Table(f.cliques[clique], (f.weights[clique] * f.form.height(distance)).numpy()[None])
