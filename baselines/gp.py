"""GP: an exact Gaussian process, additive over the cliques of a graph.

    k(z, z') = variance / C  sum over the C cliques of exp(-r^2 / 2),
    r^2 = sum over i in the clique of (z_i - z'_i)^2 / scale_i^2,

plus noise, around a constant mean. With `graph=complete` there is one clique and this is the plain
process with a length scale for each coordinate; with any other graph it is the counterpart of
FGM's clique network: additive Gaussian processes (Duvenaud, Nickisch, Rasmussen 2011) over cliques.

Length scales, variance and noise maximise the marginal likelihood (L-BFGS on their logarithms, with
gradients by hand, in float64), with wide log-normal priors that only limit parameters on which the
rows have no information. L-BFGS sees the likelihood per row, as in `botorch`: with the gradient of
all rows its first trial step ends at the bounds. The mean is that of the rows.

An exact process costs N^3, so it is fitted to at most `rows` of them: the best rows for a share
`top` of these, the others at random. With the best rows only it would not know bad designs. A tenth
of all rows is held out first, so that the fit can be evaluated like any other.

The search climbs the posterior mean, or the mean minus (`lcb`) or plus (`ucb`) kappa posterior
standard deviations of the noiseless value. `search=qlogei` chooses batches by expected improvement
instead (qlogei.py, which needs `botorch`).

There is no paper to reproduce; the model is textbook (Rasmussen and Williams 2006). Its
posterior and likelihood equal those of `gpytorch` on the same rows: tests/baselines/test_gp.py.

Gradient ascent on a process is a row of ROOT's table, 0.770 on TFBind8 (Dao et al. 2025); the code
of this row is not public. Processes in its code (cuong-dm/ROOT at d23f14f) have 15,000 random rows
and fixed parameters, and designs take 100 plain steps of 0.05. On TFBind8 the best 250 rows have
nearly the same value, so that a process of which they are half is nearly flat around the starts.
Best of 128 designs from the best rows on TFBind8, mean of the seeds 1000-1003:

    search=top_gradient                    half of 500 rows are the best      0.587
    search=top_gradient surrogate.top=0    500 random rows                    0.750
    4,000 random rows, ROOT's parameters, steps and rate                      0.966
    15,000 random rows, the same (seed 1000)                                  0.991
    method=gp_adam                         500 random rows, Adam              0.567

Random rows close the gap; with ROOT's own settings the number is above the one that it reports.

Command: python -m ddobench -m method=gp task=chain d=41 seed=0-9
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import log, pi
from typing import Any, ClassVar

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.optimize import minimize
from torch import Tensor

from ddobench.errors import UsageError, check_one_of, check_whole
from ddobench.models.training import rank_correlation, unexplained
from ddobench.parts.coordinates import rotate
from ddobench.parts.surrogates import Model, Surrogate, TrainingData
from ddobench.progress import track
from ddobench.rng import Stream, Streams

CLIMBED = {"mean": 0.0, "lcb": -1.0, "ucb": 1.0}  # signs of kappa
JITTERS = (0.0, 1e-10, 1e-8, 1e-6, 1e-4)  # shares of the variance added until a Cholesky succeeds
LEAST_NOISE = 1e-6  # variance, of standardised values
PRIOR_SD = 3.0  # of each logarithm
FARTHEST = 12.0  # largest distance of a logarithm from the mean of its prior
ROWS_AT_ONCE = 1024  # designs predicted at a time
LEAST_VARIANCE = 1e-12  # smaller posterior variances count as this

Logs = NDArray[np.float64]


@dataclass(kw_only=True)
class GaussianProcess(Surrogate):
    """An exact process on some of the rows."""

    name: ClassVar[str] = "gp"
    version: ClassVar[int] = 2  # L-BFGS on the likelihood per row
    uses_graph: ClassVar[bool] = True
    has_posterior: ClassVar[bool] = True

    rows: int = 500
    top: float = 0.5
    holdout: float = 0.1
    steps: int = 50
    noise: float = 0.01
    climbed: str = "mean"
    kappa: float = 1.0

    def __post_init__(self) -> None:
        check_whole("surrogate.rows", self.rows, 2)
        check_whole("surrogate.steps", self.steps, 1)
        check_one_of("surrogate.climbed", self.climbed, tuple(CLIMBED))
        if not 0 <= self.top <= 1:
            raise UsageError(f"surrogate.top must be a share in [0, 1], got {self.top}")
        if not 0 <= self.holdout < 1:
            raise UsageError(f"surrogate.holdout must be a share in [0, 1), got {self.holdout}")
        if self.noise <= 0:
            raise UsageError(f"surrogate.noise must be positive, got {self.noise}")

    def fit(self, data: TrainingData, rng: Streams) -> "ProcessModel":
        """Pick the rows of each seed and fit its process, one seed after the other."""
        coordinates = data.coordinates
        z = rotate(coordinates.visible.mean, coordinates.rotation).to(torch.float64).cpu()
        y = data.y.to(torch.float64).cpu()
        fits = []
        for seed, stream in enumerate(track(rng.child("surrogate").rows, "process")):
            seen, held_out = self.pick_rows(y[seed], stream)
            kernel = Kernel(data.found[seed].graph.cliques, z.shape[2])
            process = self._learn(z[seed][seen], y[seed][seen], kernel)
            held = (z[seed][held_out], y[seed][held_out])
            fits.append(ProcessFit(process, self.kappa * CLIMBED[self.climbed], *held))
        return ProcessModel(fits)

    def pick_rows(self, y: Tensor, stream: Stream) -> tuple[Tensor, Tensor]:  # (N,)
        """Return the rows that the process is fitted to, best first, and those held out."""
        order = stream.child("split").permutation(len(y))
        held = min(round(self.holdout * len(y)), len(y) - 2)
        rest = order[held:]
        few = min(self.rows, len(rest))
        best = y[rest].argsort(descending=True, stable=True)
        top = round(self.top * few)
        others = best[top:].sort().values[: few - top]  # in permuted order, so at random
        return rest[torch.cat([best[:top], others])], order[:held]

    def _learn(self, z: Tensor, y: Tensor, kernel: "Kernel") -> "Process":
        """Maximise the marginal likelihood, with a prior on the logarithms."""
        size = sum(map(len, kernel.cliques)) / len(kernel.cliques)
        middle: Logs = np.log([*[size**0.5] * z.shape[1], 1.0, self.noise])
        best = minimize(  # type: ignore[call-overload]
            lambda logs: _objective(logs, middle, z, y, kernel),
            middle,
            jac=True,
            method="L-BFGS-B",
            bounds=[(one - FARTHEST, one + FARTHEST) for one in middle],
            options={"maxiter": self.steps},
        )
        return Process(z, y, kernel, best.x)


def _objective(
    logs: Logs, middle: Logs, z: Tensor, y: Tensor, kernel: "Kernel"
) -> tuple[float, Logs]:
    """Return minus the log posterior density of the logarithms per row, and its gradient."""
    process = Process(z, y, kernel, logs)
    away = (logs - middle) / PRIOR_SD
    density = process.log_likelihood() - 0.5 * float(away @ away)
    slope = process.likelihood_gradient() - away / PRIOR_SD
    return -density / len(y), -slope / len(y)


@dataclass(frozen=True)
class Kernel:
    """A sum over cliques of Gaussians of the distance between their coordinates, at most 1."""

    cliques: Sequence[Sequence[int]]
    e: int

    def __call__(self, left: Tensor, right: Tensor) -> Tensor:  # (A, e), (B, e) -> (A, B)
        """Return the kernel between coordinates in units of their length scales."""
        total = left.new_zeros(len(left), len(right))
        for clique in self.cliques:
            total += self.bump(left[:, clique], right[:, clique])
        return total / len(self.cliques)

    def bump(self, left: Tensor, right: Tensor) -> Tensor:  # (A, c), (B, c) -> (A, B)
        """Return exp(-|a - b|^2 / 2)."""
        lengths = left.square().sum(dim=1)[:, None] + right.square().sum(dim=1)
        return torch.addmm(lengths, left, right.T, beta=-0.5).clamp_(max=0.0).exp_()

    def scale_gradient(self, z: Tensor, weight: Tensor) -> Tensor:  # (N, e), (N, N) -> (e,)
        """Return the sum over symmetric weights of the kernel's slope in each log length scale."""
        slope = z.new_zeros(self.e)
        for clique in map(list, self.cliques):
            rows = z[:, clique]  # (N, c)
            mass = weight * self.bump(rows, rows)  # (N, N)
            apart = mass.sum(dim=1) @ rows.square() - (rows * (mass @ rows)).sum(dim=0)
            slope[clique] += 2 * apart
        return slope / len(self.cliques)

    def design_gradient(self, at: Tensor, z: Tensor, weight: Tensor) -> Tensor:
        """Return the slope at designs (K, e) of their kernel with rows (N, e), weighted (K, N)."""
        slope = torch.zeros_like(at)
        for clique in map(list, self.cliques):
            rows = z[:, clique]  # (N, c)
            mass = weight * self.bump(at[:, clique], rows)  # (K, N)
            slope[:, clique] += mass @ rows - mass.sum(dim=1, keepdim=True) * at[:, clique]
        return slope / len(self.cliques)


