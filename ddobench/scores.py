"""Every number that is told of a run, declared once: how it is computed, read and shown.

A curve has one number per iteration, a score one per run. To add one, append it to CURVES or SCORES
and test it: the runner computes what is declared here, the store promises it, and the tables, the
claims, the page and comparisons show it wherever its declaration says. Figures tell stories of
their own and choose their scores by name of the constant.

Ask the functions at the end rather than the tuples, when something is to be shown: they look up
what is declared at that moment.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Literal

import numpy as np

from ddobench.judging import Ending, Judged, Values

Better = Literal["higher", "lower", "neither"]
Part = Literal["estimate", "mean", "iqm", "median"]  # an estimate is a mean with its interval
Sheet = Literal["scores", "protocol"]  # ours, and figures that others report


@dataclass(frozen=True)
class Unit:
    """What a number is measured in."""

    name: str
    sign: str  # behind a number
    told_by: str = ""  # the column of a run that tells the sign instead
    fraction: bool = False  # of one, shown as a percentage

    @property
    def scale(self) -> int:
        """By what to multiply a number before it is shown with its sign."""
        return 100 if self.fraction else 1

    @property
    def digits(self) -> int:
        """Decimals that are worth showing, once multiplied."""
        return 1 if self.fraction else 2


SD = Unit("sd", "sd")  # standard deviations of the visible values, above their mean
REGRET = Unit("regret", "", told_by="regret_unit")  # each task says which
SHARE = Unit("share", "%", fraction=True)
CORRELATION = Unit("correlation", "")  # from -1 to 1
SECONDS = Unit("s", "s")
RATIO = Unit("ratio", "")  # of one
DISTANCE = Unit("distance", "")  # as `judging.Spread` has it


@dataclass(frozen=True)
class Curve:
    """One number per recorded iteration of a run."""

    name: str  # of its column in `load_curves`
    meaning: str
    unit: Unit
    compute: Callable[[Judged], Values]  # -> (T,)
    line: str = ""  # what its line is called in the page's chart of a run; "": not drawn there
    predicted: bool = False  # not measured, so that a chart need not have room for all of it


@dataclass(frozen=True)
class Last:
    """The last number of a curve."""

    curve: str

    def __call__(self, ending: Ending) -> float:
        """Take it."""
        return float(ending.curves[self.curve][-1])


@dataclass(frozen=True)
class Largest:
    """The largest number of a curve, at whichever iteration."""

    curve: str

    def __call__(self, ending: Ending) -> float:
        """Take it."""
        return float(ending.curves[self.curve].max())


@dataclass(frozen=True)
class Shortfall:
    """By how much the last number of a curve falls short of the optimum, in units of regret."""

    curve: str

    def __call__(self, ending: Ending) -> float:
        """Take it."""
        return (ending.optimum - float(ending.curves[self.curve][-1])) * ending.regret_scale


@dataclass(frozen=True)
class OfHiddenRows:
    """How rows were predicted that the method was not shown."""

    part: Literal["error", "rank", "top"]

    def __call__(self, ending: Ending) -> float:
        """Take it."""
        return float(getattr(ending.held_out, self.part))


@dataclass(frozen=True)
class OfLastDesigns:
    """A percentile of the last designs that the method ranks first; normalised by all data or not.

    Normalised is 0 for the least and 1 for the largest value of all data, hidden ones included.
    """

    percentile: float
    normalised: bool = False

    def __call__(self, ending: Ending) -> float:
        """Take it."""
        last = ending.last
        if not len(last.values):
            return float("nan")
        value = float(np.percentile(last.values, self.percentile))
        return _ratio(value - last.low, last.high - last.low) if self.normalised else value


@dataclass(frozen=True)
class OfSpread:
    """How far the last designs ranked first are from each other, or from the data."""

    part: Literal["diversity", "novelty"]

    def __call__(self, ending: Ending) -> float:
        """Take it."""
        return float(getattr(ending.last.spread, self.part))


@dataclass(frozen=True)
class OfOrder:
    """How well predictions order the last designs, or the best visible rows."""

    part: Literal["order", "order_visible"]

    def __call__(self, ending: Ending) -> float:
        """Take it."""
        return float(getattr(ending.last, self.part))


@dataclass(frozen=True)
class OfStability:
    """The indicators of SOO-Bench (Qian et al. 2025), of a curve above the worst visible value.

    With f the curve minus the worst visible value, and its mean over the iterations after the
    start: OI compares it with the best visible value, SI with the best iteration, and SO is their
    harmonic mean. The paper asks for positive f without saying how; the shift is ours.
    """

    curve: str
    part: Literal["oi", "si", "so"]

    def __call__(self, ending: Ending) -> float:
        """Take it."""
        values = ending.curves[self.curve] - ending.worst
        values = values[1:] if len(values) > 1 else values
        gained = _ratio(float(values.mean()), ending.best - ending.worst)
        steady = _ratio(float(values.mean()), float(values.max()))
        both = _ratio(2 * gained * steady, gained + steady)
        return {"oi": gained, "si": steady, "so": both}[self.part]


@dataclass(frozen=True)
class ShareOfOptimum:
    """The last number of a curve as a share of the optimum, both above the visible mean."""

    curve: str

    def __call__(self, ending: Ending) -> float:
        """Take it."""
        return _ratio(float(ending.curves[self.curve][-1]), ending.optimum)


def _ratio(part: float, whole: float) -> float:
    """Divide, NaN where there is nothing positive to divide by."""
    return part / whole if whole > 0 else float("nan")


@dataclass(frozen=True)
class Tabled:
    """How a score appears in the score tables, one row per cell and method."""

    key: str  # how the names of its columns in scores.csv begin
    cells: Mapping[str, Part] = field(default_factory=dict)  # what people read, by heading
    summary: Literal["whole", "estimate", "mean"] = "estimate"  # how much of it the CSV has
    sheet: Sheet = "scores"  # which table for people it is in

    def column(self, part: Part) -> str:
        """Return the column that holds a part; that of an estimate is its mean."""
        if self.summary == "mean":
            return self.key
        return f"{self.key}_{'mean' if part == 'estimate' else part}"


@dataclass(frozen=True)
class Score:
    """One number per run, and everywhere it is shown."""

    name: str  # of its column in `load`
    meaning: str  # a sentence
    unit: Unit
    better: Better
    lines: tuple[str, ...] = ()  # its label, broken where an axis has little room
    take: Callable[[Ending], float] | None = None  # None: the runner knows it without a curve
    stored: bool = True  # else a report takes it from the end of the curve
    table: Tabled | None = None
    board: Mapping[str, Part] = field(default_factory=dict)  # in the page's leaderboard, by heading
    rank: int = 0  # 1: decides who leads a leaderboard; 2: does where nothing before it is known
    standings: bool = False  # its mean is in the standings across tasks
    contrast: str = ""  # what differences in it are headed, in controls and pairs; "": not there
    page: str = ""  # what the page calls it where it tells of a single run; "": not there
    claims: bool = False  # claims may be about it
    compare: bool = False  # `python -m ddobench.compare --score` may name it
    rare: bool = False  # of few tasks: tables for people have it only where a run has

    def __post_init__(self) -> None:
        if not self.stored and not isinstance(self.take, Last):
            raise ValueError(f"{self.name} must be stored, or be the last number of a curve")

    @property
    def label(self) -> str:
        """What it is called in a sentence."""
        return " ".join(self.lines)

    @property
    def axis(self) -> str:
        """What it is called at an axis."""
        return "\n".join(self.lines) + (f" [{self.unit.sign}]" if self.unit.sign else "")


def _survivors(run: Judged) -> Values:
    """Average the best valid designs until fewer than `top` are left, then stop for good."""
    alive = np.logical_and.accumulate((~run.invalid).sum(axis=1) >= run.top)
    best = -np.sort(np.where(run.invalid, np.inf, -run.truth), axis=1)[:, : run.top]
    means: Values = np.where(alive, np.where(alive[:, None], best, 0.0).mean(axis=1), np.nan)
    return means


VALUE_MODEL = Curve(
    name="value_model",
    meaning="The mean true value of the designs that the method itself ranks first.",
    unit=SD,
    compute=lambda run: run.mean_of_chosen(run.punished),
    line="ranked by the method",
)
VALUE_ORACLE = Curve(
    name="value_oracle",
    meaning="The mean true value of the designs that the oracle ranks first.",
    unit=SD,
    compute=lambda run: -np.sort(-run.punished, axis=1)[:, : run.top].mean(axis=1),
    line="ranked by the oracle",
)
SURVIVORS = Curve(
    name="survivors",
    meaning="The paper's curve: the mean of the best valid designs while there are enough.",
    unit=SD,
    compute=_survivors,
)
INVALID = Curve(
    name="invalid",
    meaning="The share of all designs that are outside the domain of the function.",
    unit=SHARE,
    compute=lambda run: run.invalid.mean(axis=1),
    line="invalid",
)
PREDICTED = Curve(
    name="predicted",
    meaning="The mean value that the method predicts of the designs it ranks first.",
    unit=SD,
    compute=lambda run: run.mean_of_chosen(run.predicted),
    line="predicted by the method",
    predicted=True,
)
MEDIAN = Curve(
    name="median",
    meaning="The median true value of all designs.",
    unit=SD,
    compute=lambda run: np.median(run.punished, axis=1),
)
BEST = Curve(
    name="best",
    meaning="The largest true value of all designs.",
    unit=SD,
    compute=lambda run: run.punished.max(axis=1),
)
CURVES = (VALUE_MODEL, VALUE_ORACLE, SURVIVORS, INVALID, PREDICTED, MEDIAN, BEST)

BEST_VISIBLE = Score(
    name="best_visible",
    meaning="The largest visible value.",
    unit=SD,
    better="neither",
    lines=("best visible value",),
    table=Tabled("best_visible", summary="mean"),
    page="Best visible value",
)
OPTIMUM = Score(
    name="optimum",
    meaning="The largest value that any valid design has, where it is known.",
    unit=SD,
    better="neither",
    lines=("optimum",),
    table=Tabled("optimum", summary="mean"),
    page="Optimum",
)
LANDMARKS = (BEST_VISIBLE, OPTIMUM)  # of the task, the same for all methods of a seed

FINAL_MODEL = Score(
    name="final_model",
    meaning="The value at the last iteration of the designs that the method itself ranks first.",
    unit=SD,
    better="higher",
    lines=("final value,", "ranked by the method"),
    take=Last(VALUE_MODEL.name),
    table=Tabled("value", {"value (sd)": "estimate", "IQM": "iqm"}, summary="whole"),
    board={"Value, sd": "estimate"},
    rank=2,
    contrast="final value",
    page="Value at the end, ranked by the method",
    claims=True,
    compare=True,
)
FINAL_ORACLE = Score(
    name="final_oracle",
    meaning="The value at the last iteration of the designs that the oracle ranks first.",
    unit=SD,
    better="higher",
    lines=("final value,", "ranked by the oracle"),
    take=Last(VALUE_ORACLE.name),
    table=Tabled("oracle_final", {"by oracle, final": "estimate"}),
    page="Value at the end, ranked by the oracle",
    claims=True,
)
BEST_ORACLE = Score(
    name="best_oracle",
    meaning="The value of the designs that the oracle ranks first, at the iteration it likes best.",
    unit=SD,
    better="higher",
    lines=("best iteration,", "ranked by the oracle"),
    take=Largest(VALUE_ORACLE.name),
    table=Tabled("oracle_best", {"by oracle, best": "estimate"}),
    contrast="best by oracle",
    page="Value at the best iteration, ranked by the oracle",
    claims=True,
    compare=True,
)
MEDIAN_DESIGN = Score(
    name="p50",
    meaning="The 50th percentile of all designs of the last iteration.",
    unit=SD,
    better="higher",
    lines=("median design",),
    take=Last(MEDIAN.name),
    stored=False,
    table=Tabled("p50", {"median design": "mean"}),
)
SURVIVORS_FINAL = Score(
    name="survivors_final",
    meaning="The mean of the best valid designs at the last iteration that has enough of them.",
    unit=SD,
    better="higher",
    lines=("value of the best", "valid designs"),
    take=Last(SURVIVORS.name),
    stored=False,
    claims=True,
)
BEST_DESIGN = Score(
    name="p100",
    meaning="The 100th percentile of all designs of the last iteration.",
    unit=SD,
    better="higher",
    lines=("best design",),
    take=Last(BEST.name),
    stored=False,
    table=Tabled("p100", {"best design": "mean"}),
)
PREDICTED_FINAL = Score(
    name="predicted_final",
    meaning="What the method predicts of the designs it ranks first, at the last iteration.",
    unit=SD,
    better="neither",
    lines=("final prediction",),
    take=Last(PREDICTED.name),
    page="What the method predicted at the end",
)
REGRET_FINAL = Score(
    name="regret_final",
    meaning="How far the final value, ranked by the method, falls short of the optimum.",
    unit=REGRET,
    better="lower",
    lines=("regret",),
    take=Shortfall(VALUE_MODEL.name),
    table=Tabled("regret", {"regret": "estimate", "regret IQM": "iqm"}, summary="whole"),
    board={"Regret": "estimate"},
    rank=1,
    page="Regret at the end",
    claims=True,
    compare=True,
)
INVALID_FINAL = Score(
    name="invalid_final",
    meaning="The share of the designs of the last iteration that are invalid.",
    unit=SHARE,
    better="lower",
    lines=("invalid designs", "at the end"),
    take=Last(INVALID.name),
    table=Tabled("invalid", {"invalid": "mean"}, summary="mean"),
    board={"Invalid": "mean"},
    standings=True,
    contrast="invalid at the end",
    page="Invalid designs at the end",
    claims=True,
    compare=True,
)
HELD_OUT_RANK = Score(
    name="held_out_rank",
    meaning="The rank correlation of predictions and values of the rows that were hidden.",
    unit=CORRELATION,
    better="higher",
    lines=("rank correlation", "on hidden rows"),
    take=OfHiddenRows("rank"),
    table=Tabled("hidden_rank", {"hidden rows, rank": "estimate"}),
    board={"Hidden rows, rank": "estimate"},
    rank=3,
    page="Rank correlation on hidden rows",
    claims=True,
    compare=True,
    rare=True,
)
HELD_OUT_ERROR = Score(
    name="held_out_error",
    meaning="The root mean square error of the predictions of the rows that were hidden.",
    unit=SD,
    better="lower",
    lines=("error", "on hidden rows"),
    take=OfHiddenRows("error"),
    table=Tabled("hidden_error", {"hidden rows, error": "estimate"}),
    board={"Hidden rows, error, sd": "estimate"},
    page="Error on hidden rows",
    claims=True,
    compare=True,
    rare=True,
)
HELD_OUT_TOP = Score(
    name="held_out_top",
    meaning="The mean value of the tenth of the hidden rows that the method ranks first.",
    unit=SD,
    better="higher",
    lines=("value of the hidden rows", "ranked first"),
    take=OfHiddenRows("top"),
    table=Tabled("hidden_top", {"hidden rows, top tenth": "estimate"}),
    board={"Hidden rows, top tenth, sd": "estimate"},
    page="Value of the hidden rows ranked first",
    claims=True,
    compare=True,
    rare=True,
)
TOP_BEST = Score(
    name="top_p100",
    meaning="The 100th percentile of the last designs that the method ranks first, 128 in full.",
    unit=SD,
    better="higher",
    lines=("best of the designs", "ranked first"),
    take=OfLastDesigns(100),
    table=Tabled("top_p100", {"100th percentile (sd)": "mean"}, "mean", "protocol"),
    page="Best of the designs ranked first",
    claims=True,
    compare=True,
    rare=True,
)
TOP_MEDIAN = Score(
    name="top_p50",
    meaning="The 50th percentile of the last designs that the method ranks first, 128 in full.",
    unit=SD,
    better="higher",
    lines=("median of the designs", "ranked first"),
    take=OfLastDesigns(50),
    table=Tabled("top_p50", {"50th percentile (sd)": "mean"}, "mean", "protocol"),
    page="Median of the designs ranked first",
    claims=True,
    compare=True,
    rare=True,
)
NORMALISED_BEST = Score(
    name="normalised_p100",
    meaning="The best of the last designs ranked first: 0 for the least of all data, 1 for the "
    "best.",
    unit=RATIO,
    better="higher",
    lines=("normalised best of the designs", "ranked first"),
    take=OfLastDesigns(100, normalised=True),
    table=Tabled("normalised_p100", {"100th, normalised": "mean"}, "mean", "protocol"),
    page="Best of the designs ranked first, normalised by all data",
    claims=True,
    compare=True,
    rare=True,
)
NORMALISED_MEDIAN = Score(
    name="normalised_p50",
    meaning="The median of the last designs ranked first: 0 for the least of all data, 1 for the "
    "best.",
    unit=RATIO,
    better="higher",
    lines=("normalised median of the designs", "ranked first"),
    take=OfLastDesigns(50, normalised=True),
    table=Tabled("normalised_p50", {"50th, normalised": "mean"}, "mean", "protocol"),
    page="Median of the designs ranked first, normalised by all data",
    claims=True,
    compare=True,
    rare=True,
)
SHARE_OF_OPTIMUM = Score(
    name="optimum_share",
    meaning="The final value, ranked by the method, as a share of the optimum: 0 is the visible "
    "mean.",
    unit=SHARE,
    better="higher",
    lines=("share of the optimum",),
    take=ShareOfOptimum(VALUE_MODEL.name),
    table=Tabled("optimum_share", {"of the optimum": "mean"}, "mean", "protocol"),
    page="Share of the optimum at the end",
    claims=True,
    compare=True,
    rare=True,
)
SOO_IMPROVEMENT = Score(
    name="soo_oi",
    meaning="SOO-Bench's OI: mean over iterations by the best visible value, above the worst one.",
    unit=RATIO,
    better="higher",
    lines=("SOO-Bench OI",),
    take=OfStability(VALUE_MODEL.name, "oi"),
    table=Tabled("soo_oi", {"OI": "mean"}, "mean", "protocol"),
    page="SOO-Bench OI, above the worst visible value",
    claims=True,
    rare=True,
)
SOO_STABILITY = Score(
    name="soo_si",
    meaning="SOO-Bench's SI: mean over iterations by the best one, above the worst visible value.",
    unit=RATIO,
    better="higher",
    lines=("SOO-Bench SI",),
    take=OfStability(VALUE_MODEL.name, "si"),
    table=Tabled("soo_si", {"SI": "mean"}, "mean", "protocol"),
    page="SOO-Bench SI, above the worst visible value",
    claims=True,
    rare=True,
)
SOO_BOTH = Score(
    name="soo_so",
    meaning="SOO-Bench's SO: the harmonic mean of OI and SI.",
    unit=RATIO,
    better="higher",
    lines=("SOO-Bench SO",),
    take=OfStability(VALUE_MODEL.name, "so"),
    table=Tabled("soo_so", {"SO": "mean"}, "mean", "protocol"),
    page="SOO-Bench SO, above the worst visible value",
    claims=True,
    rare=True,
)
ORDER_VISIBLE = Score(
    name="order_top_decile",
    meaning="AUPCC of the predictions of the best visible tenth: 1 is their order, 0.5 is chance.",
    unit=RATIO,
    better="higher",
    lines=("order of the best", "visible tenth (AUPCC)"),
    take=OfOrder("order_visible"),
    table=Tabled("order_top_decile", {"order, top tenth": "mean"}, "mean", "protocol"),
    page="Order of the best visible tenth, AUPCC",
    claims=True,
    compare=True,
    rare=True,
)
ORDER_DESIGNS = Score(
    name="order_designs",
    meaning="AUPCC of the predictions of all last designs: 1 is their true order, 0.5 is chance.",
    unit=RATIO,
    better="higher",
    lines=("order of the designs", "(AUPCC)"),
    take=OfOrder("order"),
    table=Tabled("order_designs", {"order, designs": "mean"}, "mean", "protocol"),
    page="Order of the last designs, AUPCC",
    claims=True,
    compare=True,
    rare=True,
)
DIVERSITY = Score(
    name="diversity",
    meaning="The mean distance between two of the last designs that the method ranks first.",
    unit=DISTANCE,
    better="neither",
    lines=("diversity",),
    take=OfSpread("diversity"),
    table=Tabled("diversity", {"diversity": "mean"}, "mean", "protocol"),
    page="Diversity of the designs ranked first",
    claims=True,
    rare=True,
)
NOVELTY = Score(
    name="novelty",
    meaning="The mean distance of the last designs ranked first to the nearest visible one.",
    unit=DISTANCE,
    better="neither",
    lines=("novelty",),
    take=OfSpread("novelty"),
    table=Tabled("novelty", {"novelty": "mean"}, "mean", "protocol"),
    page="Novelty of the designs ranked first",
    claims=True,
    rare=True,
)
PROTOCOL = (
    *(TOP_BEST, TOP_MEDIAN, NORMALISED_BEST, NORMALISED_MEDIAN, SHARE_OF_OPTIMUM),
    *(SOO_IMPROVEMENT, SOO_STABILITY, SOO_BOTH, ORDER_VISIBLE, ORDER_DESIGNS, DIVERSITY, NOVELTY),
)  # what others report; runs stored before do not have them
SCORES = (
    *(FINAL_MODEL, FINAL_ORACLE, BEST_ORACLE, SURVIVORS_FINAL, MEDIAN_DESIGN, BEST_DESIGN),
    PREDICTED_FINAL,
    *(REGRET_FINAL, INVALID_FINAL, HELD_OUT_RANK, HELD_OUT_ERROR, HELD_OUT_TOP),
    *PROTOCOL,
)
HEADLINE = FINAL_MODEL  # what methods are ranked by across tasks; a run without it has no score

SECONDS_FIT = Score(
    name="seconds_fit",
    meaning="Wall-clock seconds to fit, a batch shared equally by its seeds.",
    unit=SECONDS,
    better="lower",
    lines=("seconds to fit",),
    page="Time to fit",
)
SECONDS_PROPOSE = Score(
    name="seconds_propose",
    meaning="Wall-clock seconds to propose, a batch shared equally by its seeds.",
    unit=SECONDS,
    better="lower",
    lines=("seconds to propose",),
    page="Time to propose",
)
SECONDS_EVALUATE = Score(
    name="seconds_evaluate",
    meaning="Wall-clock seconds of the oracle, a batch shared equally by its seeds.",
    unit=SECONDS,
    better="lower",
    lines=("seconds to evaluate",),
)
SECONDS_CPU = Score(
    name="seconds_cpu",
    meaning="CPU seconds to fit and propose, a batch shared equally by its seeds.",
    unit=SECONDS,
    better="lower",
    lines=("CPU seconds",),
    page="CPU time",
)
COSTS = (SECONDS_FIT, SECONDS_PROPOSE, SECONDS_EVALUATE, SECONDS_CPU)  # never the same twice


def find_score(name: str) -> Score:
    """Return the score with a name."""
    return next(score for score in (*SCORES, *LANDMARKS, *COSTS) if score.name == name)


def compute_curves(run: Judged) -> dict[str, Values]:
    """Return every declared curve by its name."""
    return {curve.name: curve.compute(run) for curve in CURVES}


def compute_scores(ending: Ending) -> dict[str, float]:
    """Return every declared score that is stored, by its name."""
    return {
        score.name: score.take(ending)
        for score in SCORES
        if score.stored and score.take is not None
    }


def curve_names() -> list[str]:
    """Name the curves that every run has."""
    return [curve.name for curve in CURVES]


def stored_names() -> list[str]:
    """Name the numbers that every row of a finished run has."""
    return [score.name for score in (*LANDMARKS, *SCORES, *COSTS) if score.stored]


def repeatable_names() -> list[str]:
    """Name the stored numbers that the same run has again, to the bit."""
    return [score.name for score in (*LANDMARKS, *SCORES) if score.stored]


def predicted_names() -> list[str]:
    """Name the curves and the stored numbers that a method predicts, where others are measured."""
    curves = [curve.name for curve in CURVES if curve.predicted]
    return curves + [score.name for score in SCORES if isinstance(score.take, Last)
                     and score.take.curve in curves]  # fmt: skip


def oracle_names() -> list[str]:
    """Name the scores that an oracle chooses the designs for, which no method could."""
    return [
        score.name
        for score in SCORES
        if isinstance(score.take, Last | Largest) and score.take.curve == VALUE_ORACLE.name
    ]


def unstored_curves() -> dict[str, str]:
    """Return the scores that a report takes from the end of a curve, each with its curve."""
    return {score.name: score.take.curve for score in SCORES if isinstance(score.take, Last)
            and not score.stored}  # fmt: skip


def tabled_scores(sheet: Sheet | None = None) -> list[tuple[Score, Tabled]]:
    """Return what the score tables have, or one of them, each with how it appears there."""
    tabled = [(score, score.table) for score in (*LANDMARKS, *SCORES) if score.table is not None]
    return [(score, table) for score, table in tabled if sheet in (None, table.sheet)]


def meanings(sheet: Sheet) -> list[str]:
    """Say what each column of a table for people means."""
    return [
        f"{', '.join(table.cells)}: {score.meaning}"
        for score, table in tabled_scores(sheet)
        if table.cells
    ]


def leaderboard_scores() -> list[tuple[Score, Tabled]]:
    """Return what the leaderboard of the page has, those that decide who leads first."""
    shown = [(score, table) for score, table in tabled_scores() if score.board]
    return sorted(shown, key=lambda pair: pair[0].rank or len(shown) + 1)


def standing_scores() -> list[tuple[Score, Tabled]]:
    """Return what the standings across tasks tell of, beside ranks and shares of the optimum."""
    return [(score, table) for score, table in tabled_scores() if score.standings]


def contrasted_scores() -> dict[str, str]:
    """Return the scores whose differences are tested, each with its heading."""
    return {score.name: score.contrast for score in SCORES if score.contrast}


def claimable_names() -> list[str]:
    """Name the scores that a claim may be about."""
    return [score.name for score in SCORES if score.claims]


def comparable_names() -> list[str]:
    """Name the scores that two sets of runs may be compared by, the headline first."""
    return [score.name for score in SCORES if score.compare]


def page_scores() -> list[Score]:
    """Return what the page tells of a single run."""
    return [score for score in (*SCORES, *LANDMARKS, *COSTS) if score.page]


def drawn_curves() -> list[Curve]:
    """Return what the page draws of a single run."""
    return [curve for curve in CURVES if curve.line]
