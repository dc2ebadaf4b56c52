"""The global maximum of a sum over cliques, exact whatever the form of its terms.

Laplace bumps: one of finitely many points (`corners`). Radial bumps: branch and bound (`bounding`)
along the few axes that matter (`ridges`). Networks: branch and bound in all variables (`boxes`).
"""

import torch

from ddobench.exact.bounding import Peak, maximise_landscape
from ddobench.exact.boxes import Box
from ddobench.exact.bumps import Radial, RBFSum
from ddobench.exact.corners import find_corner
from ddobench.exact.networks import NetworkSum
from ddobench.exact.ridges import Ridge


def find_peak(f: RBFSum | NetworkSum) -> Peak:
    """Return the global maximum of `f`."""
    if isinstance(f, NetworkSum):
        return maximise_landscape(Box(f))
    if isinstance(f.form, Radial):
        return maximise_landscape(Ridge(f, f.form))
    x = find_corner(f)
    return Peak(x, float(f(torch.from_numpy(x)[None])[0]), 0.0)