class Process:
    """A Gaussian process given rows z (N, e), y (N,) and logarithms of its parameters.

    These are the length scales of the e coordinates, the variance, and that of the noise.
    """

    def __init__(self, z: Tensor, y: Tensor, kernel: Kernel, logs: Logs) -> None:
        numbers = torch.from_numpy(np.exp(logs)).to(z)
        self.scales, self.variance, self.noise = numbers[:-2], numbers[-2], numbers[-1]
        self.kernel = kernel
        self.z, self.y, self.rows = z, y, len(y)
        self.mean = y.mean()
        self._z = z / self.scales
        self._bare = self.variance * kernel(self._z, self._z)  # (N, N)
        self._factor, self.jitter = factorise(self._bare, self.noise + LEAST_NOISE)
        self._left = y - self.mean  # (N,)
        self._weights = torch.cholesky_solve(self._left[:, None], self._factor)[:, 0]  # (N,)

    def log_likelihood(self) -> float:
        """Return the log marginal likelihood of the rows."""
        fit = self._left @ self._weights + 2 * self._factor.diagonal().log().sum()
        return -0.5 * (float(fit) + self.rows * log(2 * pi))

    def likelihood_gradient(self) -> Logs:  # (e + 2,)
        """Return its gradient in the logarithms."""
        inverse = torch.cholesky_inverse(self._factor)
        weight = 0.5 * (torch.outer(self._weights, self._weights) - inverse)  # (N, N)
        scales = self.variance * self.kernel.scale_gradient(self._z, weight)
        variance = (weight * self._bare).sum()
        noise = self.noise * weight.diagonal().sum()
        slope: Logs = torch.cat([scales, torch.stack([variance, noise])]).numpy()
        return slope

    def posterior(self, at: Tensor) -> tuple[Tensor, Tensor]:  # (K, e) -> (K,), (K,)
        """Return mean and variance of the noiseless value at coordinates."""
        near = self.variance * self.kernel(at / self.scales, self._z)  # (K, N)
        return self.mean + near @ self._weights, self._left_over(near)

    def bound(self, at: Tensor, kappa: float) -> tuple[Tensor, Tensor]:
        """Return mean + kappa sd at coordinates (K, e), (K,), and its gradient, (K, e)."""
        scaled = at / self.scales
        near = self.variance * self.kernel(scaled, self._z)  # (K, N)
        value = self.mean + near @ self._weights
        weight = self._weights.expand_as(near)  # (K, N)
        if kappa:
            sd = self._left_over(near).sqrt()  # (K,)
            value = value + kappa * sd
            solved = torch.cholesky_solve(near.T, self._factor).T  # (K, N)
            weight = weight - kappa * solved / sd[:, None]
        slope = self.kernel.design_gradient(scaled, self._z, weight)
        return value, self.variance * slope / self.scales

    def _left_over(self, near: Tensor) -> Tensor:  # (K, N) -> (K,)
        half: Tensor = torch.linalg.solve_triangular(self._factor, near.T, upper=False)  # (N, K)
        return (self.variance - half.square().sum(dim=0)).clamp(min=LEAST_VARIANCE)


