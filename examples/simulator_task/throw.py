"""A task around a simulator: how far does a ball fly, less what the throw costs?"""

from dataclasses import dataclass
from math import cos, hypot, radians, sin
from typing import ClassVar

import torch
from ddobench.contracts import Dataset, Description, Problem, Space, Task
from ddobench.errors import UsageError

LOW, HIGH = (0.0, 5.0, 0.0), (90.0, 40.0, 1.0)  # angle, speed, height


def simulate(angle, speed, height):
    """Return metres flown less the cost of speed; any plain Python function will do."""
    x, z, dt = 0.0, height, 0.05
    vx, vz = speed * cos(radians(angle)), speed * sin(radians(angle))
    while z >= 0:
        drag = 0.01 * hypot(vx, vz)
        vx, vz = vx - dt * drag * vx, vz - dt * (9.81 + drag * vz)
        x, z = x + dt * vx, z + dt * vz
    return x - 0.02 * speed**2


def value(x):  # (S, K, 3) -> (S, K)
    """Call the simulator for each design; NaN outside its box."""
    low, high = torch.tensor(LOW, dtype=x.dtype), torch.tensor(HIGH, dtype=x.dtype)
    valid = ((x >= low) & (x <= high)).all(dim=-1).flatten().tolist()
    rows = zip(valid, x.flatten(0, 1).tolist(), strict=True)
    y = [simulate(*row) if ok else float("nan") for ok, row in rows]
    return torch.tensor(y, dtype=torch.float64).view(x.shape[:2])


class ThrowProblem(Problem):
    def _evaluate(self, x):
        return value(x)


@dataclass(frozen=True, kw_only=True)
class Throw(Task):
    name: ClassVar[str] = "throw"

    def __post_init__(self):
        super().__post_init__()
        if self.d != len(LOW):
            raise UsageError(f"a throw has angle, speed and height, so d=3, got {self.d}")

    def describe(self):
        return Description(
            title="A ball thrown",
            formula="f(angle, speed, height) = metres - speed² / 50",
            text=f"{self.n} uniform throws are visible; designs outside their box are invalid.",
        )

    def _draw(self, rng):
        low = torch.tensor(LOW, dtype=torch.float64)
        width = torch.tensor(HIGH, dtype=torch.float64) - low
        x = low + width * rng.child("designs").uniform(self.n, self.d, dtype=torch.float64)
        data = Dataset(x=x, y=value(x), space=Space(self.d))
        return ThrowProblem(data=data, optimum=None, graphs=None)  # not known
