"""`ddobench.propose`: new designs for a user's rows.

A method is fitted to all rows and searches from `budget.designs` of them (1024); the k designs that
it ranks first at its last iteration are returned. Constraints (bounds, fixed, integer and
categorical columns) are applied to every design after the search, and the model then predicts the
design again; the search itself does not know the constraints.
"""

import warnings
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pandas as pd

from ddobench.cli.hooks import specify_points
from ddobench.errors import UsageError, check_whole
from ddobench.propose.constraints import Bounds, Constraints
from ddobench.propose.fitting import (
    Codes,
    FittedMethod,
    HeldOutCheck,
    check_held_out,
    repeat_rows,
)
from ddobench.propose.ranking import RankedDesigns, rank_designs
from ddobench.propose.trust import collect_warnings
from ddobench.runner.spec import Specification
from ddobench.seeds import parse_seeds
from ddobench.tabular.encodings import Column, Encoding, describe_columns
from ddobench.tabular.rows import Rows, Values, gather_rows

DEFAULT_METHOD = "auto"
MOST_SEEDS = 50
MOST_DESIGNS = 10_000  # that are returned: every two of them are compared
MOST_STARTS = 10**8  # numbers of the designs that a search starts from
_ARGUMENTS = ("task", "method", "seed", "d", "n", "results_dir")  # not accepted as overrides


@dataclass(frozen=True)
class Options:
    """The arguments of `propose` besides the rows, and whether to check the method."""

    method: str = DEFAULT_METHOD
    k: int = 128
    seed: int | str | Sequence[int] = 0
    overrides: Sequence[str] = ()
    minimise: bool = False
    bounds: Bounds | None = None
    inside: bool = False
    fixed: Mapping[str, Any] | None = None
    categorical: Collection[str] = ()
    whole: Collection[str] | None = None
    drop: Collection[str] = ()
    check: bool = False  # also fit without the best rows and predict them

    def __post_init__(self) -> None:
        check_whole("k", self.k, 1)
        if self.k > MOST_DESIGNS:
            raise UsageError(
                f"k must be at most {MOST_DESIGNS}, as every two designs are compared, got {self.k}"
            )
        for name in ("overrides", "categorical", "whole", "drop"):
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
    visible: Codes  # (N, e) the rows as the method saw them
    one_hot: Encoding  # in which distances are computed
    row_codes: Codes  # (N, e) the rows encoded one-hot
    ranked: RankedDesigns
    check: HeldOutCheck | None
    candidates: tuple[Mapping[str, Any], ...]  # that the method compared, from its diagnostics
    warnings: tuple[str, ...]

    @property
    def winners(self) -> tuple[str, ...]:
        """The candidates that the method chose, each once; empty if it does not compare any."""
        return tuple(dict.fromkeys(str(x["candidate"]) for x in self.candidates if x["chosen"]))

    @property
    def table(self) -> pd.DataFrame:
        """The frame that is returned."""
        table = self.ranked.table
        table.attrs = {
            "method": self.fitted.spec.method,
            "typical_distance": self.ranked.typical_distance,
            "agreement": self.ranked.agreement,
            "candidates": [dict(one) for one in self.candidates],
            "warnings": list(self.warnings),
        }
        return table


def propose(
    x: Any,
    y: Any,
    method: str = DEFAULT_METHOD,
    k: int = 128,
    seed: int | str | Sequence[int] = 0,
    overrides: Sequence[str] = (),
    *,
    minimise: bool = False,
    bounds: Bounds | None = None,
    inside: bool = False,
    fixed: Mapping[str, Any] | None = None,
    categorical: Collection[str] = (),
    whole: Collection[str] | None = None,
    drop: Collection[str] = (),
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
        bounds: {column: (low, high)}, None for an open end.
        inside: keep every column inside the range of the rows, and inside its bounds if it has any.
        fixed: {column: entry} that every design must have.
        categorical: numeric columns that are categories; string columns always are.
        whole: columns of whole numbers; None takes those with an integer dtype.
        drop: columns to leave out.

    The columns are those of x, then `predicted` (by the model, in the units of y), `distance` to
    the nearest row (Euclidean, every column in its standard deviations), `distance_ratio` (divided
    by the median distance of a row to its nearest neighbour) and `columns_outside` (how many leave
    the range of the rows). Several seeds add `predicted_sd`, the spread between their models, and
    `seed`, which seed proposed the design. `attrs` holds the warnings, the typical distance and the
    agreement between seeds.
    """
    found = find_proposals(
        x,
        y,
        Options(
            method=method, k=k, seed=seed, overrides=overrides, minimise=minimise, bounds=bounds,
            inside=inside, fixed=fixed, categorical=categorical, whole=whole, drop=drop,
        ),
    )  # fmt: skip
    for sentence in found.warnings:
        warnings.warn(sentence, stacklevel=2)
    return found.table


def find_proposals(x: Any, y: Any, options: Options) -> Proposals:
    """Check the rows, fit, propose, rank, and collect warnings."""
    seeds = list(parse_seeds(options.seed))
    rows = gather_rows(x, y, categorical=options.categorical, drop=options.drop)
    columns = describe_columns(rows, options.categorical, options.whole)
    constraints = Constraints.of(columns, options.bounds, options.fixed, options.inside)
    larger_better = -rows.y if options.minimise else rows.y
    spec, encoding = _choose_encoding(rows, columns, larger_better, options)
    starts = max(spec.config["budget"]["designs"], options.k)
    if starts * encoding.width > MOST_STARTS:
        raise UsageError(
            f"the search would start from {starts} designs of {encoding.width} numbers, more than "
            f"{MOST_STARTS} in all; set budget.designs to at most {MOST_STARTS // encoding.width}"
        )
    visible = encoding.encode(rows.designs)

    def constrain(codes: Codes) -> Codes:
        return encoding.encode(constraints.apply(encoding.decode(codes)))

    fitted = FittedMethod(spec, encoding)
    fitted.fit(visible, larger_better, seeds)
    proposed = fitted.propose(
        starts,
        constrain if constraints.bounds or constraints.fixed else None,
    )
    one_hot = Encoding(columns)
    row_codes = one_hot.encode(rows.designs)
    ranked = rank_designs(
        proposed, fitted, constraints, one_hot, row_codes, options.k, options.minimise
    )
    candidates = _candidates(fitted)
    check = None
    if options.check and not candidates:  # a method with candidates has held out rows itself
        check = check_held_out(spec, encoding, visible, larger_better, seeds[0])
    cautions = collect_warnings(
        fitted, ranked, check, candidates, larger_better, options.k, options.minimise
    )
    return Proposals(
        rows=rows,
        options=options,
        fitted=fitted,
        visible=visible,
        one_hot=one_hot,
        row_codes=row_codes,
        ranked=ranked,
        check=check,
        candidates=candidates,
        warnings=(*rows.notes, *cautions),
    )


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
