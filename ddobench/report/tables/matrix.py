"""Every method in every cell of a suite: shares of the optimum, ranks, and how stable these are.

A suite (conf/suite) is a fixed list of cells: a task with its sizes and settings. The matrix has a
row per method in its default settings, and one for the best visible design. Methods are ranked in
each cell by their mean share of the optimum. One rule holds for all: a run that uses more than the
visible table, or whose method has the very form of the task (a remark, see conf/report.yaml), is
marked and not ranked in that cell. A method that is ranked in fewer than half of the cells has no
mean rank and no interquartile mean. Declined cells and cells without runs are holes.
"""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cache, cached_property
from importlib import resources
from typing import Any

import numpy as np
import pandas as pd
import yaml
from numpy.typing import NDArray

from ddobench import registry
from ddobench.report.tables.formatting import (
    DASH,
    Column,
    Group,
    Row,
    Table,
    file_stem,
    format_digits,
    format_percent,
    number_column,
    word_column,
)
from ddobench.report.tables.select import BY_SIZE, is_best_visible, scored_runs, share_of_optimum
from ddobench.report.tables.standings import Ranking, rank_methods
from ddobench.report.tables.styles import (
    PRIVILEGES,
    REMARK_SIGN,
    SIGNS,
    Key,
    Style,
    privileges_of,
    sign_of,
)
from ddobench.scores import (
    BEST_VISIBLE,
    INVALID_FINAL,
    NORMALISED_BEST,
    NORMALISED_MEDIAN,
    SECONDS_CPU,
    SHARE_OF_OPTIMUM,
)
from ddobench.seeds import Seeds, format_seeds, parse_seeds
from ddobench.stats.ranks import (
    Values,
    agreement,
    compare_across,
    mean_known,
    middle_mean,
    rank_in_cells,
)
from ddobench.stats.samples import mean_intervals
from ddobench.variants import format_variant

Flags = NDArray[np.bool_]
BEST_VISIBLE_ROW = "best visible design"  # the key and the label of its row
TIMES = "\u00d7"
HOLES = {"declined": TIMES, "failed": "!", "missing": ""}  # what a cell shows that has no score
_LEAST_SECONDS = 0.01
SUITE_FIRST = 4  # the column of the first cell in the table for reading


@dataclass(frozen=True)
class Suite:
    """A fixed list of cells."""

    name: str
    cells: Mapping[str, tuple[Any, ...]]  # the columns BY_SIZE of each cell
    seeds: Seeds
    readers: Mapping[str, Sequence[str]]  # what a reader may have, and the cells that have it

    @property
    def later(self) -> Seeds:
        """As many seeds after those of the suite."""
        return parse_seeds([seed + len(self.seeds) for seed in self.seeds])


def read_suite(name: str) -> Suite:
    """Read a suite from its file."""
    own = registry.read_choice("suite", name)
    cells = {}
    for cell, settings in own["cells"].items():
        departures = {key.removeprefix("task."): str(value) for key, value in settings.items()
                      if key.startswith("task.")}  # fmt: skip
        size = {**settings, "task_variant": format_variant(departures), "budget": "full"}
        cells[str(cell)] = tuple(size[key] for key in BY_SIZE)
    return Suite(name, cells, parse_seeds(own["seeds"]), own.get("readers", {}))


@dataclass(frozen=True)
class Mark:
    """What is special about a method in a cell."""

    state: str = "missing"  # one of HOLES; "": there is a score
    sign: str = ""  # why it is not ranked there
    note: str = ""  # the same in words, or why it declined or failed


