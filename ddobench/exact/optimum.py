"""The exact global maximum of a sum over cliques, for every kind of term.

Radial bumps: branch and bound (`bounding`) along the few axes that matter (`ridges`). Networks:
branch and bound in all variables (`boxes`).

Laplace bumps: the maximum is at one of finitely many points. Along one variable, with the others
fixed, each bump is a multiple of exp(-|x - m|), which is convex on either side of its centre m. So
the sum is convex between neighbouring centres and monotone outside, and moving the variable to the
better of its neighbouring centres never decreases it. After all variables have been moved, every
one is at a centre, and max-sum over these choices finds the best.
"""

import numpy as np
import torch

from ddobench.exact.bounding import Peak, maximise_landscape
from ddobench.exact.boxes import Box
from ddobench.exact.max_sum import Table, Values, maximise
from ddobench.exact.ridges import Ridge
from ddobench.exact.terms import CliqueSum, NetworkSum, Radial, RBFSum


def find_peak(f: CliqueSum) -> Peak:
    """Return the global maximum of `f`."""
    if isinstance(f, NetworkSum):
        return maximise_landscape(Box(f))
    if isinstance(f.form, Radial):
        return maximise_landscape(Ridge(f, f.form))
    x = find_corner(f)
    return Peak(x, float(f(torch.from_numpy(x)[None])[0]), 0.0)


def find_corner(f: RBFSum) -> Values:
    """Return a global maximiser (d,) of a sum of Laplace bumps."""
    choices: list[list[float]] = [[] for _ in range(f.d)]
    for clique, centre in zip(f.cliques, f.centres, strict=True):
        for variable, middle in zip(clique, centre.tolist(), strict=True):
            choices[variable].append(middle)
    choices = [own or [0.0] for own in choices]  # a variable of no clique does not matter
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
