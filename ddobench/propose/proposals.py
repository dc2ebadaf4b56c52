"""`ddobench.propose`: new designs for a user's rows.

A method is fitted to all rows and searches from `budget.designs` of them (1024). Of the designs of
its last iteration that may gain, and of designs on the way there that are near the rows and that it
predicts to be better than the best row, those that it ranks first are returned, each at a least
distance from those before it. With `same=True` it is the first k of the last iteration, as in the
benchmark. Constraints (bounds, fixed columns, linear ones) and the numbers that columns can have
(levels, whole, decimals) are applied to every design after the search, and the model then predicts
the design again; the search does not know them.
"""

import warnings
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from math import isfinite
from typing import Any

import numpy as np
import pandas as pd

from ddobench.cli.hooks import specify_points
from ddobench.contracts import Method
from ddobench.errors import UsageError, check_whole
from ddobench.parts.choosing import Chooser
from ddobench.propose.constraints import Bounds, Constraints
from ddobench.propose.fitting import (
    Codes,
    FittedMethod,
    HeldOutCheck,
    check_held_out,
    repeat_rows,
)
from ddobench.propose.ranking import EncodedRows, RankedDesigns, rank_designs
from ddobench.propose.trust import Trust, collect_warnings, judge_designs
from ddobench.runner.spec import Specification
from ddobench.seeds import parse_seeds
from ddobench.store.checks import printable
from ddobench.tabular.encodings import Column, Encoding, describe_columns, find_levels
from ddobench.tabular.rows import Rows, Values, check_column, gather_rows, is_text

DEFAULT_METHOD = "auto"
DEFAULT_K = 16
WAY_POINTS = 5  # between a start and its last design, which may be returned as well
DIGITS = 6  # of the numbers that are added to a design
MOST_SEEDS = 50
MOST_DESIGNS = 10_000  # that are returned: every two of them are compared
MOST_STARTS = 10**8  # numbers of the designs that a search starts from
_ARGUMENTS = ("task", "method", "seed", "d", "n", "results_dir")  # not accepted as overrides


Levels = Collection[str] | Mapping[str, Sequence[float] | None]  # names, or levels by name


@dataclass(frozen=True)
class Options:
    """The arguments of `propose` besides the rows."""

    method: str = DEFAULT_METHOD
    k: int = DEFAULT_K
    seed: int | str | Sequence[int] = 0
    overrides: Sequence[str] = ()
    minimise: bool = False
    min_distance: float | None = None
    same: bool = False
    bounds: Bounds | None = None
    inside: bool = False
    fixed: Mapping[str, Any] | None = None
    constraints: Sequence[str] = ()
    categorical: Collection[str] = ()
    whole: Collection[str] | None = None
    levels: Levels = ()
    continuous: Collection[str] = ()
    drop: Collection[str] = ()
    check: bool = True

    @property
    def least_distance(self) -> float | None:
        """How many typical distances between rows designs are apart, None if only different."""
        return None if self.same else 1.0 if self.min_distance is None else self.min_distance

    def __post_init__(self) -> None:
        if self.same and self.min_distance is not None:
            raise UsageError("same (--same) has no least distance; leave out min_distance or same")
        if (least := self.least_distance) is not None and not (isfinite(least) and least >= 0):
            raise UsageError(f"min_distance must be a number of at least 0, got {least}")
        check_whole("k", self.k, 1)
        if self.k > MOST_DESIGNS:
            raise UsageError(
                f"k must be at most {MOST_DESIGNS}, as every two designs are compared, got {self.k}"
            )
        for name in (
            "overrides",
            "constraints",
            "categorical",
            "whole",
            "levels",
            "continuous",
            "drop",
        ):
            if isinstance(given := getattr(self, name), str):
                raise UsageError(f"{name} must be a list, got {given!r}; write [{given!r}]")
        seeds = len(parse_seeds(self.seed))
        if seeds > MOST_SEEDS:
            raise UsageError(f"seed must be at most {MOST_SEEDS} seeds to compare, got {seeds}")
        for word in self.overrides:
            key = word.lstrip("+").partition("=")[0]
            if key in _ARGUMENTS:
                raise UsageError(f"{key} cannot be an override here; use the argument instead")