@dataclass(frozen=True)
class Matrix:
    """The runs of a suite, as arrays over M methods, C cells and S seeds."""

    suite: Suite
    methods: tuple[str, ...]  # the best visible design included
    labels: Mapping[str, str]
    scores: Mapping[str, Values]  # by the name of a score (M, C, S), NaN where there is none
    later: Values  # shares on as many later seeds (M, C, S)
    marks: Mapping[tuple[str, str], Mark]  # by method and cell, those without runs left out

    @property
    def shares(self) -> Values:
        """The share of the optimum of every run (M, C, S)."""
        return self.scores[SHARE_OF_OPTIMUM.name]

    @cached_property
    def table(self) -> pd.DataFrame:
        """One row per method, best mean rank first, those without one last."""
        rank, middle = compare_across(self._only_ranked(self.shares))
        table = pd.DataFrame({
            "method": self.methods,
            "label": [self.labels[method] for method in self.methods],
            "family": [family_of(method) for method in self.methods],
            **{name + end: np.where(self._enough, values, np.nan)
               for name, one in (("rank", rank), ("iqm", middle))
               for end, values in (("", one.value), ("_low", one.low), ("_high", one.high))},
            "ranked": self._ranked.sum(axis=1),
            "seconds": mean_known(mean_known(self.scores[SECONDS_CPU.name])),
            "invalid": mean_known(mean_known(self.scores[INVALID_FINAL.name])),
        })  # fmt: skip
        return table.sort_values(["rank", "iqm"], ascending=[True, False], ignore_index=True)

    @cached_property
    def cells(self) -> pd.DataFrame:
        """One row per method and cell, methods as in `table`: what a cell shows."""
        gains = self.shares - self.shares[[self.methods.index(BEST_VISIBLE_ROW)]]
        ranks = rank_in_cells(mean_known(self._only_ranked(self.shares)))
        rows: list[dict[str, Any]] = []
        for method in self.table["method"]:
            m = self.methods.index(method)
            for c, cell in enumerate(self.suite.cells):
                known = ~np.isnan(self.shares[m, c])
                rows.append({
                    "method": method, "label": self.labels[method], "cell": cell,
                    "share": float(mean_known(self.shares[m, c])), "rank": float(ranks[m, c]),
                    "invalid": float(mean_known(self.scores[INVALID_FINAL.name][m, c])),
                    "seconds": float(mean_known(self.scores[SECONDS_CPU.name][m, c])),
                    "seeds": int(known.sum()), **asdict(self.marks.get((method, cell), Mark())),
                    "_shares": self.shares[m, c][known], "_gains": gains[m, c][known],
                })  # fmt: skip
        table = pd.DataFrame(rows)
        filled = table["seeds"] > 0
        for sample, names in (("_shares", ("low", "high")), ("_gains", ("gain_low", "gain_high"))):
            ends = [(one.low, one.high) for one in mean_intervals(list(table.loc[filled, sample]))]
            table.loc[filled, [*names]] = np.array(ends).reshape(-1, 2)
        return table.drop(columns=["_shares", "_gains"])

    @cached_property
    def ranking(self) -> Ranking:
        """Friedman's and Nemenyi's tests of the methods that are ranked in every cell."""
        means = mean_known(self._only_ranked(self.shares))
        table = pd.DataFrame(means.T, columns=[*self.methods])
        return rank_methods(table.dropna(axis=1))

    @cached_property
    def stability(self) -> pd.DataFrame:
        """Kendall's tau between the mean ranks and those after a change, one row per change."""
        ranked = self._only_ranked(self.shares)
        later = self._only_ranked(self.later)
        repeated = (np.isnan(mean_known(later)) == ~self._ranked).all(axis=1)  # in the same cells
        half = len(self.suite.seeds) // 2
        before, after = (format_seeds([*self.suite.seeds][part])
                         for part in (slice(half), slice(half, None)))  # fmt: skip
        changes = {
            **{("cells", f"without {name_cell(cell)}"): np.delete(ranked, c, axis=1)
               for c, cell in enumerate(self.suite.cells)},
            ("half of the seeds", f"seeds {before}"): ranked[:, :, :half],
            ("half of the seeds", f"seeds {after}"): ranked[:, :, half:],
            ("other seeds", f"seeds {self.suite.later}"): np.where(
                repeated[:, None, None], later, np.nan),
            ("score", "best of 128 designs, normalised by all data"): self._only_ranked(
                self.scores[NORMALISED_BEST.name]),
            ("score", "median of 128 designs, normalised by all data"): self._only_ranked(
                self.scores[NORMALISED_MEDIAN.name]),
        }  # fmt: skip
        orders = {change: mean_known(rank_in_cells(mean_known(values)))
                  for change, values in changes.items()}  # fmt: skip
        middle = -middle_mean(ranked.reshape(len(ranked), -1))
        orders["score", "interquartile mean of shares"] = middle
        rows = []
        for (kind, change), order in orders.items():
            kept = self._enough & ~np.isnan(order)
            if kept.sum() > 1:  # a part of the methods is compared with the same part
                values = changes.get((kind, change), ranked)
                whole = values.shape == ranked.shape  # a part of the cells with the same part
                known = np.flatnonzero(~np.isnan(values).all(axis=(0, 2))) if whole else slice(None)
                same = ranked[~np.isnan(order)][:, known]
                first = mean_known(rank_in_cells(mean_known(same)))
                tau = agreement(first[self._enough[~np.isnan(order)]], order[kept])
                best = int(np.argmin(np.where(kept, order, np.inf)))
                cells = same.shape[1]
                where = f" ({cells} of {ranked.shape[1]} cells)" if cells < ranked.shape[1] else ""
                rows.append({"kind": kind, "change": f"{change}{where}", "tau": tau,
                             "methods": int(kept.sum()),
                             "best": self.labels[self.methods[best]]})  # fmt: skip
        return pd.DataFrame(rows, columns=["kind", "change", "tau", "methods", "best"])

    @cached_property
    def _ranked(self) -> Flags:
        """Where a method is ranked (M, C)."""
        signs = [[self.marks.get((method, cell), Mark()).sign for cell in self.suite.cells]
                 for method in self.methods]  # fmt: skip
        ranked: Flags = ~np.isnan(self.shares).all(axis=2) & (np.array(signs) == "")
        return ranked

    @property
    def _enough(self) -> Flags:
        """Which methods are ranked in half of the cells or more (M,)."""
        enough: Flags = 2 * self._ranked.sum(axis=1) >= len(self.suite.cells)
        return enough

    def _only_ranked(self, values: Values) -> Values:
        return np.where(self._ranked[:, :, None], values, np.nan)


