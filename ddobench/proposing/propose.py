"""`ddobench.propose`: new designs from one's own rows.

A method is fitted to all rows and searches from `budget.designs` of them (1024); the k designs that
it ranks first at its last iteration come back. Limits (bounds, fixed, whole-number and categorical
columns) are kept by pulling every design back once the search is over and asking the model again;
the search itself does not know of them.
"""

import warnings
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pandas as pd

from ddobench.cli.composition import specify_points
from ddobench.errors import UsageError, check_whole
from ddobench.proposing import trust
from ddobench.proposing.check import Check, check_on_best
from ddobench.proposing.fitted import Codes, Fitted, Pull, repeat_table
from ddobench.proposing.limits import Bounds, Limits
from ddobench.proposing.proposals import OUTSIDE, PREDICTED, RATIO, Chosen, Pool, choose, gather
from ddobench.runner.spec import Specification
from ddobench.seeds import parse_seeds
from ddobench.tabular.encodings import Column, Encoding, find_columns
from ddobench.tabular.rows import Rows, Values, gather_rows

DEFAULT_METHOD = "auto"
MOST_SEEDS = 50
_OWN = ("task", "method", "seed", "d", "n", "results_dir")  # what is no matter of overrides


@dataclass(frozen=True)
class Options:
    """What is asked for, besides the rows."""

    method: str = DEFAULT_METHOD
    k: int = 128
    seed: int | str | Sequence[int] = 0
    overrides: Sequence[str] = ()
    minimise: bool = False
    bounds: Bounds = None
    fixed: Mapping[str, Any] | None = None
    categorical: Collection[str] = ()
    whole: Collection[str] | None = None
    drop: Collection[str] = ()
    check: bool = False  # also fit without the best rows, and see how these are predicted

    def __post_init__(self) -> None:
        check_whole("k", self.k, 1)
        seeds = len(parse_seeds(self.seed))
        if seeds > MOST_SEEDS:
            raise UsageError(f"seed must be at most {MOST_SEEDS} seeds to compare, got {seeds}")
        for word in self.overrides:
            key = word.lstrip("+").partition("=")[0]
            if key in _OWN:
                raise UsageError(f"{key} cannot be an override here; see the other arguments")


