"""ICT: importance-aware co-teaching (Yuan, Chen, Liu, Neiswanger, Liu, NeurIPS 2023).

Three networks are adapted along a path that climbs their mean from the best visible row. At each
step of the path, designs are drawn around it, x + 0.1 N(0, I), and each network in turn labels them
for the other two. Of these two, each picks the designs that it fits best, for the other to learn.
The designs have weights: before a network learns, they follow the gradient of its squared error on
visible rows after a step. Then the best rows climb the mean of the adapted networks.

The settings are those of its code and of the commands in its README (mila-iqia/
Importance-aware-Co-teaching at 4198064, `ICT.py`).

Deviations from its code, with reasons:
- noise is drawn for each coordinate, as in the paper; its code adds one number to all of them;
- a weight belongs to a design, and only designs that were picked are learned, as in the paper. In
  its code the shapes (128, 1) and (K,) are multiplied to (128, K), so that in effect all designs
  are learned with the same weight;
- weights follow the error after a plain step, as in the paper; in its code after a step of Adam;
- that error is computed on 1024 rows, new ones in each step, theirs on all rows;
- networks and their training as for Tri-mentoring: see tri_mentoring.py.

Beside its published numbers: python -m ddobench -m experiment=parity
Command: python -m ddobench -m method=ict task=chain d=41 seed=0-9
"""

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor
from torch.nn.functional import normalize

from ddobench.errors import UsageError, check_whole
from ddobench.models.adapting import Parameters, feed, parameters_of, put_back, step_gradient
from ddobench.parts.surrogates import MLP, NetworkModel, TrainingData
from ddobench.progress import track
from ddobench.rng import Stream, Streams

MEMBERS = 3
LARGEST_WEIGHT = 2.0


@dataclass(kw_only=True)
class CoTaught(MLP):
    """Three networks that learn from each other along a path up their mean."""

    name: ClassVar[str] = "co_taught"

    path_steps: int = 200
    path_rate: float = 1e-3
    around: int = 128
    noise: float = 0.1
    keep: int = 64
    adapt_rate: float = 1e-3
    weight_rate: float = 0.3
    weight_limit: float = 0.2
    weight_rows: int = 1024

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.ensemble != MEMBERS:
            raise UsageError(f"surrogate.ensemble must be 3 for co-teaching, got {self.ensemble}")
        for name in ("path_steps", "around", "keep", "weight_rows"):
            check_whole(f"surrogate.{name}", getattr(self, name), 1)
        if self.keep > self.around:
            raise UsageError(
                f"surrogate.keep must be at most surrogate.around={self.around}, got {self.keep}"
            )

    def fit(self, data: TrainingData, rng: Streams) -> NetworkModel:
        """Fit the networks, then let those of each seed teach each other."""
        model = super().fit(data, rng)
        networks = [member.network for member in model.members]
        rows, values = data.means(), data.values()
        for seed, stream in enumerate(track(rng.child("co-teaching").rows, "co-teaching")):
            singles = [
                [one[member : member + 1].requires_grad_() for one in stack]
                for stack in [parameters_of(networks, seed)]
                for member in range(MEMBERS)
            ]
            self._follow_path(singles, rows[seed], values[seed], stream)
            layers = zip(*singles, strict=True)
            put_back(networks, seed, [torch.cat(layer).detach() for layer in layers])
        return model

    def _follow_path(
        self, networks: list[Parameters], rows: Tensor, values: Tensor, stream: Stream
    ) -> None:
        """Adapt three networks along a path from the best of rows (N, e), values (N,)."""
        at = rows[values.argmax()].clone()  # (e,)
        climb = torch.optim.Adam([at], lr=self.path_rate, maximize=True)
        adapt = [torch.optim.Adam(one, lr=self.adapt_rate) for one in networks]
        for _ in range(self.path_steps):
            at.grad = self._slope(networks, at)
            climb.step()
            near = at + self.noise * stream.normal(self.around, len(at)).to(at)  # (A, e)
            with torch.no_grad():
                labels = [feed(one, near[None])[0] for one in networks]  # (A,) each
            for teacher in reversed(range(MEMBERS)):
                few = stream.integers(len(rows), self.weight_rows).to(rows.device)
                students = [one for one in range(MEMBERS) if one != teacher]
                picked = [self._pick(networks[one], near, labels[teacher]) for one in students]
                for student, theirs in zip(students, reversed(picked), strict=True):
                    batch = near[theirs], labels[teacher][theirs]
                    slopes = self._weighted_gradient(
                        networks[student], *batch, rows[few], values[few]
                    )
                    for one, slope in zip(networks[student], slopes, strict=True):
                        one.grad = slope
                    adapt[student].step()

    def _slope(self, networks: list[Parameters], at: Tensor) -> Tensor:  # (e,) -> (e,)
        """Return the gradient of the mean of the networks."""
        point = at.detach().clone().requires_grad_()
        total = torch.cat([feed(one, point[None, None]) for one in networks]).mean()
        (slope,) = torch.autograd.grad(total, [point])
        return slope

    def _pick(self, network: Parameters, near: Tensor, label: Tensor) -> Tensor:
        """Return which designs (A, e) a network fits best, (keep,)."""
        with torch.no_grad():
            error = (feed(network, near[None])[0] - label).square()  # (A,)
        return error.argsort(stable=True)[: self.keep]

    def _weighted_gradient(
        self, network: Parameters, near: Tensor, label: Tensor, rows: Tensor, values: Tensor
    ) -> tuple[Tensor, ...]:
        """Return the gradient of the weighted error on designs (keep, e) with labels (keep,).

        The weights are those that lower the error on `rows` (R, e), `values` (R,).
        """
        weight = torch.ones_like(label).requires_grad_()  # (keep,)
        error = (feed(network, near[None]) - label).square()  # (1, keep)

        def afterwards(stepped: Parameters) -> Tensor:
            return (feed(stepped, rows[None]) - values).square().mean(dim=1)

        loss = (weight * error).mean(dim=1)
        slope = step_gradient(network, loss, self.adapt_rate, afterwards, weight)
        limited = normalize(slope, p=1, dim=0).clamp(-self.weight_limit, self.weight_limit)
        weight = (1 - self.weight_rate * limited).clamp(0, LARGEST_WEIGHT)
        return torch.autograd.grad((weight * error).mean(), network)