def family_of(method: str) -> str:
    """Return the family of a method by conf/families.yaml."""
    if method == BEST_VISIBLE_ROW:
        return "reference"
    return next((name for name, members in _families().items() if method in members), "other")


@cache
def _families() -> dict[str, list[str]]:
    text = resources.files("ddobench.conf").joinpath("families.yaml").read_text(encoding="utf-8")
    return dict(yaml.safe_load(text))


def name_cell(cell: str) -> str:
    """Return the name of a cell for reading."""
    return cell.replace("_", " ")


def find_matrix(
    runs: pd.DataFrame, styles: Mapping[Key, Style], remarks: Mapping[str, tuple[str, ...]]
) -> Matrix | None:
    """Return the matrix of the largest suite that some method has run or declined in every cell."""
    suites = [read_suite(entry.name) for entry in registry.entries("suite")]
    for suite in sorted(suites, key=lambda suite: -len(suite.cells)):
        own = _runs_of(runs, suite)
        tried = own[own["seed"].isin([*suite.seeds]) & own["status"].isin(["ok", "declined"])]
        methods = tried[~tried["method"].map(is_best_visible).astype(bool)]
        if (methods.groupby("method")["cell"].nunique() == len(suite.cells)).any():
            return _make_matrix(own, suite, styles, remarks)
    return None


def _runs_of(runs: pd.DataFrame, suite: Suite) -> pd.DataFrame:
    """Return the runs of methods in their default settings, with the cell of each.

    Of several versions of a method, which have a digest as their variant, the last one run counts.
    """
    cells = pd.DataFrame([*suite.cells.values()], columns=BY_SIZE).assign(cell=[*suite.cells])
    own = runs[runs["method_variant"].str.fullmatch(r"|digest=\S+")].merge(cells, on=BY_SIZE)
    last = own.sort_values("finished", kind="stable").drop_duplicates(
        ["method", "cell"], keep="last"
    )
    return own.merge(last[["method", "cell", "digest"]])


