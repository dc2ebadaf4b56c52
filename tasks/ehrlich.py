"""Ehrlich functions: sequences that should contain several motifs; most sequences are invalid.

Stanton et al. (2024), *Closed-Form Test Functions for Biophysical Sequence Design*. A chain of
states has banned transitions; a sequence with one of them is invalid. A motif is k states at given
spacings. Its presence is the largest share of it at any position, in q steps, and f is the product
over c motifs. So f is 0 unless a part of every motif is present, and single letters have little
effect.

The optimum is 1, certified by a design that contains every motif: the motifs one after the other
are a walk that the chain allows, gaps are filled by repeating a state, which is always allowed, and
the whole fits into d.

Visible rows are walks of the chain from its stationary distribution, all valid; of uniform designs
with 32 states and d=32 only 6 in 10,000 are. The best of 5,000 such walks with 4 motifs of 4 is
between 0.07 and 0.42 in 19 of the seeds 0 to 19 (median 0.14) and the optimum in one, as in the
reference: motifs may repeat a state, and then walks contain them by chance. The function of a seed
does not depend on n or truncation, and a smaller table is the beginning of a larger one.

Written from the paper; how instances are drawn follows the authors' package (pytorch-holo 0.0.5,
MIT), with our own random streams, so that its seeds give other instances. Compared with it: built
from the motifs, spacings and transition matrices of 24 of its instances (three of each of eight
sizes and quantisations), `find_value` equals its values on walks of its chain, on walks with motifs
written into them, on its own optimal solutions and on uniform sequences, where NaN is its -inf.
Not included: its epistasis (0 by default), and a quantisation that does not divide k, whose largest
value is below 1 there.
"""

from dataclasses import dataclass
from functools import partial
from typing import ClassVar, Literal

import torch
from torch import Tensor

from ddobench.contracts import Dataset, Description, Problem, Space, Task
from ddobench.errors import UsageError, check_truncation, check_whole
from ddobench.rng import Stream, Streams
from ddobench.tasks.truncation import fill_below

BAND = 0.4  # share of the states on either side that a state may change to
SHARPNESS = 2.0  # factor on the normal logits of transitions, 1/0.5 in the reference


@dataclass(frozen=True)
class Chain:
    """A Markov chain; transitions of probability 0 are banned."""

    transitions: Tensor  # (v, v) from row to column

    def allows(self, x: Tensor) -> Tensor:  # (K, d) whole -> (K,)
        """Return which sequences have no banned transition."""
        return (self.transitions[x[:, :-1], x[:, 1:]] > 0).all(dim=1)

    def walk(self, steps: Tensor) -> Tensor:  # (K, d) uniforms -> (K, d) whole
        """Return walks from the stationary distribution, one step for each number of [0, 1)."""
        ladder = _cumulate(self.transitions)  # (v, v)
        states = [_climb(_cumulate(self.stationary())[None], steps[:, :1])]
        for step in steps[:, 1:].unbind(dim=1):
            states.append(_climb(ladder[states[-1]], step[:, None]))
        return torch.stack(states, dim=1)

    def stationary(self) -> Tensor:
        """Return the stationary distribution, (v,)."""
        v = len(self.transitions)
        balance = self.transitions.T - torch.eye(v, dtype=torch.float64)
        balance[-1] = 1.0  # one of the equations is redundant
        total = torch.zeros(v, dtype=torch.float64)
        total[-1] = 1.0
        shares: Tensor = torch.linalg.solve(balance, total)
        return shares.clamp(min=0)


def _cumulate(shares: Tensor) -> Tensor:  # (..., v) -> (..., v), the last exactly 1
    ladder = shares.cumsum(dim=-1)
    return ladder / ladder[..., -1:]


def _climb(ladder: Tensor, height: Tensor) -> Tensor:  # (K or 1, v), (K, 1) -> (K,)
    """Return the first state whose cumulative share exceeds each height."""
    return (ladder <= height).sum(dim=1)


