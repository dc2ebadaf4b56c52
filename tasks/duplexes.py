"""Energies of RNA duplexes by ViennaRNA, each computed once, in several processes if many.

ViennaRNA computes in only one thread of a process at a time. So this file is also a program that
reads a target and sequences from standard input and writes their energies as JSON. It is apart from
`rna` because it imports nothing but ViennaRNA, so that a process starts quickly.
"""

import json
import subprocess
import sys
from collections.abc import Sequence
from importlib import import_module

MANY = 1000  # sequences per process, at least
_MOST = 1_000_000  # energies kept in memory, about 200 MB
_known: dict[tuple[str, str], float] = {}  # by target and sequence


def find_energies(target: str, sequences: Sequence[str], processes: int) -> list[float]:
    """Return the energy of each sequence bound to the target, in kcal/mol."""
    if len(_known) > _MOST:
        _known.clear()
    missing = [word for word in dict.fromkeys(sequences) if (target, word) not in _known]
    count = max(1, min(processes, len(missing) // MANY))
    parts = [missing[i::count] for i in range(count)]
    found = [_compute(target, parts[0])] if count == 1 else _spread(target, parts)
    for part, energies in zip(parts, found, strict=True):
        _known.update(zip(((target, word) for word in part), energies, strict=True))
    return [_known[target, word] for word in sequences]


def _compute(target: str, sequences: Sequence[str]) -> list[float]:
    if not sequences:
        return []
    library = import_module("RNA")
    return [float(library.duplexfold(target, word).energy) for word in sequences]


def _spread(target: str, parts: Sequence[Sequence[str]]) -> list[list[float]]:
    """Compute each part in a process of its own."""
    command = [sys.executable, "-P", __file__]
    running = [
        subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        for _ in parts
    ]
    try:
        for process, part in zip(running, parts, strict=True):
            assert process.stdin is not None
            process.stdin.write("\n".join([target, *part]))
            process.stdin.close()
            process.stdin = None  # so that communicate() does not flush it again
        outputs = [process.communicate()[0] for process in running]
    finally:
        for process in running:
            process.kill()  # no effect on a process that has ended
            process.wait()
    if any(process.returncode for process in running):
        raise RuntimeError("a process that computes energies of duplexes failed; see above")
    return [json.loads(text) for text in outputs]


if __name__ == "__main__":
    first, *rest = sys.stdin.read().split()
    print(json.dumps(_compute(first, rest)))
