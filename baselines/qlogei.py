"""Batch expected improvement on a Gaussian process: BO-qEI of Design-Bench, with qLogEI.

Trabucco, Geng, Kumar, Levine (2022) list Bayesian optimisation as a baseline: a process fitted to
the best 500 rows, batches of 32 designs that maximise Monte Carlo expected improvement (qEI) from
10 restarts picked among 128 raw samples, within the range of the data. `search=qlogei` does so with
the logarithm of Ament et al. (2023), whose gradient does not vanish, on the process of
`surrogate=gp`. Both come from `botorch`, an extra: pip install 'ddobench[botorch]'.

Deviations (an adaptation):
- nothing can be observed between batches: designs of earlier batches are pending, so that later
  ones keep away from them. The original uses the mean of an ensemble in place of observations;
- improvement is relative to the highest posterior mean of the rows, whose values may be noisy;
- there are as many batches as needed for the designs of the budget, at most 128 designs. These
  start as the best rows, and each batch replaces the next rows;
- the proposals are the designs of all batches. The original proposes the 128 designs with the
  highest observations among 320 of its batches and the 500 rows, so that its median is that of the
  best rows where these seem better;
- our process learns its noise (the original fixes it at 0.1), and on real designs it is fitted to
  the best and to random rows: see gp.py. On categories it is fitted to the best rows alone, as in
  `bo_qei/experiments.py` of brandontrabucco/design-baselines at 785dbcf;
- L-BFGS has 50 steps for a batch, the original 200.

Beside its published numbers: python -m ddobench -m experiment=parity
Command: python -m ddobench -m method=bo_qei task=chain d=41 seed=0-9
"""

import warnings
from collections.abc import Iterator, MutableMapping
from dataclasses import dataclass
from typing import Any, ClassVar

import torch
from torch import Tensor

from ddobench.baselines.gp import LEAST_NOISE, Process, ProcessModel
from ddobench.contracts import Dataset
from ddobench.errors import UsageError, check_whole
from ddobench.parts.search import AscentStep, Search, check_beginning, pick_beginning
from ddobench.parts.surrogates import Model
from ddobench.registry import missing_dependency
from ddobench.rng import Stream, Streams

NEEDS = {"needs": "botorch", "install": "ddobench[botorch]"}


@dataclass(kw_only=True)
class QLogEI(Search):
    """Batches of designs with the largest joint expected improvement."""

    name: ClassVar[str] = "qlogei"
    reads_posterior: ClassVar[bool] = True
    uses_gradient: ClassVar[bool] = False

    begin_at: str = "top"
    designs: int = 128
    q: int = 32
    restarts: int = 10
    raw: int = 128
    draws: int = 128
    steps: int = 50

    def __post_init__(self) -> None:
        check_beginning(self.begin_at, self.designs)
        for name in ("q", "restarts", "raw", "draws", "steps"):
            check_whole(f"search.{name}", getattr(self, name), 1)
        if lack := missing_dependency(NEEDS):  # not a decline, which would be stored
            raise UsageError(f"search=qlogei cannot be built here: {lack}")

    def begin(self, starts: Tensor, data: Dataset) -> Tensor:  # (S, K, d) -> (S, at most K, d)
        """Return the rows that the batches replace."""
        return pick_beginning(self.begin_at, self.designs, starts, data)

    def run(
        self,
        start: Tensor,
        model: Model,
        rng: Streams,
        failures: MutableMapping[int, str],  # noqa: ARG002 - a batch stays within the range of the data
    ) -> Iterator[AscentStep]:
        """Replace one batch of designs after the other."""
        assert isinstance(model, ProcessModel)
        x = start.clone()  # (S, K, e)
        yield AscentStep(0, x.clone(), model.value(x))
        improvements = [Improvement(fit.process) for fit in model.fits]
        streams = rng.child("qlogei").rows
        for batch, first in enumerate(range(0, x.shape[1], self.q)):
            for seed, (improvement, stream) in enumerate(zip(improvements, streams, strict=True)):
                pending = x[seed, :first].double().cpu()
                size = min(self.q, x.shape[1] - first)
                found = improvement.best_batch(size, pending, stream.child(f"{batch}"), self)
                x[seed, first : first + size] = found.to(x)
            yield AscentStep(batch + 1, x.clone(), model.value(x))


class Improvement:
    """The expected improvement of batches by one process, within the range of its rows."""

    def __init__(self, process: Process) -> None:
        self.model = as_botorch(process)
        self.best = float(process.posterior(process.z)[0].max())
        self.bounds = torch.stack([process.z.amin(dim=0), process.z.amax(dim=0)])  # (2, e)

    def log_value(self, pending: Tensor, draws: int, seed: int) -> Any:
        """Return the acquisition function, designs (P, e) being pending."""
        from botorch.acquisition.logei import (
            qLogExpectedImprovement,
        )
        from botorch.sampling.normal import (
            SobolQMCNormalSampler,
        )

        sampler = SobolQMCNormalSampler(torch.Size([draws]), seed=seed)
        return qLogExpectedImprovement(
            self.model, self.best, sampler=sampler, X_pending=pending if len(pending) else None
        )

    def best_batch(
        self, size: int, pending: Tensor, stream: Stream, search: QLogEI
    ) -> Tensor:  # (size, e)
        """Return the best batch that is found."""
        from botorch.exceptions.warnings import BadInitialCandidatesWarning
        from botorch.optim import optimize_acqf
        from botorch.utils.sampling import manual_seed

        seed = int(stream.integers(2**31 - 1, 1)[0])
        with (
            manual_seed(seed),  # for what botorch draws; restores the state
            warnings.catch_warnings(),  # if no start is better than another, any will do
        ):
            warnings.simplefilter("ignore", BadInitialCandidatesWarning)
            batch, _ = optimize_acqf(
                self.log_value(pending, search.draws, seed),
                self.bounds,
                q=size,
                num_restarts=search.restarts,
                raw_samples=search.raw,
                options={"maxiter": search.steps, "seed": seed},
            )
        found: Tensor = batch.detach()
        return found


def as_botorch(process: Process) -> Any:
    """Return the same process, rows and parameters, as a model of botorch."""
    from botorch.models import SingleTaskGP
    from botorch.settings import validate_input_scaling
    from gpytorch.kernels import (
        AdditiveKernel,
        RBFKernel,
        ScaleKernel,
    )

    bumps = []
    for clique in process.kernel.cliques:
        bump = RBFKernel(ard_num_dims=len(clique), active_dims=tuple(clique)).double()
        bump.lengthscale = process.scales[list(clique)]
        bumps.append(bump)
    kernel = ScaleKernel(AdditiveKernel(*bumps)).double()
    kernel.outputscale = process.variance / len(bumps)
    noise = process.noise + LEAST_NOISE + process.jitter * process.variance
    with validate_input_scaling(False):  # coordinates are standardised, not in a unit cube
        model = SingleTaskGP(
            process.z,
            process.y[:, None],
            train_Yvar=noise.expand(process.rows, 1),
            covar_module=kernel,
            outcome_transform=None,
        )
    model.mean_module.constant.data.fill_(float(process.mean))
    return model.requires_grad_(False).eval()