@dataclass(frozen=True)
class Proposals:
    """The ranked designs, and what the page shows of how they were found."""

    rows: Rows
    options: Options
    fitted: FittedMethod
    visible: EncodedRows
    ranked: RankedDesigns
    trust: Trust
    check: HeldOutCheck | None
    candidates: tuple[Mapping[str, Any], ...]  # that the method compared, from its diagnostics
    notes: tuple[str, ...]  # on the rows and columns
    warnings: tuple[str, ...]  # on the proposals

    @property
    def winners(self) -> tuple[str, ...]:
        """The candidates that the method chose, each once; empty if it does not compare any."""
        return tuple(dict.fromkeys(str(x["candidate"]) for x in self.candidates if x["chosen"]))

    @property
    def best(self) -> int:
        """Which row is the best."""
        return int(self.rows.y.argmin() if self.options.minimise else self.rows.y.argmax())

    @property
    def hands_back(self) -> bool:
        """Whether the only proposal is the best row."""
        codes, best = self.ranked.codes, self.visible.codes[self.best]
        return len(codes) == 1 and bool((codes[0] == best).all())

    @property
    def assessment(self) -> pd.DataFrame:
        """The columns that are added to each design."""
        added = pd.concat([self.trust.columns, self.ranked.assessment], axis=1)
        first = [name for name in ("predicted", *self.trust.columns) if name in added]
        added = added[[*first, *(name for name in self.ranked.assessment if name not in first)]]
        return added.map(_round_digits) if len(added) else added

    @property
    def table(self) -> pd.DataFrame:
        """The frame that is returned; a name that the rows have already gets a prefix."""
        added, names = self.assessment, {}
        for name in added:
            names[name] = str(name)
            while names[name] in self.ranked.designs:
                names[name] = f"ddobench_{names[name]}"
        table = self.ranked.designs.join(added.rename(columns=names))
        table.attrs = {
            "method": self.fitted.spec.method,
            "chosen": list(self.winners),
            "best_row": int(self.rows.places[self.best]),
            "best_value": float(self.rows.y[self.best]),
            "typical_distance": self.visible.typical,
            "agreement": self.ranked.agreement,
            "candidates": [dict(one) for one in self.candidates],
            "notes": list(self.notes),
            "warnings": list(self.warnings),
        }
        return table


def _round_digits(value: Any) -> Any:
    return float(f"{value:.{DIGITS}g}") if isinstance(value, float) else value


