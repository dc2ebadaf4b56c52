"""Measured data of others: where each set comes from, by which hash it is known, and where it lies.

Nothing here is part of the package, except for what `tasks/data` has. `python -m ddobench.data`
fetches a set from its public address into the folder DDOBENCH_DATA, or the user's cache if that is
not set. A file of one's own is given to a task by `task.file`. Every file is known by the SHA-256
of its text, whether it is compressed (.gz) or not and whatever its line ends are.
"""

import gzip
import hashlib
import os
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from ddobench.errors import UsageError

FOLDER = "DDOBENCH_DATA"
_OLYMPUS = (
    "https://raw.githubusercontent.com/aspuru-guzik-group/olympus/"
    "440b6b58ebfcaa2391cff7e94b570fb4fda98d68/src/olympus/datasets/dataset_{}/data.csv"
)
_FLIP = (
    "https://raw.githubusercontent.com/J-SNACKKB/FLIP/62cace8735f5610e2743cf06ce0f944b37fffaa6/"
    "splits/gb1/four_mutations_full_data.csv.zip"
)


@dataclass(frozen=True)
class Part:
    """A file at a public address."""

    address: str
    sha256: str | None  # of what is downloaded; None: only that of the text in it is known
    member: str = ""  # of an archive
    label: str = ""  # that becomes the first column of its rows


@dataclass(frozen=True)
class DataSet:
    """A table of designs and values: one text file, made of the parts at public addresses."""

    name: str
    file: str  # its name in the folder
    sha256: str  # of its text
    licence: str
    citation: str
    parts: tuple[Part, ...]
    header: str = ""  # the names of its columns, where the parts have none or others
    columns: tuple[int, ...] = ()  # those of the parts that are kept; (): all

    def assemble(self, downloads: list[bytes]) -> bytes:
        """Return the text of the file, from the text of each part."""
        if not self.header:
            return b"".join(downloads)
        lines = [self.header]
        for part, text in zip(self.parts, downloads, strict=True):
            rows = [line.split(",") for line in text.decode().splitlines()]
            rows = rows[1:] if self.columns else rows  # those of which some are kept have names
            for row in rows:
                kept = [row[i] for i in self.columns] if self.columns else row
                lines.append(",".join([part.label, *kept] if part.label else kept))
        return ("\n".join(lines) + "\n").encode()


def _plate(number: int, metals: str, download: str, text: str) -> DataSet:
    names = ",".join(f"{metal}_load" for metal in metals.split())
    return DataSet(
        f"oer_plate_{number}", f"oer_plate_{number}.csv", text, "MIT",
        "Rohr et al., Chemical Science 11 (2020) 2696; Hickman et al., Olympus",
        (Part(_OLYMPUS.format(f"oer_plate_{number}"), download),),
        header=f"{names},overpotential",
    )  # fmt: skip


SETS = {one.name: one for one in (
    DataSet(
        "superconductor", "unique_m.csv",
        "0b65422da1a14170caf74b581c0ace565fb7d5ab817f74226c68ac48e2fffeec", "CC BY 4.0",
        "Hamidieh, Computational Materials Science 154 (2018) 346; UCI 464, 10.24432/C53P47",
        (Part("https://archive.ics.uci.edu/static/public/464/superconductivty+data.zip", None,
              member="unique_m.csv"),),
    ),
    _plate(3496, "ni fe co mn ce la",
           "3c70049ccfdd11bc05d1777421fc4c724d2b2d4a86c12b8759079609912cfade",
           "4ac55295d753f2448ca4e12532234f4d3dc678fd0f1602f90c11747a46bdbae9"),
    _plate(3851, "ni fe co ta mn cu",
           "e2212be9cc5c866fa98dcb9513fca63946003f317688cb025bd0d648d8c3caab",
           "c966038c0b09a0fca757d8c1006f54586584230e1a5dd8f5cb309b7a3573d3d6"),
    _plate(3860, "sn fe co ta mn cu",
           "834e2832818900e5cefa9de3b433e2246424faa1b2c3c460a1daf0707710fc90",
           "362ed34364193a4a6b26350b1cb22e7a8a48a4c93fc42137edbab0c268e3ef6f"),
    _plate(4098, "sn sb co ca ni mn",
           "a3e4b4b781e3a04f861d062e773ce64d543118aa8ee9ccfc1aa4612502070b12",
           "642fc6d1118aa5b3ce9ef35000305fe028acda3b6d2e49e79416c0912afc07cf"),
    DataSet(
        "suzuki", "suzuki_edbo.csv",
        "9fdc686266c80d15ed6cb2b2cce1d6e05e3046804af31eaeda9d1ee38f627a8d", "MIT",
        "Perera et al., Science 359 (2018) 429; Hickman et al., Olympus",
        (Part(_OLYMPUS.format("suzuki_edbo"),
              "0aefcd2d26b35b6388e69e8d5f00438a209f09157280c264fc9d98597fad8b48"),),
        header="electrophile,nucleophile,base,ligand,solvent,yield",
    ),
    DataSet(
        "buchwald", "buchwald.csv",
        "7de3bc09a5542c25c69a12f2e4dc8a4ebf026c049c38a279b16689150cd3fd51", "MIT",
        "Ahneman et al., Science 360 (2018) 186; Hickman et al., Olympus",
        tuple(Part(_OLYMPUS.format(f"buchwald_{label}"), sha256, label=label)
              for label, sha256 in {
                  "a": "b9a22a2b718874203088dcb9f3b077bbffdf772a3592a4cb48e97f3f5e429f37",
                  "b": "10e73b71a5857d30f4f41697cfa0bd5fb07c7b0abdd7e0e22427a7073b2bc592",
                  "c": "e17fe458be7701825404175d424dc94e242133169b1d663bcba03d375da2e267",
                  "d": "1616d49f99180074ee90b86259e1f5e99ecb517966186b1e0b2e95609ecb76e0",
                  "e": "8550527116fadd7a4b51022dcb68729ecb45400419c4a064be708abd3ed9dda5",
              }.items()),
        header="product,aryl_halide,additive,base,ligand,yield",
    ),
    DataSet(
        "gb1", "gb1.csv",
        "c644619f9a551866c9974004db8070477438e5ab397d5576acbbc729f110c5fe", "AFL-3.0, CC BY 4.0",
        "Wu et al., eLife 5 (2016) e16965; Dallago et al., FLIP",
        (Part(_FLIP, "85692d808dcd3ae54fa2ac31f4e590858d4582369b6c7b05df299b9b6c383bff",
              member="four_mutations_full_data.csv"),),
        header="variant,count_input,count_selected,fitness",
        columns=(0, 2, 3, 4),
    ),
)}  # fmt: skip


