"""What a rule that chooses settings on visible rows loses against the oracle's choice.

A method with `select=RULE` names its candidates, whole configurations, in its own. Where every one
of them was also run by itself, on the same seeds, the oracle may choose among these runs here,
afterwards: no method ever sees that choice.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from ddobench.report.tables.columns import CELL, SERIES
from ddobench.report.tables.formats import (
    escape_markdown,
    format_estimate,
    markdown_table,
    name_runs,
)
from ddobench.scores import BEST_VISIBLE, HEADLINE
from ddobench.stats.samples import mean_interval
from ddobench.variants import format_variant, split_variant

_RULE = "select"  # the group of rules, and the setting in a variant
LOSSES = {  # what is compared with the oracle's choice, in the order of the table
    "rule": "the rule's choice",
    "first": "the first candidate",
    "average": "any candidate, on average",
    "single": "one candidate for all seeds, the oracle's",
    "nothing": "doing nothing",
}
_COLUMNS = [
    *CELL, *SERIES, "label", "rule", "candidates", "seeds", "oracle",
    *(f"{name}_{part}" for name in LOSSES for part in ("loss", "low", "high")),
]  # fmt: skip
HEADER = ["method", "chosen how", *LOSSES.values(), "oracle's choice", "candidates", "seeds"]
EXPLANATION = (
    "Each candidate was also run by itself. The oracle's choice is, for each seed, the candidate "
    "whose final value is highest: what nobody can choose without measuring. Losses are means over "
    f"seeds of what is less than that, in {HEADLINE.unit.sign} of the visible values, with "
    "95\u00a0% intervals. The first candidate is what is taken without a rule: a rule is worth its "
    "cost where it loses less."
)


@dataclass(frozen=True)
class Contest:
    """A rule's choices, and what each of its candidates is worth by itself, on the same seeds."""

    place: Mapping[str, Any]  # the cell, method and variant, by column
    rule: str
    candidates: tuple[str, ...]
    chosen: NDArray[np.float64]  # (S,) values of what the rule chose
    alone: NDArray[np.float64]  # (candidates, S)
    best_visible: NDArray[np.float64]  # (S,)

    def losses(self) -> dict[str, NDArray[np.float64]]:
        """Return what every way to choose loses against the oracle's, by seed."""
        best = self.alone.max(axis=0)
        single = self.alone[self.alone.mean(axis=1).argmax()]
        ways = (self.chosen, self.alone[0], self.alone.mean(axis=0), single, self.best_visible)
        return {name: best - way for name, way in zip(LOSSES, ways, strict=True)}


def find_contests(
    runs: pd.DataFrame, configs: Mapping[str, Mapping[str, Any]]
) -> list[Contest]:  # fmt: skip
    """Return the rules all of whose candidates were also run by themselves on some common seed."""
    scored = runs[(runs["status"] == "ok") & runs[HEADLINE.name].notna()]
    found = []
    for key, own in scored.groupby([*CELL, *SERIES], sort=True):
        method = configs.get(str(own["digest"].iloc[0]), {}).get("method", {})
        rule = split_variant(str(own["method_variant"].iloc[0])).get(_RULE)
        candidates = method.get("candidates") if isinstance(method, Mapping) else None
        if rule is None or not isinstance(candidates, Mapping) or not candidates:
            continue
        cell = scored[(scored[CELL] == own[CELL].iloc[0]).all(axis=1)]
        alone = [_values_of(cell, configs, candidate) for candidate in candidates.values()]
        chosen = own.drop_duplicates("seed").set_index("seed")
        table = pd.concat([chosen[[HEADLINE.name, BEST_VISIBLE.name]], *alone], axis=1).dropna()
        if len(table):
            numbers = table.to_numpy(dtype=np.float64).T
            place = dict(zip([*CELL, *SERIES], key, strict=True))
            found.append(Contest(place, rule, tuple(map(str, candidates)), numbers[0], numbers[2:],
                                 numbers[1]))  # fmt: skip
    return found


def _values_of(
    cell: pd.DataFrame, configs: Mapping[str, Mapping[str, Any]], candidate: Any
) -> "pd.Series[float]":
    """Return the values by seed of the runs of one configuration of a method."""
    same = {digest for digest in set(cell["digest"])
            if _without_card(configs.get(str(digest), {}).get("method")) == candidate}  # fmt: skip
    own = cell[cell["digest"].isin(same)].drop_duplicates("seed")
    return own.set_index("seed")[HEADLINE.name]


def _without_card(method: Any) -> Any:
    if not isinstance(method, Mapping):
        return None
    return {name: value for name, value in method.items() if name != "card"}


def rule_table(contests: Iterable[Contest], labels: Mapping[Any, Any]) -> pd.DataFrame:
    """Return one row per contest: what the rule, and choosing otherwise, loses."""
    rows = []
    for contest in contests:
        place = contest.place
        style = labels[place["task"], place["method"], place["method_variant"]]
        row = {**place, "label": style.label, "rule": contest.rule,
               "candidates": len(contest.candidates), "seeds": contest.chosen.size,
               "oracle": contest.alone.max(axis=0).mean()}  # fmt: skip
        for name, losses in contest.losses().items():
            ends = mean_interval(losses)
            parts = (losses.mean(), ends.low, ends.high)
            row |= {
                f"{name}_{part}": x for part, x in zip(("loss", "low", "high"), parts, strict=True)
            }
        rows.append(row)
    return pd.DataFrame(rows, columns=_COLUMNS)


def name_base(row: "pd.Series[Any]") -> str:
    """Name the method whose settings were chosen, without the rule."""
    settings = {k: v for k, v in split_variant(row["method_variant"]).items() if k != _RULE}
    return " ".join(filter(None, [row["method"], format_variant(settings)]))


def rule_markdown(table: pd.DataFrame) -> str:
    """Spell what rules lose for people, one heading per cell."""
    parts = ["# What a rule loses\n", f"{EXPLANATION}\n"]
    for _, cell in table.groupby(CELL, sort=True):
        parts.append(f"## {escape_markdown(name_runs(cell.iloc[0], 'n', 'd'))}\n")
        lines = [
            [
                name_base(row),
                row["rule"],
                *(format_estimate(*(row[f"{name}_{part}"] for part in ("loss", "low", "high")))
                  for name in LOSSES),
                format_estimate(row["oracle"], np.nan, np.nan),
                str(row["candidates"]),
                str(row["seeds"]),
            ]
            for _, row in cell.iterrows()
        ]  # fmt: skip
        parts.append(markdown_table(HEADER, lines, words=[0, 1]))
    return "\n".join(parts)
