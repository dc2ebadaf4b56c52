"""Small line-ups of parts, as the configuration files put them together."""

from typing import Any

from ddobench.baselines.coms import Conservative
from ddobench.baselines.linear import Linear
from ddobench.baselines.rwr import RWR
from ddobench.models.training import Training
from ddobench.parts.coordinates import OwnAxes
from ddobench.parts.discovery import Complete
from ddobench.parts.latents import Identity
from ddobench.parts.pipeline import Pipeline
from ddobench.parts.search import Ascent, Search
from ddobench.parts.surrogates import MLP, Surrogate

QUICK = Training(steps=80, batch=32, rate=3e-3)


def assemble(surrogate: Surrogate, search: Search) -> Pipeline:
    """Put a surrogate and a search together on the designs themselves."""
    return Pipeline(
        latent=Identity(), axes=OwnAxes(), graph=Complete(), surrogate=surrogate, search=search,
        device="cpu",
    )  # fmt: skip


def quick_mlp(**settings: Any) -> MLP:
    """Learn a little with a small network."""
    return MLP(training=QUICK, width=16, **settings)


def ga(**settings: Any) -> Pipeline:
    """Climb a small network."""
    return assemble(quick_mlp(**settings), Ascent(steps=6))


def coms(training: Training = QUICK, **settings: Any) -> Pipeline:
    """Climb a small conservative network."""
    surrogate = Conservative(training=training, width=16, negative_steps=3, **settings)
    return assemble(surrogate, Ascent(steps=6))


def rwr(training: Training = QUICK, width: int = 16, **settings: Any) -> Pipeline:
    """Move Gaussians up a small network."""
    return assemble(MLP(training=training, width=width), RWR(**{"steps": 6, **settings}))


def linear(steps: int = 6, ridge: float = 1.0) -> Pipeline:
    """Climb a hyperplane."""
    return assemble(Linear(ridge=ridge), Ascent(steps=steps))