def find_set(name: str) -> DataSet:
    """Return a set by its name."""
    if name not in SETS:
        raise UsageError(f"there is no data set {name!r}; there are {', '.join(SETS)}")
    return SETS[name]


def data_folder() -> Path:
    """Return the folder of all data sets."""
    if folder := os.environ.get(FOLDER):
        return Path(folder)
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache", "ddobench")


def find_file(name: str) -> Path | None:
    """Return the file of a set in the folder or in a folder of that, None if it is not there."""
    wanted = find_set(name).file
    return next((path for path in _candidates(data_folder(), wanted) if path.is_file()), None)


def _candidates(folder: Path, wanted: str) -> Iterator[Path]:
    for name in (wanted, f"{wanted}.gz"):
        yield folder / name
        yield from sorted(folder.glob(f"*/{name}"))


def missing_data(name: str) -> str:
    """Return a sentence about a data set that is not here, and "" if it is."""
    if name not in SETS:  # on the card of a plug-in
        return f"it needs the data set {name}, which is not registered"
    if find_file(name) is not None:
        return ""
    return (
        f"it needs the data set {name}, which is not here; python -m ddobench.data --fetch {name}"
    )


def _remedy(name: str) -> str:
    return (
        f"fetch it by python -m ddobench.data --fetch {name}, or set {FOLDER} to a folder that has "
        f"{find_set(name).file}"
    )


def read_data(name: str, file: str | None = None, verify: bool = True) -> bytes:
    """Return the text of a set, from a file or from the folder, or raise if its hash is wrong."""
    path = find_file(name) if file is None else Path(file)
    if path is None:
        raise UsageError(f"the data set {name} is not here; {_remedy(name)}, or give task.file")
    try:
        stat = path.stat()
        text, found = _read(path, stat.st_mtime_ns, stat.st_size)
    except (OSError, EOFError, zlib.error) as error:
        raise UsageError(f"{path} cannot be read: {error}; {_remedy(name)}") from error
    if verify and found != find_set(name).sha256:
        raise UsageError(
            f"{path} is not the published file of {name}: its SHA-256 must be "
            f"{find_set(name).sha256[:12]}..., got {found[:12]}...; {_remedy(name)}, "
            "or take it as it is by task.verify=false, which becomes part of the record"
        )
    return text


def hash_unverified(name: str, file: str | None, verify: bool) -> str:
    """Return the hash of a file that need not be the published one, and "" for one that must."""
    return "" if verify else hashlib.sha256(read_data(name, file, verify=False)).hexdigest()[:16]


@cache
def _read(path: Path, _changed: int, _size: int) -> tuple[bytes, str]:
    """Return the text of a file with plain line ends, and its hash."""
    content = path.read_bytes()
    text = gzip.decompress(content) if path.suffix == ".gz" else content
    text = text.replace(b"\r\n", b"\n")
    return text, hashlib.sha256(text).hexdigest()