def propose(
    x: Any,
    y: Any,
    method: str = DEFAULT_METHOD,
    k: int = DEFAULT_K,
    seed: int | str | Sequence[int] = 0,
    overrides: Sequence[str] = (),
    *,
    minimise: bool = False,
    min_distance: float | None = None,
    same: bool = False,
    bounds: Bounds | None = None,
    inside: bool = False,
    fixed: Mapping[str, Any] | None = None,
    constraints: Sequence[str] = (),
    categorical: Collection[str] = (),
    whole: Collection[str] | None = None,
    levels: Levels = (),
    continuous: Collection[str] = (),
    drop: Collection[str] = (),
    check: bool = True,
) -> pd.DataFrame:
    """Return up to k new designs for rows x (N, d) with values y (N,), the most promising first.

    Args:
        x: a pandas frame, a NumPy array or a tensor; columns of an array are called x0, x1, ...
        y: one value for each row, or the name of the column of x that holds them.
        method: a method of `python -m ddobench --help`.
        k: how many designs.
        seed: one seed, or several ("0-4"): then designs are ranked by the mean over their models.
        overrides: `key=value` of the command line, such as "budget=small" or "latent=scores".
        minimise: smaller values are better.
        min_distance: how far designs are apart at least, in units of the median distance of a row
            to its nearest neighbour; None is 1.
        same: return the k best designs of the last iteration, even if they are nearly the same.
        bounds: {column: (low, high)}, None for an open end.
        inside: keep every column inside the range of the rows, and inside its bounds if it has any.
        fixed: {column: entry} that every design must have.
        constraints: linear ones between numeric columns: "a + b <= 1", "a + b + c = 1".
        categorical: numeric columns that are categories; string columns always are.
        whole: columns of whole numbers; None takes those with an integer dtype.
        levels: columns that have only the numbers of the rows, or {column: numbers}; others with
            few different numbers are found.
        continuous: columns that have other numbers than those of the rows, though they are few.
        drop: columns to leave out.
        check: also fit without some rows and predict them, for the interval of the gain.

    The columns are those of x, then `predicted` (by the model, in the units of y), `gain` over the
    value of the best row (positive is better) with the interval `gain_low` to `gain_high`,
    `trust` (high, some, little, none), `distance` to the nearest row (Euclidean, every column in
    its standard deviations), `distance_ratio` (divided by the median distance of a row to its
    nearest neighbour), `column_distance` (to the nearest row in the worst column alone),
    `off_surface` (distance from the plane of the nearest rows, divided by that of 95 % of the rows)
    and `columns_outside` (how many leave the range of the rows). Several seeds add `predicted_sd`,
    the spread between their models, and `seed`, which seed proposed the design.
    `attrs` holds the best row, the candidates, the notes on the rows and the warnings.
    """
    found = find_proposals(
        x,
        y,
        Options(
            method=method, k=k, seed=seed, overrides=overrides, minimise=minimise,
            min_distance=min_distance, same=same, bounds=bounds, inside=inside, fixed=fixed,
            constraints=constraints, categorical=categorical, whole=whole, levels=levels,
            continuous=continuous, drop=drop, check=check,
        ),
    )  # fmt: skip
    for sentence in (*found.notes, *found.warnings):
        warnings.warn(sentence, stacklevel=2)
    return found.table


