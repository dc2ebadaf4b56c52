"""Commands that a report repeats or suggests."""

import re
import shlex
from collections.abc import Iterable, Mapping
from functools import cache
from importlib import resources
from typing import Any

import pandas as pd
import yaml

from ddobench.seeds import format_seeds, parse_seeds
from ddobench.variants import split_variant

_Words = dict[str, str]  # the values in a command by their names; without a name, what comes before
_NARROWING = {"seed", "method", "d", "n"}  # keys that say how much of a sweep is run
_WHOLE = {"", "experiment"}  # what is no list
_PLAIN_LIST = re.compile(r"\w[\w.,-]*")
_RUN, _SWEEP = "python -m ddobench", "python -m ddobench -m"
_NO_NAME = re.compile(r"(?i)true|false|null|[-+.\de]+")


@cache
def portable(command: str) -> str:
    """Return a command without the folder its results went to, which is a matter of one machine."""
    try:
        words = shlex.split(command)
    except ValueError:  # a quote that never ends: left as it was typed
        return command
    if not any(word.startswith("results_dir=") for word in words):
        return command
    return shlex.join(word for word in words if not word.startswith("results_dir="))


def join_commands(made: "pd.Series[str]") -> tuple[str, ...]:
    """Return one command for runs that each say which made them, none where no run says so.

    Commands that differ in one list, as in their seeds or methods, are one with the longer list,
    and one that names no such list covers those that do. Of several that remain the first is that
    of most runs, and says so.
    """
    counts = made[made != ""].value_counts()
    left: list[tuple[_Words, int]] = []
    for command, count in sorted(counts.items(), key=lambda item: (len(str(item[0])), item[0])):
        words, runs = _split(str(command)), int(count)
        while match := next((other for other in left if _join(other[0], words)), None):
            left.remove(match)
            words, runs = _join(match[0], words), runs + match[1]
        left.append((words, runs))
    if not left:
        return ()
    words, _ = max(left, key=lambda item: item[1])
    spelled = " ".join(
        _quote(f"{name}={value}") if name else value for name, value in words.items()
    )
    return (spelled if len(left) == 1 else f"{spelled}  # most of its runs",)


def _split(command: str) -> _Words:
    try:
        words = shlex.split(command)
    except ValueError:  # a quote that never ends: left as it was typed
        return {"": command}
    values = dict(word.split("=", 1) for word in words if "=" in word)
    return {"": shlex.join(word for word in words if "=" not in word), **values}


def _join(a: _Words, b: _Words) -> _Words:
    """Return the words of a command that does what two do, none where no single one does."""
    differing = [name for name in {**a, **b} if a.get(name) != b.get(name)]
    if len(differing) > 1 and not all(name in _NARROWING for name in differing):
        return {}
    wider = a if all(name not in a for name in differing) else b
    if all(name not in wider and name in _NARROWING for name in differing):
        return wider
    if len(differing) != 1 or not (differing[0] in a and differing[0] in b):
        return {}
    (name,) = differing
    if name in _WHOLE or not (_PLAIN_LIST.fullmatch(a[name]) and _PLAIN_LIST.fullmatch(b[name])):
        return {}
    program = _SWEEP if a[""] == _RUN else a[""]
    return {**a, "": program, name: _unite(name, a[name], b[name])}


def _unite(name: str, a: str, b: str) -> str:
    if name == "seed" and re.fullmatch(r"\d+([,-]\d+)*", f"{a},{b}"):
        return format_seeds({*parse_seeds(a), *parse_seeds(b)})
    values = {*a.split(","), *b.split(",")}
    numeric = all(value.isdigit() for value in values)
    return ",".join(sorted(values, key=int) if numeric else sorted(values))


def sweep_command(row: "pd.Series[Any]", methods: Iterable[str], **sizes: str) -> str:
    """Spell a sweep of the task a row is about; `sizes` replace its d or n."""
    words = {"task": row["task"], "d": row["d"], "n": row["n"], **sizes}
    budget = "" if row["budget"] in ("", "full") else f"budget={row['budget']}"
    spelled = [
        *(f"{name}={value}" for name, value in words.items()),
        *(f"task.{name}={value}" for name, value in _departures(row["task_variant"]).items()),
        *([budget] if budget else []),
        f"method={','.join(methods)}",
        "seed=0-49",
    ]
    return " ".join([_SWEEP, *(shlex.quote(word) for word in spelled)])


def run_command(row: "pd.Series[Any]", budget: Mapping[str, Any] | None = None) -> str:
    """Spell the command that repeats a run in a fresh folder, all but its seed.

    The variants of a row say where its task and method depart from their files, but nothing says
    where its budget does; so the resolved `budget` is compared with its file here.
    """
    words = [f"{name}={row[name]}" for name in ("task", "method", "d", "n")]
    if row["budget"]:
        words.append(f"budget={row['budget']}")
        written = _written_budget(str(row["budget"]))
        departures = {name: x for name, x in (budget or {}).items() if written.get(name) != x}
        words += [f"budget.{name}={value}" for name, value in departures.items()]
    words += [f"task.{name}={value}" for name, value in _departures(row["task_variant"]).items()]
    for name, value in _departures(row["method_variant"]).items():
        if not isinstance(row.get(name.split(".")[0]), str):
            words.append(f"method.{name}={value}")
        elif "." in name or not _NO_NAME.fullmatch(value):
            words.append(f"{name}={value}")  # of a group of its own, such as latent or graph
        else:
            words.append(f"{name}='{value}'")  # lest Hydra take it for a truth value
    words.append("results_dir=results/again")
    return " ".join([_RUN, *map(_quote, words)])


@cache
def _written_budget(name: str) -> dict[str, Any]:
    """Return what the file of a budget says, nothing for a budget that is not of this package."""
    path = resources.files("ddobench.conf").joinpath("budget", f"{name}.yaml")
    if not re.fullmatch(r"\w+", name) or not path.is_file():
        return {}
    return dict(yaml.safe_load(path.read_text(encoding="utf-8")))


def _departures(variant: str) -> dict[str, str]:
    """Return the overrides of a variant, without the digest that only tells look-alikes apart."""
    settings = split_variant(variant)
    settings.pop("digest", None)
    return {name: "null" if value == "None" else value for name, value in settings.items()}


def _quote(word: str) -> str:
    """Quote a word for the shell, in double quotes where those read better."""
    plain = re.fullmatch(r"[\w.='-]+", word) and "'" in word
    return f'"{word}"' if plain else shlex.quote(word)
