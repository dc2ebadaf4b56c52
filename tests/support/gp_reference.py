"""Writes what `gpytorch` makes of a few rows, for the test of our Gaussian process.

In an environment of its own, as nothing else here needs it:

    pip install torch==2.13.0 gpytorch==1.15.2
    python tests/support/gp_reference.py > tests/baselines/gp_reference.json

The rows are a formula, not draws, so that both sides have the same.
"""

import json
import math
from typing import Any

import gpytorch
import torch

CLIQUES = {"plain": [[0, 1, 2]], "additive": [[0, 1], [1, 2]], "separate": [[0], [1], [2]]}
SCALES, VARIANCE, NOISE = [0.8, 1.3, 0.5], 1.7, 0.05


def rows(count: int, phase: float) -> torch.Tensor:  # (count, 3)
    """Return coordinates between -1.5 and 1.5."""
    grid = torch.arange(1, count + 1, dtype=torch.float64)[:, None]
    return 1.5 * torch.sin(phase + grid * torch.tensor([1.0, math.sqrt(2), math.sqrt(5)]))


def values(z: torch.Tensor) -> torch.Tensor:  # (count, 3) -> (count,)
    """Return something smooth of neighbours."""
    return torch.sin(2 * z[:, 0] * z[:, 1]) + torch.cos(z[:, 1] - 2 * z[:, 2])


class Exact(gpytorch.models.ExactGP):  # type: ignore[misc]
    """A process with a sum of Gaussian kernels, one for each clique."""

    def __init__(self, z: torch.Tensor, y: torch.Tensor, cliques: list[list[int]]) -> None:
        likelihood = gpytorch.likelihoods.GaussianLikelihood(
            noise_constraint=gpytorch.constraints.GreaterThan(1e-8)
        )
        super().__init__(z, y, likelihood)
        self.mean_module = gpytorch.means.ConstantMean()
        self.mean_module.constant.data.fill_(float(y.mean()))
        kernels = []
        for clique in cliques:
            rbf = gpytorch.kernels.RBFKernel(ard_num_dims=len(clique), active_dims=clique)
            rbf.lengthscale = torch.tensor([SCALES[i] for i in clique])
            kernels.append(rbf)
        self.covar_module = gpytorch.kernels.ScaleKernel(gpytorch.kernels.AdditiveKernel(*kernels))
        self.double()
        self.covar_module.outputscale = VARIANCE / len(cliques)
        likelihood.noise = NOISE

    def forward(self, z: torch.Tensor) -> Any:
        """Return the prior at coordinates."""
        return gpytorch.distributions.MultivariateNormal(self.mean_module(z), self.covar_module(z))


def describe(cliques: list[list[int]]) -> dict[str, Any]:
    """Return likelihood and posterior of one kernel."""
    z, at = rows(20, 0.3), rows(6, 0.8)
    model = Exact(z, values(z), cliques)
    model.train()
    likelihood = gpytorch.mlls.ExactMarginalLogLikelihood(model.likelihood, model)
    total = likelihood(model(z), values(z)).item() * len(z)
    model.eval()
    with torch.no_grad():
        posterior = model(at)
    return {
        "cliques": cliques,
        "log_likelihood": total,
        "mean": posterior.mean.tolist(),
        "variance": posterior.variance.tolist(),
    }


if __name__ == "__main__":
    with gpytorch.settings.fast_computations(False, False, False):
        kernels = {name: describe(cliques) for name, cliques in CLIQUES.items()}
    settings = {"scales": SCALES, "variance": VARIANCE, "noise": NOISE}
    z, at = rows(20, 0.3), rows(6, 0.8)
    table = {"z": z.tolist(), "y": values(z).tolist(), "at": at.tolist()}
    print(json.dumps({"gpytorch": gpytorch.__version__, **settings, **table, "kernels": kernels}))