@dataclass(frozen=True)
class Proposals:
    """What came of it: the table to hand back, and all that the page tells."""

    rows: Rows
    options: Options
    spec: Specification
    fitted: Fitted
    visible: Codes  # (N, e) the designs of the rows as the method saw them
    numbers: Encoding  # in which distances are taken: a category has a column for each level
    placed: Codes  # (N, e) the designs of the rows as these
    signed: Values  # (N,) their values, larger being better
    chosen: Chosen
    agreement: float  # between seeds, NaN for one
    check: Check | None
    candidates: tuple[Mapping[str, Any], ...]  # that the method compared, as its diagnostics tell
    warnings: tuple[str, ...]

    @property
    def winners(self) -> tuple[str, ...]:
        """What a method that chooses by itself chose, each once; empty if it does not choose."""
        return tuple(dict.fromkeys(str(x["candidate"]) for x in self.candidates if x["chosen"]))

    @property
    def table(self) -> pd.DataFrame:
        """The frame that is handed back."""
        table = self.chosen.table
        table.attrs = {
            "method": self.spec.method,
            "typical_distance": self.chosen.typical,
            "agreement": self.agreement,
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
    bounds: Bounds = None,
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
        bounds: {column: (low, high)}, None for an open end; or "visible", the range of the rows.
        fixed: {column: entry} that every design must have.
        categorical: columns of numbers that are mere labels; texts are categories by themselves.
        whole: columns of whole numbers; None takes those of a whole-number type.
        drop: columns to leave out.

    The columns are those of x, then `predicted` (by the model, in the units of y), `distance` to
    the nearest row (Euclidean, every column in its standard deviations), `distance_ratio` (divided
    by the median distance of a row to its nearest neighbour) and `columns_outside` (how many leave
    the range of the rows). Several seeds add `predicted_sd`, the spread between their models, and
    `seed`, whose design it is. `attrs` tells of warnings, the typical distance and the agreement.
    """
    found = work_out(
        x,
        y,
        Options(
            method=method, k=k, seed=seed, overrides=overrides, minimise=minimise, bounds=bounds,
            fixed=fixed, categorical=categorical, whole=whole, drop=drop,
        ),
    )  # fmt: skip
    for sentence in found.warnings:
        warnings.warn(sentence, stacklevel=2)
    return found.table


def work_out(x: Any, y: Any, options: Options) -> Proposals:
    """Check the rows, fit, propose, and find out what is worth a warning."""
    seeds = list(parse_seeds(options.seed))
    rows = gather_rows(x, y, categorical=options.categorical, drop=options.drop)
    columns = find_columns(rows, options.categorical, options.whole)
    limits = Limits.of(columns, options.bounds, options.fixed)
    signed = -rows.y if options.minimise else rows.y
    spec, encoding = _choose_encoding(rows, columns, signed, options)
    visible = encoding.encode(rows.designs)
    fitted = Fitted(spec, encoding)
    fitted.fit(visible, signed, seeds)
    count = max(spec.config["budget"]["designs"], options.k)
    proposed = fitted.propose(count, _puller(limits, encoding))
    pool = gather(proposed, fitted, limits, encoding, options.k)
    candidates = _candidates(fitted)
    checked = None
    if options.check and not candidates:  # a method that compared some has held rows out itself
        checked = check_on_best(spec, encoding, visible, signed, seeds[0])
    numbers = Encoding(columns)
    placed = numbers.encode(rows.designs)
    chosen = choose(pool, placed, numbers, options.k, options.minimise)
    told = [
        *rows.notes,
        *trust.warn_of_candidates(options.method, candidates),
        *_warn(fitted, pool, chosen, signed, checked, options),
    ]
    return Proposals(
        rows=rows,
        options=options,
        spec=spec,
        fitted=fitted,
        visible=visible,
        numbers=numbers,
        placed=placed,
        signed=signed,
        chosen=chosen,
        agreement=pool.agreement(),
        check=checked,
        candidates=candidates,
        warnings=tuple(told),
    )


def _choose_encoding(
    rows: Rows, columns: tuple[Column, ...], y: Values, options: Options
) -> tuple[Specification, Encoding]:
    """Return the first encoding that the method does not decline: as categories, or as numbers."""
    encodings = [Encoding(columns)]
    if encodings[0].categorical:
        encodings.insert(0, Encoding(columns, native=True))
    refusal: str | None = None
    for encoding in encodings:
        words = [f"method={options.method}", f"d={encoding.space.d}", f"n={len(y)}"]
        (spec,) = specify_points([[*words, *options.overrides]])
        refusal = spec.build_method().declines(
            repeat_table(encoding.encode(rows.designs), y, encoding.space, 1)
        )
        if refusal is None:
            return spec, encoding
    raise UsageError(f"{options.method} declines this table: {refusal}; use another method")


def _candidates(fitted: Fitted) -> tuple[Mapping[str, Any], ...]:
    """Return what a method that chooses by itself compared, for each of several seeds."""
    told = fitted.diagnostics()
    seeds = [seed for batch in fitted.batches for seed in batch.seeds]
    several = len(seeds) > 1
    return tuple(
        {**one, "seed": seed} if several else one
        for seed, report in zip(seeds, told, strict=bool(told))
        for one in report.get("candidates") or ()
    )


def _puller(limits: Limits, encoding: Encoding) -> Pull | None:
    """Return what pulls encoded designs back to where they may be, None if they may be anywhere."""
    if not limits.bounds and not limits.fixed:
        return None
    return lambda codes: encoding.encode(limits.apply(encoding.decode(codes)))


def _warn(
    fitted: Fitted,
    pool: Pool,
    chosen: Chosen,
    y: Values,
    checked: Check | None,
    options: Options,
) -> Iterator[str]:
    """Say what a user should know before trusting the proposals."""
    for seed, reason in fitted.broken.items():
        yield f"Seed {seed} broke down and is left out: {reason}."
    if (found := len(chosen.designs)) < options.k:
        yield (
            f"{options.method} proposes {found} different design{'s' if found > 1 else ''}, "
            f"fewer than the {options.k} asked for."
        )
    ratios, outside, promised = (
        chosen.told[name].to_numpy() for name in (RATIO, OUTSIDE, PREDICTED)
    )
    yield from trust.warn_of_distance(ratios, outside)
    yield from trust.warn_of_likeness(chosen.spread, chosen.typical)
    yield from trust.warn_of_promises(-promised if options.minimise else promised, y)
    yield from trust.warn_of_check(checked)
    yield from trust.warn_of_disagreement(pool.agreement())
