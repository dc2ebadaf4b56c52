"""RNA binding: how strongly a short strand binds a target of 100 letters, by ViennaRNA.

The problems of FLEXS (Sinai et al. 2020, `flexs/landscapes/rna.py`, whose four targets these are):
the energy of the duplex of target and strand, per letter, relative to that of the complement of the
target, so that 1 is about as good as the complement. FLEXS has d=14, 50 and 100: its `L14_RNA1` is
`d=14 task.target=1`. The oracle is a published physical energy model, not a learned one.

The optimum is unknown: `optimum` is None, and runs have values but no regret. A lower bound is the
best of all pieces of the complement with d letters, 1.05 at d=14 and 1.09 at d=50 for target 1;
uniform strands of 14 letters have 0.30 on average.

ViennaRNA is an extra, `pip install 'ddobench[rna]'`: its licence allows any use but not to sell it.
An energy takes about 0.6 ms at d=14 and 5 ms at d=50. Each is computed once, many of them in as
many processes as PyTorch has threads.
"""

from dataclasses import dataclass
from functools import partial
from typing import ClassVar, Literal

import torch
from torch import Tensor

from ddobench.contracts import Dataset, Description, Problem, Space, Task
from ddobench.errors import UsageError, check_truncation, check_whole
from ddobench.rng import Stream, Streams
from ddobench.tasks.duplexes import find_energies
from ddobench.tasks.truncation import fill_below

LETTERS = "ACGU"  # the states 0 to 3 of a variable
_COMPLEMENTS = str.maketrans(LETTERS, LETTERS[::-1])
TARGETS = (
    "GAACGAGGCACAUUCCGGCUCGCCCGGCCCAUGUGAGCAUGGGCCGGACC"
    "CCGUCCGCGCGGGGCCCCCGCGCGGACGGGGGCGAGCCGGAAUGUGCCUC",
    "GAGGCACAUUCCGGCUCGCCCCCGUCCGCGCGGGGGCCCCGCGCGGACGG"
    "GGUCCGGCCCGCGCGGGGCCCCCGCGCGGGAGCCGGAAUGUGCCUCGUUC",
    "CCGGUGAUACUGUUAGUGGUCACGGUGCAUUUAUAGCGCUAAAGUACAGU"
    "CUUCCCCUGUUGAACGGCGCCAUUGCAUACAGGGCCAGCCGCGUAACGCC",
    "UAAGAGAGCGUAAAAAUAGAGAUAUGUUCUUGGGUCAGGGCUAUGCGUAC"
    "CCCAUGAGAGUAAAUCAUACCCCCAAUGGGCUUCGGCGGAAAUUCACUUA",
)  # fmt: skip
SHORTEST = 5
PILOT = 1000  # rows that determine a percentile; few, as each costs milliseconds


@dataclass(frozen=True)
class Binding:
    """The value of strands that bind a target."""

    target: str

    def __call__(self, x: Tensor) -> Tensor:  # (..., d) -> (...)
        """Return the values of strands."""
        rows = x.to(torch.int64).flatten(0, -2).tolist()
        strands = ["".join(LETTERS[state] for state in row) for row in rows]
        return self.of_strands(strands, x.shape[-1]).reshape(x.shape[:-1])

    def of_strands(self, strands: list[str], d: int) -> Tensor:
        """Return the values of strands of d letters, (K,)."""
        energies = find_energies(self.target, strands, torch.get_num_threads())
        return torch.tensor(energies, dtype=torch.float64) / self._unit(d)

    def complements(self, d: int) -> list[str]:
        """Return the pieces of the complement that have d letters."""
        whole = complement(self.target)
        return [whole[i : i + d] for i in range(len(whole) - d + 1)]

    def _unit(self, d: int) -> float:
        """Return the energy of the complement, scaled to d letters, as in FLEXS."""
        (energy,) = find_energies(complement(self.target), [self.target], 1)
        return energy * d / len(self.target)


def complement(strand: str) -> str:
    """Return the complementary strand."""
    return strand[::-1].translate(_COMPLEMENTS)


@dataclass(frozen=True, kw_only=True)
class RNAProblem(Problem):
    """Strands that bind a target, which is the same for all seeds."""

    binding: Binding

    def _evaluate(self, x: Tensor) -> Tensor:
        return self.binding(x)


@dataclass(frozen=True, kw_only=True)
class RNA(Task):
    """Uniform strands that should bind a target."""

    name: ClassVar[str] = "RNA"
    regret_unit: ClassVar[Literal["sd", "raw"]] = "raw"

    target: int = 1
    truncate: float | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        longest = len(TARGETS[0])
        check_whole("d", self.d, SHORTEST, "shorter strands hardly bind")
        if self.d > longest:
            raise UsageError(f"d must be at most {longest}, the letters of a target, got {self.d}")
        check_whole("task.target", self.target, 1)
        if self.target > len(TARGETS):
            raise UsageError(f"task.target must be from 1 to {len(TARGETS)}, got {self.target}")
        check_truncation(self.truncate)

    def describe(self) -> Description:
        """Describe the task."""
        hidden = (
            ""
            if self.truncate is None
            else f", of values up to percentile {self.truncate:g} of uniform ones"
        )
        return Description(
            title=f"RNA strands of {self.d} letters that should bind target {self.target}",
            formula=f"f(x) = E(x, target) / E(complement, target) · 100/{self.d}, "
            f"x ∈ {{A, C, G, U}}^{self.d}",
            text=f"{self.n} uniform strands are visible{hidden}. E is the energy of the duplex by "
            "ViennaRNA. The optimum is unknown, so that runs have no regret; it is at least "
            f"{self._lower_bound():.3f}, the best piece of the target's complement.",
        )

    def _draw(self, rng: Streams) -> RNAProblem:
        seeds = len(rng.seeds)
        binding = self._binding()
        x = torch.empty(seeds, self.n, self.d, dtype=torch.float64)
        y = torch.empty(seeds, self.n, dtype=torch.float64)
        for s, stream in enumerate(rng.rows):
            pilot = partial(self._take, stream.child("pilot"), binding)
            rows = partial(self._take, stream.child("designs"), binding)
            fill_below(x[s], y[s], self.truncate, pilot=pilot, rows=rows, size=PILOT)
        return RNAProblem(
            data=Dataset(x=x, y=y, space=Space(self.d, (len(LETTERS),) * self.d)),
            optimum=None,
            graphs=None,
            lower_bound=torch.full((seeds,), self._lower_bound(), dtype=torch.float64),
            binding=binding,
        )

    def _take(self, designs: Stream, binding: Binding, rows: int) -> tuple[Tensor, Tensor]:
        """Draw the next strands (rows, d) and their values (rows,)."""
        x = designs.integers(len(LETTERS), rows, self.d).to(torch.float64)
        return x, binding(x)

    def _binding(self) -> Binding:
        return Binding(TARGETS[self.target - 1])

    def _lower_bound(self) -> float:
        binding = self._binding()
        return float(binding.of_strands(binding.complements(self.d), self.d).max())
