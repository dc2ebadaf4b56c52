"""VAE-GA: gradient ascent in the latent space of a VAE (after Gómez-Bombarelli et al. 2018).

The ablation of the FGM paper: everything as in `fgm`, the same VAE of the same seed included, but
the graph is complete, so that one ordinary MLP of all codes is fitted and climbed. What `fgm` gains
over it is due to the graph alone. `latent=` and `axes=` apply as there, `graph=` does not.

It differs from the paper's where `fgm` does.

Its row: python -m ddobench -m method=vae_ga task=chain d=41 seed=0-9
"""

from dataclasses import dataclass, field
from typing import ClassVar

from ddobench.baselines.fgm import FGM
from ddobench.contracts import Dataset
from ddobench.discovery import Complete, Discovery


@dataclass(kw_only=True)
class VAEGA(FGM):
    """FGM with all edges."""

    name: ClassVar[str] = "vae_ga"

    graph: Discovery = field(init=False, default_factory=Complete)
    ridge: float = field(init=False, default=0.0)

    def declines(self, data: Dataset) -> str | None:
        """Decline designs without a gradient."""
        if data.space.categorical:
            return "vae_ga climbs continuous designs only"
        return super().declines(data)