def _make_matrix(
    runs: pd.DataFrame, suite: Suite, styles: Mapping[Key, Style],
    remarks: Mapping[str, tuple[str, ...]],
) -> Matrix:  # fmt: skip
    columns = [score.name for score in (SHARE_OF_OPTIMUM, INVALID_FINAL, SECONDS_CPU,
                                        NORMALISED_BEST, NORMALISED_MEDIAN)]  # fmt: skip
    best = runs[runs["status"] == "ok"].drop_duplicates(["cell", "seed"])
    best = best.assign(method=BEST_VISIBLE_ROW, privileges="", digest="")
    best[columns] = np.nan
    best[[INVALID_FINAL.name, SECONDS_CPU.name]] = 0.0
    best[SHARE_OF_OPTIMUM.name] = share_of_optimum(best, BEST_VISIBLE.name)
    own = runs[~runs["method"].map(is_best_visible).astype(bool)]
    runs = pd.concat([best, own])
    later, runs = (runs[runs["seed"].isin([*seeds])] for seeds in (suite.later, suite.seeds))
    methods = tuple(sorted(set(runs["method"])))
    scored = scored_runs(runs)
    marks = {(str(method), str(cell)): _mark(own, remarks)
             for (method, cell), own in runs.groupby(["method", "cell"])}  # fmt: skip
    names = {method: style.name.removesuffix(f", {variant}")
             for (_, method, variant), style in styles.items()}  # fmt: skip
    return Matrix(
        suite, methods, {BEST_VISIBLE_ROW: BEST_VISIBLE_ROW, **names},
        {name: _to_array(scored, methods, suite, [*suite.seeds], name) for name in columns},
        _to_array(scored_runs(later), methods, suite, [*suite.later], SHARE_OF_OPTIMUM.name),
        marks,
    )  # fmt: skip


def _mark(runs: pd.DataFrame, remarks: Mapping[str, tuple[str, ...]]) -> Mark:
    """Mark the runs of one method in one cell."""
    used = privileges_of(runs)
    texts = sorted({text for digest in set(runs["digest"]) for text in remarks.get(digest, ())})
    sign = "".join(dict.fromkeys(map(sign_of, used))) + (REMARK_SIGN if texts else "")
    note = "; ".join([*(f"uses {PRIVILEGES.get(word, word)}" for word in used), *texts])
    if len(scored_runs(runs)):
        return Mark("", sign, note)
    state = "declined" if (runs["status"] == "declined").any() else "failed"
    return Mark(state, sign, next((text for text in runs["reason"] if text), note))


def _to_array(
    runs: pd.DataFrame, methods: Sequence[str], suite: Suite, seeds: Sequence[int], score: str
) -> Values:
    """Return a score of every run as an array (M, C, S)."""
    axes = pd.MultiIndex.from_product([methods, [*suite.cells], seeds])
    known = runs.drop_duplicates(["method", "cell", "seed"]).set_index(["method", "cell", "seed"])
    values = known[score].reindex(axes).to_numpy(dtype=np.float64)
    return values.reshape(len(methods), len(suite.cells), len(seeds))


def describe_matrix(matrix: Matrix) -> Table:
    """Describe the matrix, its cells in per cent."""
    cells = matrix.cells.set_index(["method", "cell"], drop=False)
    rows = [
        row | {cell: cells.loc[(row["method"], cell)].to_dict() for cell in matrix.suite.cells}
        for row in matrix.table.to_dict("records")
    ]
    columns = [
        word_column("method", "label"),
        word_column("family", "family"),
        Column("mean rank", lambda row: format_span(row, "rank", 1, 1), lambda row: row["rank"]),
        Column("IQM, %", lambda row: format_span(row, "iqm", 100, 0), lambda row: row["iqm"]),
        *(_cell_column(cell) for cell in matrix.suite.cells),
        number_column("CPU s", "seconds", _format_seconds),
    ]
    title = f"{matrix.suite.name}: every method in every cell"
    note = explain_matrix(matrix)
    stem = file_stem("suite", matrix.suite.name)
    return Table("suite", title, note, matrix.cells, [Group("", stem, rows, columns)])