def find_proposals(x: Any, y: Any, options: Options) -> Proposals:
    """Check the rows, fit, propose, rank, judge, and collect warnings."""
    seeds = list(parse_seeds(options.seed))
    rows = gather_rows(x, y, categorical=options.categorical, drop=options.drop)
    levels, level_notes = _choose_levels(rows, options)
    columns = describe_columns(rows, options.categorical, options.whole, levels, True)
    constraints = Constraints.of(
        columns, options.bounds, options.fixed, options.inside, options.constraints
    )
    larger_better = -rows.y if options.minimise else rows.y
    spec, encoding = _choose_encoding(rows, columns, larger_better, options)
    starts = max(spec.config["budget"]["designs"], options.k)
    if starts * encoding.width > MOST_STARTS:
        raise UsageError(
            f"the search would start from {starts} designs of {encoding.width} numbers, more than "
            f"{MOST_STARTS} in all; set budget.designs to at most {MOST_STARTS // encoding.width}"
        )
    codes = encoding.encode(rows.designs)

    def constrain(codes: Codes) -> Codes:
        return encoding.encode(constraints.apply(encoding.decode(codes)))

    fitted = FittedMethod(spec, encoding)
    fitted.fit(codes, larger_better, seeds)
    way_points = 0 if options.same or encoding.native else max(1, WAY_POINTS // len(seeds))
    proposed = fitted.propose(starts, constrain if constraints else None, way_points)
    visible = EncodedRows.of(Encoding(columns), rows.designs)
    candidates = _candidates(fitted)
    check = None
    name, checked = _name_checked(fitted, candidates)
    if options.check and checked is not None:
        data = repeat_rows(codes, larger_better, encoding.space, 1)
        check = check_held_out(name, checked, data, seeds[0])
    found = fitted.predict_mean(codes[[int(larger_better.argmax())]])
    reference = float("nan") if found is None else float(found[0])
    # predicted less than this, a design is no gain by the model nor by its held-out errors
    enough = reference if check is None else min(reference, larger_better.max() - check.error)
    ranked = rank_designs(
        proposed, fitted, constraints, visible, (enough, reference), options.k,
        options.least_distance, options.minimise,
    )  # fmt: skip
    trust = judge_designs(ranked, visible, larger_better, reference, check, options.minimise)
    cautions = collect_warnings(
        fitted, ranked, visible, check, candidates, larger_better, options.k,
        options.least_distance, options.minimise,
    )  # fmt: skip
    return Proposals(
        rows=rows,
        options=options,
        fitted=fitted,
        visible=visible,
        ranked=ranked,
        trust=trust,
        check=check,
        candidates=candidates,
        notes=(*rows.notes, *level_notes),
        warnings=tuple(cautions),
    )


def _choose_levels(rows: Rows, options: Options) -> tuple[dict[str, tuple[float, ...]], list[str]]:
    """Return the levels of columns, declared or found, and a note on those that were found."""
    given = options.levels
    declared = dict(given) if isinstance(given, Mapping) else dict.fromkeys(given)
    for option, names in (("levels", declared), ("continuous", options.continuous)):
        for name in names:
            check_column(name, rows.designs)
            if name in options.categorical or is_text(rows.designs[name]):
                raise UsageError(
                    printable(f"column {name!r} is a category; leave it out of {option}")
                )
    for name, numbers in declared.items():
        if name in options.continuous or name in (options.whole or ()):
            raise UsageError(
                printable(f"column {name!r} has levels; leave it out of continuous and whole")
            )
        if numbers is not None:
            try:
                valid = np.isfinite(np.asarray(numbers, dtype=np.float64))
            except (TypeError, ValueError):
                valid = np.zeros(1, dtype=bool)
            if valid.ndim != 1 or len(valid) < 2 or not valid.all():
                raise UsageError(
                    printable(f"the levels of {name!r} must be two or more numbers, got {numbers}")
                )
    others = {*options.continuous, *options.categorical, *(options.whole or ())}
    found = find_levels(rows, declared, others)
    listed = [
        f"{name} ({', '.join(f'{level:g}' for level in levels)})"
        for name, levels in found.items()
        if name not in declared
    ]
    if not listed:
        return found, []
    more = f" and {len(listed) - 5} others" if len(listed) > 5 else ""
    sentence = (
        f"Columns with few different numbers keep to them: {', '.join(listed[:5])}{more}; "
        "continuous (--continuous NAME) allows others."
    )
    return found, [printable(sentence)]


def _name_checked(
    fitted: FittedMethod, candidates: Sequence[Mapping[str, Any]]
) -> tuple[str, Method | None]:
    """Return what to check: the method, or the first that it chose; None if that is no method."""
    method = fitted.batches[0].method
    if not candidates or not isinstance(method, Chooser):
        return fitted.spec.method, fitted.spec.build_method()
    chosen = next((str(one["candidate"]) for one in candidates if one["chosen"]), "")
    return chosen, method.copy_choice(chosen)


def _choose_encoding(
    rows: Rows, columns: tuple[Column, ...], y: Values, options: Options
) -> tuple[Specification, Encoding]:
    """Return the first encoding that the method does not decline: as categories, or one-hot."""
    encodings = [Encoding(columns)]
    if encodings[0].categorical:
        encodings.insert(0, Encoding(columns, native=True))
    reason: str | None = None
    for encoding in encodings:
        kind = "categorical" if encoding.space.categorical else "real"
        words = [f"method={options.method}", f"d={encoding.space.d}", f"n={len(y)}"]
        words.append(f"++task.card.designs={kind}")
        (spec,) = specify_points([[*words, *options.overrides]])
        data = repeat_rows(encoding.encode(rows.designs), y, encoding.space, 1)
        reason = spec.build_method().declines(data)
        if reason is None:
            return spec, encoding
    raise UsageError(f"{options.method} declines this table: {reason}; use another method")


def _candidates(fitted: FittedMethod) -> tuple[Mapping[str, Any], ...]:
    """Return what a method like `auto` compared, with the seed if there are several."""
    diagnostics = fitted.diagnostics()
    seeds = [seed for batch in fitted.batches for seed in batch.seeds]
    return tuple(
        {**one, "seed": seed} if len(seeds) > 1 else one
        for seed, of_seed in zip(seeds, diagnostics, strict=bool(diagnostics))
        for one in of_seed.get("candidates") or ()
    )