@dataclass(frozen=True)
class Motifs:
    """The motifs of a sequence: c motifs of k states, at offsets from their first position."""

    states: Tensor  # (c, k) whole
    offsets: Tensor  # (c, k) whole, the first 0

    def presence(self, x: Tensor, quantisation: int) -> Tensor:  # (K, d) whole -> (K, c)
        """Return the largest share of each motif at any position, rounded down to a step."""
        k = self.states.shape[1]
        parts = []
        for states, offsets in zip(self.states, self.offsets, strict=True):
            begins = torch.arange(x.shape[1] - int(offsets[-1]))
            count = (x[:, begins[:, None] + offsets] == states).sum(dim=2).amax(dim=1)
            parts.append(count * quantisation // k)
        return torch.stack(parts, dim=1).to(torch.float64) / quantisation

    def solution(self, d: int) -> Tensor:
        """Return a sequence that contains every motif, (d,); gaps and the end repeat a state."""
        lengths = self.offsets.diff(dim=1, append=self.offsets[:, -1:] + 1)
        filled = self.states.flatten().repeat_interleave(lengths.flatten())
        return torch.cat([filled, filled[-1:].expand(d - len(filled))])


def find_value(x: Tensor, chain: Chain, motifs: Motifs, quantisation: int) -> Tensor:
    """Return the product of the presence of all motifs in designs (K, d), NaN if invalid, (K,)."""
    whole = x.to(torch.int64)
    value = motifs.presence(whole, quantisation).prod(dim=1)
    return torch.where(chain.allows(whole), value, torch.nan)


@dataclass(frozen=True, kw_only=True)
class EhrlichProblem(Problem):
    """Ehrlich functions with the chain and the motifs of each seed."""

    chains: tuple[Chain, ...]
    motifs: tuple[Motifs, ...]
    quantisation: int

    def _evaluate(self, x: Tensor) -> Tensor:
        return torch.stack(
            [
                find_value(rows, chain, motifs, self.quantisation)
                for rows, chain, motifs in zip(x, self.chains, self.motifs, strict=True)
            ]
        )

    def best_designs(self) -> Tensor:
        """Return a design of each seed that attains the optimum, (S, d)."""
        d = self.data.space.d
        return torch.stack([motifs.solution(d) for motifs in self.motifs]).to(torch.float64)


@dataclass(frozen=True, kw_only=True)
class Ehrlich(Task):
    """Walks of a chain with banned transitions; the value is the presence of motifs."""

    name: ClassVar[str] = "Ehrlich"
    regret_unit: ClassVar[Literal["sd", "raw"]] = "raw"

    states: int = 32
    motifs: int = 4
    length: int = 4
    quantisation: int = 4
    truncate: float | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        check_whole("task.states", self.states, 3, "with fewer, states may be unreachable")
        check_whole("task.motifs", self.motifs, 1)
        check_whole("task.length", self.length, 2, "a motif has several states")
        check_whole("task.quantisation", self.quantisation, 1)
        if self.length % self.quantisation:
            raise UsageError(
                f"task.quantisation must divide task.length={self.length}, "
                f"got {self.quantisation}; otherwise no sequence has the value 1"
            )
        if self.d < self.motifs * self.length:
            raise UsageError(
                f"d must be at least {self.motifs * self.length}, for task.motifs={self.motifs} of "
                f"task.length={self.length} side by side, got {self.d}"
            )
        check_truncation(self.truncate)

    def describe(self) -> Description:
        """Describe the task."""
        hidden = (
            ""
            if self.truncate is None
            else f", of values up to percentile {self.truncate:g} of such walks"
        )
        return Description(
            title=f"Ehrlich function of {self.d} letters out of {self.states}, with "
            f"{self.motifs} motifs of {self.length}",
            formula=f"f(x) = ∏ₘ largest share of motif m in x, in steps of 1/{self.quantisation}, "
            f"x ∈ {{0, ..., {self.states - 1}}}^{self.d} without banned transitions",
            text=f"{self.n} walks of a Markov chain are visible{hidden}; a design with a "
            "transition that the chain never makes is invalid. The optimum is 1, attained by "
            "construction; regret is 1 minus f(x̂).",
        )

    def _draw(self, rng: Streams) -> EhrlichProblem:
        seeds = len(rng.seeds)
        chains = tuple(self._draw_chain(stream.child("chain")) for stream in rng.rows)
        motifs = tuple(
            self._draw_motifs(stream.child("motifs"), chain)
            for stream, chain in zip(rng.rows, chains, strict=True)
        )
        x = torch.empty(seeds, self.n, self.d, dtype=torch.float64)
        y = torch.empty(seeds, self.n, dtype=torch.float64)
        for s, stream in enumerate(rng.rows):
            pilot = partial(self._take, stream.child("pilot"), chains[s], motifs[s])
            rows = partial(self._take, stream.child("designs"), chains[s], motifs[s])
            fill_below(x[s], y[s], self.truncate, pilot=pilot, rows=rows)
        return EhrlichProblem(
            data=Dataset(x=x, y=y, space=Space(self.d, (self.states,) * self.d)),
            optimum=torch.ones(seeds, dtype=torch.float64),
            graphs=None,
            chains=chains,
            motifs=motifs,
            quantisation=self.quantisation,
        )

    def _take(
        self, designs: Stream, chain: Chain, motifs: Motifs, rows: int
    ) -> tuple[Tensor, Tensor]:
        """Draw the next designs (rows, d) and their values (rows,)."""
        x = chain.walk(designs.uniform(rows, self.d, dtype=torch.float64)).to(torch.float64)
        return x, find_value(x, chain, motifs, self.quantisation)

    def _draw_chain(self, stream: Stream) -> Chain:
        """Draw transitions; more than half of those from and to each state are allowed.

        So every state can be reached from any other within two steps.
        """
        v = self.states
        logits = stream.child("logits").normal(v, v, dtype=torch.float64)
        around = torch.arange(v)
        away = (around - around[:, None]) % v  # (v, v)
        band = torch.minimum(away, v - away) <= int(BAND * v)
        allowed = band[stream.child("bans").permutation(v)]
        allowed.fill_diagonal_(True)
        weights = torch.where(allowed, (SHARPNESS * logits).softmax(dim=1), 0.0)
        return Chain(weights / weights.sum(dim=1, keepdim=True))

    def _draw_motifs(self, stream: Stream, chain: Chain) -> Motifs:
        """Draw motifs as one walk, and spacings such that all of them fit."""
        c, k = self.motifs, self.length
        steps = stream.child("states").uniform(1, c * k, dtype=torch.float64)
        spare = (self.d - c * k) // c  # positions that each motif may be stretched by
        shares = stream.child("spacings").uniform(c, k - 1, dtype=torch.float64)
        gaps = 1 + (spare * shares / shares.sum(dim=1, keepdim=True)).floor().to(torch.int64)
        offsets = torch.cat([torch.zeros(c, 1, dtype=torch.int64), gaps.cumsum(dim=1)], dim=1)
        return Motifs(chain.walk(steps).reshape(c, k), offsets)