def _cell_column(cell: str) -> Column:
    return Column(
        name_cell(cell), lambda row: format_cell(row[cell]), lambda row: row[cell]["share"]
    )


def format_cell(cell: Row) -> str:
    """Format what a cell shows: a percentage and its sign, or which hole it is."""
    if cell["state"]:
        return HOLES[cell["state"]]
    return f"{format_digits(round(100 * cell['share'], 0), 0)}{cell['sign']}"


def describe_cell(cell: Row) -> str:
    """Describe a method in a cell: share with interval, rank, invalid designs, cost."""
    place = f"{cell['label']} on {name_cell(cell['cell'])}"
    if cell["state"]:
        words = {"declined": "declines", "failed": "failed", "missing": "not run"}[cell["state"]]
        return f"{place}: {words}{': ' if cell['note'] else ''}{cell['note']}"
    low, high = (format_digits(100 * cell[end], 0) for end in ("low", "high"))
    rank = (
        f"rank {cell['rank']:g}" if cell["rank"] == cell["rank"] else f"not ranked: {cell['note']}"
    )
    return (
        f"{place}: {format_digits(100 * cell['share'], 1)} % [{low}, {high}] of the optimum, "
        f"{rank}; {format_percent(cell['invalid'])} invalid; "
        f"{_format_seconds(cell['seconds'])} CPU s; {cell['seeds']} seeds"
    )


def _format_seconds(seconds: float) -> str:
    if 0 < seconds < _LEAST_SECONDS:
        return f"<{_LEAST_SECONDS}"
    return f"{seconds:.3g}" if seconds == seconds else DASH


def format_span(row: Row, name: str, scale: float, digits: int) -> str:
    """Format a number with its interval, a dash where there is none."""
    value, low, high = (format_digits(round(scale * row[f"{name}{end}"], digits), digits)
                        for end in ("", "_low", "_high"))  # fmt: skip
    return value if value == DASH else f"{value} [{low}, {high}]"


def explain_matrix(matrix: Matrix) -> str:
    """Explain how to read the matrix."""
    seeds, cells = format_seeds(matrix.suite.seeds), len(matrix.suite.cells)
    return (
        f"Share of the optimum in per cent: mean over seeds {seeds} of what a method's own choice "
        "of 128 designs is worth. 0 is the mean visible value, 100 the optimum; an invalid design "
        "counts as the worst visible value. Ranks are within cells, averaged over the cells where "
        f"a method is ranked, if these are half of the {cells} or more; IQM is the interquartile "
        "mean of its shares there. Intervals (95\u00a0%) resample cells and seeds. Signs: "
        f"{SIGNS['graph']} {SIGNS['hidden']} uses more than the visible table, {REMARK_SIGN} has "
        f"the very form of the task; both are shown and not ranked in that cell. {TIMES}: the "
        "method declines. !: it failed. Empty: not run."
    )


def describe_stability(matrix: Matrix) -> Table:
    """Describe how far the order of the methods depends on cells, seeds and the score."""
    columns = [
        word_column("kind", "kind"),
        word_column("change", "change"),
        number_column("Kendall's tau", "tau", lambda value: format_digits(value, 2)),
        number_column("methods", "methods"),
        word_column("best after it", "best"),
    ]
    note = "Kendall's tau between the mean ranks of the methods and those after one change."
    rows = matrix.stability.to_dict("records")
    stem = file_stem("stability", matrix.suite.name)
    return Table("stability", "How stable is the ranking?", note, matrix.stability,
                 [Group(matrix.suite.name, stem, rows, columns)])  # fmt: skip