def factorise(bare: Tensor, noise: Tensor) -> tuple[Tensor, float]:  # (N, N), () -> (N, N)
    """Return the Cholesky factor of a covariance with noise, and the jitter it needed."""
    for jitter in JITTERS:
        shift = noise + jitter * bare.diagonal().mean()
        factor, info = torch.linalg.cholesky_ex(bare + shift * torch.eye(len(bare)).to(bare))
        if not info:
            return factor, jitter
    raise ValueError(f"a covariance of {len(bare)} rows has no Cholesky factor at jitter {jitter}")


@dataclass(frozen=True)
class ProcessFit:
    """The process of one seed, and its held-out rows."""

    process: Process
    kappa: float  # with its sign
    held_out_z: Tensor  # (H, e)
    held_out_y: Tensor  # (H,)

    def predicted(self) -> Tensor:  # (H,)
        """Return the posterior mean of the rows held out."""
        return self.process.posterior(self.held_out_z)[0]


class ProcessModel(Model):
    """The processes of all seeds."""

    def __init__(self, fits: Sequence[ProcessFit]) -> None:
        self.fits = fits

    def value(self, z: Tensor) -> Tensor:  # (S, K, e) -> (S, K)
        """Return the posterior mean, plus or minus kappa standard deviations."""
        return self.value_and_gradient(z)[0]

    def value_and_gradient(self, z: Tensor) -> tuple[Tensor, Tensor]:
        """Return the value at coordinates z (S, K, e), (S, K), and its gradient."""
        values, gradients = zip(
            *[
                self._climb(fit, rows)
                for fit, rows in zip(self.fits, z.cpu().double(), strict=True)
            ],
            strict=True,
        )
        return torch.stack(values).to(z), torch.stack(gradients).to(z)

    def _climb(self, fit: ProcessFit, rows: Tensor) -> tuple[Tensor, Tensor]:
        pairs = [fit.process.bound(some, fit.kappa) for some in torch.split(rows, ROWS_AT_ONCE)]
        values, gradients = zip(*pairs, strict=True)
        return torch.cat(values), torch.cat(gradients)

    def error(self) -> Tensor | None:  # (S,)
        """Return the squared error of the mean on held-out rows as a share of their variance."""
        if len(self.fits[0].held_out_y) < 2:
            return None
        predicted = torch.stack([fit.predicted() for fit in self.fits])
        return unexplained(predicted, torch.stack([fit.held_out_y for fit in self.fits]))

    def describe(self) -> list[dict[str, Any]]:
        """Return the parameters, the likelihood, and the accuracy on held-out rows."""
        errors = self.error()
        return [
            {
                "rows_seen": fit.process.rows,
                "log_likelihood": fit.process.log_likelihood(),
                "length_scales": [round(scale, 4) for scale in fit.process.scales.tolist()],
                "variance": float(fit.process.variance),
                "noise": float(fit.process.noise),
                "jitter": fit.process.jitter,
                "held_out_r2": float("nan") if errors is None else 1 - float(errors[seed]),
                "held_out_rank_correlation": rank_correlation(
                    fit.predicted().numpy(), fit.held_out_y.numpy()
                ),
            }
            for seed, fit in enumerate(self.fits)
        ]
