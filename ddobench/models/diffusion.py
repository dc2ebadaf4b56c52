"""Diffusion: designs dissolve into noise along a known process, and are drawn by running it back.

The process is the variance-preserving one of Song et al. (2021), dx = -beta/2 x dt + sqrt(beta) dW
for times t from 0 to 1, with beta growing in a line: at time t a design is signal(t) times itself
plus noise(t) times a standard normal. Whoever can tell the noise in a design can run it back.
"""

from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise

import torch
from torch import Tensor

from ddobench.rng import Streams

# designs (S, K, d) at a time -> the standard normal noise expected in each, (S, K, d)
Noise = Callable[[Tensor, Tensor], Tensor]


@dataclass(frozen=True)
class Schedule:
    """How fast designs dissolve."""

    first: float  # beta at time 0
    last: float  # beta at time 1
    least: float  # the time before which nothing is asked: there is no noise at time 0

    def rate(self, t: Tensor) -> Tensor:
        """Return beta."""
        return self.first + (self.last - self.first) * t

    def signal(self, t: Tensor) -> Tensor:
        """Return what a design is multiplied by at a time."""
        return (-self._total(t) / 2).exp()

    def noise(self, t: Tensor) -> Tensor:
        """Return the standard deviation of what was added by a time."""
        return (-torch.expm1(-self._total(t))).sqrt()

    def times(self, steps: int) -> Tensor:  # (steps + 1,)
        """Return times from 1 down to `least`, closer together where little noise is left."""
        roots = torch.linspace(1.0, self.least**0.5, steps + 1, dtype=torch.float64)
        return roots.square()

    def spread(self, early: Tensor, late: Tensor) -> Tensor:
        """Return the standard deviation of the noise that is added between two times."""
        return (self._total(late) - self._total(early)).sqrt()

    def _total(self, t: Tensor) -> Tensor:
        """Return the integral of beta from 0."""
        return self.first * t + (self.last - self.first) * t.square() / 2


def draw_designs(
    noise: Noise, schedule: Schedule, steps: int, shape: tuple[int, int], rng: Streams
) -> Tensor:  # (S, K, d)
    """Draw K designs of d variables, shape (K, d), by running standard normals back.

    Each step of the reverse process, dx = (x / 2 + score) beta dt + sqrt(beta) dW with time running
    down and score = -noise / noise(t), is Heun's: its drift is the mean of those at the two ends of
    the step, the second where a plain step with the same dW arrives.
    """

    def drift(x: Tensor, t: Tensor) -> Tensor:
        return schedule.rate(t) * (x / 2 - noise(x, t) / schedule.noise(t))

    x = rng.normal(*shape)
    times = schedule.times(steps).to(x.dtype)
    for late, early in pairwise(times):
        moved = x + schedule.spread(early, late) * rng.normal(*shape)
        first = (late - early) * drift(x, late)
        second = (late - early) * drift(moved + first, early)
        x = moved + (first + second) / 2
    return x
