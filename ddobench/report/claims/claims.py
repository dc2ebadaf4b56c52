"""Claims that stored runs can support or contradict, read from a file and checked word by word."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime, time
from importlib import resources
from pathlib import Path
from typing import Any

import yaml

from ddobench.errors import UsageError
from ddobench.report.claims.questions import KINDS, Question, Side
from ddobench.scores import LANDMARKS, claimable_names
from ddobench.seeds import Seeds, parse_seeds

PACKAGED = "claims.yaml"  # in ddobench.conf
SOURCES = ("paper", "ours")
_CLAIM = (
    *("id", "text", "source", "where", "declared", "command", "test", "again", "explained_by"),
)
_AGAIN = ("seeds", "declared", "command")
_PLACE = ("kind", "task", "task_variant", "n", "d", "seeds", "budget", "score")
_BOUNDS = ("above", "below", "between")
_SIDES = {"level": ("of",), "difference": ("first", "second"), "growth": ("first", "second")}


@dataclass(frozen=True)
class Claim:
    """One sentence about methods, where it was said, and the question that would decide it."""

    id: str
    text: str
    source: str
    where: str
    command: str  # what to run for it
    question: Question
    declared: datetime | None = None  # when it was written down
    in_view: bool = False  # written with its runs in view: its verdict only describes them
    explained_by: tuple[str, ...] = ()  # the ids of claims that say why it would not hold


def read_claims(file: str | Path | None = None) -> list[Claim]:
    """Read the claims of a file, by default those that come with the package."""
    try:
        if file is None:
            text = resources.files("ddobench.conf").joinpath(PACKAGED).read_text(encoding="utf-8")
        else:
            text = Path(file).read_text(encoding="utf-8")
        content = yaml.safe_load(text)
    except OSError as error:
        raise UsageError(
            f"claims must be a file of claims, got {file} which cannot be read ({error.strerror})"
        ) from None
    except RecursionError:
        raise UsageError(f"claims must be YAML of a few levels, got {file} which is deep") from None
    except (yaml.YAMLError, ValueError) as error:  # no YAML, no text, no such date
        problem = " ".join(str(error).split())
        raise UsageError(f"claims must be YAML, got {file} which is not: {problem}") from None
    return parse_claims(content)


def parse_claims(content: Any) -> list[Claim]:
    """Check what a file of claims holds and return the claims."""
    if not isinstance(content, Mapping) or not isinstance(content.get("claims"), list):
        raise UsageError("a file of claims must have a list under the key claims, got none")
    entries = enumerate(content["claims"], start=1)
    claims = [claim for i, entry in entries for claim in _parse_claim(i, entry)]
    names = [claim.id for claim in claims]
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise UsageError(f"every claim must have an id of its own, got {twice[0]!r} twice")
    for claim in claims:
        for name in claim.explained_by:
            _check_choice(f"explained_by of claim {claim.id}", name, names)
    return claims


def _parse_claim(place: int, entry: Any) -> list[Claim]:
    """Return a claim, and behind it the same on other seeds if it is to be tested again."""
    named = entry.get("id", f"number {place}") if isinstance(entry, Mapping) else f"number {place}"
    about = f"claim {named}"
    _check_keys(about, entry, _CLAIM, needed=("id", "text", "test"))
    source = str(entry.get("source", "ours"))
    _check_choice(f"source of {about}", source, SOURCES)
    explained_by = entry.get("explained_by", [])
    if not isinstance(explained_by, list):
        raise UsageError(f"explained_by of {about} must be a list of ids, got {explained_by!r}")
    claim = Claim(
        id=str(entry["id"]),
        text=" ".join(str(entry["text"]).split()),
        source=source,
        where=str(entry.get("where", "")),
        command=str(entry.get("command", "")),
        question=_parse_test(f"test of {about}", entry["test"]),
        declared=_parse_moment(f"declared of {about}", entry.get("declared")),
        explained_by=tuple(map(str, explained_by)),
    )
    return [claim] if "again" not in entry else _repeat(claim, entry["again"])


def _repeat(claim: Claim, again: Any) -> list[Claim]:
    """Return a claim that was written with its runs in view, and the test of it on fresh seeds.

    The fresh seeds feed the second alone.
    """
    about = f"again of claim {claim.id}"
    _check_keys(about, again, _AGAIN, needed=("seeds", "declared"))
    fresh = _parse_seeds(f"seeds in {about}", again["seeds"])
    second = replace(
        claim,
        id=f"{claim.id}-again",
        text=f"{claim.text.removesuffix('.')}, on fresh seeds.",
        where=f"{claim.id}, tested again on seeds {fresh}",
        command=str(again.get("command", claim.command)),
        question=replace(claim.question, seeds=fresh),
        declared=_parse_moment(f"declared in {about}", again["declared"]),
    )
    return [replace(claim, in_view=True, question=replace(claim.question, but=fresh)), second]


def _parse_test(about: str, test: Any) -> Question:
    _check_keys(about, test, None, needed=("kind",))
    kind = str(test["kind"])
    _check_choice(f"kind in the {about}", kind, tuple(KINDS))
    sides = _SIDES[kind]
    needed = sides[:1] if kind == "growth" else sides
    minus = ("minus",) if kind == "level" else ()
    _check_keys(about, test, (*_PLACE, *sides, *minus, *_BOUNDS),
                needed=("task", "n", "d", "score", *needed))  # fmt: skip
    _check_choice(f"score in the {about}", test["score"], claimable_names())
    if "minus" in test:
        _check_choice(f"minus in the {about}", test["minus"], [mark.name for mark in LANDMARKS])
    dimensions = test["d"] if isinstance(test["d"], list) else [test["d"]]
    if kind == "growth" and len(dimensions) < 2:
        raise UsageError(f"d in the {about} must list two or more dimensions, got {test['d']!r}")
    low, high, inclusive = _parse_bounds(about, test)
    return Question(
        kind=kind,
        task=str(test["task"]),
        task_variant=str(test.get("task_variant", "")),
        n=_whole(f"n in the {about}", test["n"]),
        d=tuple(_whole(f"d in the {about}", d) for d in dimensions),
        budget=str(test.get("budget", "full")),
        score=test["score"],
        sides=tuple(_parse_side(f"{s} in the {about}", test[s]) for s in sides if s in test),
        minus=str(test.get("minus", "")),
        low=low,
        high=high,
        inclusive=inclusive,
        seeds=_parse_seeds(f"seeds in the {about}", test["seeds"]) if "seeds" in test else None,
    )


def _parse_seeds(name: str, seeds: Any) -> Seeds:
    try:
        return parse_seeds(seeds)
    except UsageError:
        raise UsageError(f"{name} must be seeds such as 10-19, got {seeds!r}") from None


def _parse_moment(name: str, moment: Any) -> datetime | None:
    """Read when a claim was declared; a day stands for its end."""
    if moment is None:
        return None
    if isinstance(moment, datetime):
        return moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)
    if isinstance(moment, date):
        return datetime.combine(moment, time.max, UTC)
    raise UsageError(
        f"{name} must be a day such as 2026-11-17 or a moment such as 2026-11-17T06:28:23Z, "
        f"got {moment!r}"
    )


def _parse_side(about: str, side: Any) -> Side:
    if isinstance(side, str):
        return Side(side)
    _check_keys(about, side, ("method", "method_variant"), needed=("method",))
    return Side(str(side["method"]), str(side.get("method_variant", "")))


def _parse_bounds(about: str, test: Mapping[str, Any]) -> tuple[float, float, bool]:
    given = [name for name in _BOUNDS if name in test]
    if len(given) != 1:
        got = " and ".join(given) or "none"
        raise UsageError(f"the {about} must have one of {', '.join(_BOUNDS)}, got {got}")
    bound = test[given[0]]
    pair = isinstance(bound, list) and len(bound) == 2
    numbers: Sequence[Any] = bound if pair else [bound]
    if pair != (given[0] == "between") or any(
        isinstance(number, bool) or not isinstance(number, int | float) for number in numbers
    ):
        wanted = "two numbers, [low, high]" if given[0] == "between" else "a number"
        raise UsageError(f"{given[0]} in the {about} must be {wanted}, got {bound!r}")
    low = float(numbers[0]) if given[0] != "below" else float("-inf")
    high = float(numbers[-1]) if given[0] != "above" else float("inf")
    return low, high, pair


def _whole(name: str, value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, int):
        raise UsageError(f"{name} must be a whole number or a list of them, got {value!r}")
    return value


def _check_choice(name: str, value: Any, choices: Sequence[str]) -> None:
    if value not in choices:
        raise UsageError(f"the {name} must be one of {', '.join(choices)}, got {value!r}")


def _check_keys(about: str, entry: Any, known: Sequence[str] | None, needed: Sequence[str]) -> None:
    """Raise unless the entry is a mapping with the keys it needs and none that is unknown."""
    if not isinstance(entry, Mapping):
        raise UsageError(f"{about} must be a mapping with {', '.join(needed)}, got {entry!r}")
    absent = [key for key in needed if key not in entry]
    if absent:
        raise UsageError(f"{about} must have {', '.join(needed)}, got no {absent[0]}")
    unknown = sorted(str(key) for key in entry if known is not None and key not in known)
    if unknown and known is not None:
        raise UsageError(f"{about} may have {', '.join(known)}, got {unknown[0]!r}")
