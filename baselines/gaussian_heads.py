"""Networks that put out a normal distribution of the value: each its mean and its deviation.

An ensemble of them, each trained by likelihood on a bootstrap of the rows, is a mixture of normals.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from ddobench.errors import UsageError, check_whole
from ddobench.models.networks import Passes, StackedMLP
from ddobench.models.training import History, Split, Training
from ddobench.rng import Streams

ROWS_AT_ONCE = 1024


@dataclass(kw_only=True)
class GaussianHeads:
    """How such an ensemble is trained."""

    name: ClassVar[str] = "gaussian_heads"

    training: Training
    members: int = 5
    width: int = 256
    depth: int = 1
    least_sd: float = 0.1
    most_sd: float = 0.2

    def __post_init__(self) -> None:
        check_whole("method.heads.members", self.members, 1)
        check_whole("method.heads.width", self.width, 1)
        check_whole("method.heads.depth", self.depth, 0)
        if not 0 < self.least_sd <= self.most_sd:
            raise UsageError(
                "method.heads.least_sd must be positive and at most method.heads.most_sd, "
                f"got {self.least_sd} and {self.most_sd}"
            )

    def fit(self, x: Tensor, y: Tensor, rng: Streams) -> "Mixture":  # (S, N, d), (S, N)
        """Train the members, each on rows drawn with repetition from those not held out."""
        split = self.training.split(x.shape[1], rng.child("split"))
        networks, histories = [], []
        for member in range(self.members):
            streams = rng.child(f"member{member}")
            sizes = [x.shape[2], *[self.width] * self.depth, 2]
            network = StackedMLP(sizes, streams.child("weights"), x.device)
            picked = streams.child("bootstrap").integers(split.trained.shape[1], x.shape[1])
            step, judge = (LikelihoodStep(network, self.least_sd, self.most_sd) for _ in range(2))
            history = self.training.run(
                [network],
                [x, y],
                Split(split.trained.gather(1, picked), split.held_out),
                step=step,
                check=judge.loss,
                rng=streams.child("minibatches"),
                what=f"head {member + 1}",
            )
            networks.append(network)
            histories.append(history)
        return Mixture(networks, histories, self.least_sd, self.most_sd)


class LikelihoodStep:
    """One training step: writes the gradient of the negative log likelihood and returns it."""

    def __init__(self, network: StackedMLP, least_sd: float, most_sd: float) -> None:
        self.least_sd = least_sd
        self.range = most_sd - least_sd
        self._passes = Passes(network)

    def __call__(self, x: Tensor, y: Tensor) -> Tensor:  # (S, B, d), (S, B) -> (S,)
        """Take the gradient on a minibatch."""
        mean, sd, share = self.heads(x)
        away = (mean - y) / sd  # (S, B)
        to_sd = (1 - away.square()) / sd
        to_raw = to_sd * self.range * share * (1 - share)
        self._passes.backward(torch.stack([away / sd, to_raw], dim=2) / y.shape[1])
        return _negative_log_likelihood(away, sd)

    def loss(self, x: Tensor, y: Tensor) -> Tensor:  # (S, H, d), (S, H) -> (S,)
        """Return the negative log likelihood, up to a constant."""
        mean, sd, _ = self.heads(x)
        return _negative_log_likelihood((mean - y) / sd, sd)

    def heads(self, x: Tensor) -> tuple[Tensor, Tensor, Tensor]:  # (S, B, d) -> (S, B) each
        """Return means, deviations, and where these stand between the least and the most."""
        mean, raw = self._passes.forward(x).unbind(dim=2)
        share = raw.sigmoid()
        return mean.contiguous(), self.least_sd + self.range * share, share


class Mixture:
    """A trained ensemble."""

    def __init__(
        self,
        networks: Sequence[StackedMLP],
        histories: Sequence[History],
        least_sd: float,
        most_sd: float,
    ) -> None:
        self.histories = histories
        self._members = [LikelihoodStep(network, least_sd, most_sd) for network in networks]

    def mean(self, x: Tensor) -> Tensor:  # (S, K, d) -> (S, K)
        """Return the mean value of standardised designs."""
        means = [
            _average([member.heads(rows)[0] for member in self._members])
            for rows in torch.split(x, ROWS_AT_ONCE, dim=1)
        ]
        return torch.cat(means, dim=1)

    def exceed(self, x: Tensor, level: Tensor) -> Tensor:  # (S, K, d), (S,) -> (S, K)
        """Return the probability that a design's value is at least its seed's level."""
        shares = []
        for member in self._members:
            mean, sd, _ = member.heads(x)
            shares.append(torch.special.ndtr((mean - level[:, None]) / sd))
        return _average(shares)

    def failures(self) -> dict[int, str]:
        """Return the seeds whose training diverged, with the reason of the first member."""
        told: dict[int, str] = {}
        for history in reversed(self.histories):
            told |= history.failures
        return told


def _average(members: Sequence[Tensor]) -> Tensor:  # (S, K) each -> (S, K)
    """Add one after the other: a sum over a stacked axis may round by where an entry lies."""
    total = members[0].clone()
    for one in members[1:]:
        total += one
    return total / len(members)


def _negative_log_likelihood(away: Tensor, sd: Tensor) -> Tensor:  # (S, B) each -> (S,)
    return (away.square() / 2 + sd.log()).mean(dim=1)
