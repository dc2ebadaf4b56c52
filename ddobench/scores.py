"""Every number that describes a run, declared once: how it is computed and where it is shown.

A curve has one number per iteration, a score one per run. To add one, append it to CURVES or SCORES
and test it. The runner computes and stores it; tables, claims, comparisons and the page show it
unless its declaration says otherwise. Figures choose their scores by the constant.

Code that shows scores calls the functions at the end: they read the tuples when they are called.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from textwrap import fill
from typing import Literal

import numpy as np

from ddobench.judging import BATCH, Judged, RunEnd, Values

Better = Literal["higher", "lower", "neither"]
Statistic = Literal["mean", "iqm"]
TableName = Literal["scores", "protocol"]  # our scores; those of other benchmarks and of batches


@dataclass(frozen=True)
class Unit:
    """What a number is measured in."""

    name: str
    sign: str  # printed after a number
    sign_column: str = ""  # the column of a run that has the sign, if tasks differ
    fraction: bool = False  # shown as a percentage

    @property
    def scale(self) -> int:
        """The factor by which a number is multiplied before it is shown."""
        return 100 if self.fraction else 1

    @property
    def digits(self) -> int:
        """The number of decimals to show."""
        return 1 if self.fraction else 2


SD = Unit("sd", "sd")  # standard deviations of the visible values, above their mean
REGRET = Unit("regret", "", sign_column="regret_unit")
SHARE = Unit("share", "%", fraction=True)
CORRELATION = Unit("correlation", "")
SECONDS = Unit("s", "s")
RATIO = Unit("ratio", "")
DISTANCE = Unit("distance", "")  # see `judging.Spread`


@dataclass(frozen=True)
class Curve:
    """One number per recorded iteration of a run."""

    name: str  # its column in `load_curves`
    meaning: str
    compute: Callable[[Judged], Values]  # -> (T,)
    unit: Unit = SD
    line: str = ""  # its label in the page's chart of a run; "": not drawn there
    predicted: bool = False  # by the method, not measured


def _survivors(run: Judged) -> Values:
    """Average the best valid designs, up to the first iteration with fewer than `top` of them."""
    alive = np.logical_and.accumulate((~run.invalid).sum(axis=1) >= run.top)
    best = -np.sort(np.where(run.invalid, np.inf, -run.truth), axis=1)[:, : run.top]
    means: Values = np.where(alive, np.where(alive[:, None], best, 0.0).mean(axis=1), np.nan)
    return means


# fmt: off
VALUE_MODEL = Curve(
    "value_model", "The mean true value of the designs that the method itself ranks first.",
    lambda run: run.mean_of_chosen(run.punished), line="ranked by the method",
)
VALUE_ORACLE = Curve(
    "value_oracle", "The mean true value of the designs that the oracle ranks first.",
    lambda run: -np.sort(-run.punished, axis=1)[:, : run.top].mean(axis=1),
    line="ranked by the oracle",
)
SURVIVORS = Curve(
    "survivors", "The paper's curve: the mean of the best valid designs while there are enough.",
    _survivors,
)
INVALID = Curve(
    "invalid", "The share of all designs that are outside the domain of the function.",
    lambda run: run.invalid.mean(axis=1), unit=SHARE, line="invalid",
)
PREDICTED = Curve(
    "predicted", "The mean value that the method predicts for the designs it ranks first.",
    lambda run: run.mean_of_chosen(run.predicted), line="predicted by the method", predicted=True,
)
MEDIAN = Curve(
    "median", "The median true value of all designs.",
    lambda run: np.median(run.punished, axis=1),
)
BEST = Curve(
    "best", "The largest true value of all designs.", lambda run: run.punished.max(axis=1),
)
# fmt: on
CURVES = (VALUE_MODEL, VALUE_ORACLE, SURVIVORS, INVALID, PREDICTED, MEDIAN, BEST)


@dataclass(frozen=True)
class Score:
    """One number per run, and where it is shown."""

    name: str  # its column in `load`
    meaning: str
    label: str  # what it is called in the page and on an axis
    curve: Curve | None = None  # what it is taken from
    take: Callable[[RunEnd], float] | None = None  # by default the last number of the curve
    unit: Unit = SD
    better: Better = "higher"
    stored: bool = True  # if not, a report takes it from the end of the curve
    key: str = ""  # the prefix of its columns in scores.csv; "": its name
    summary: Literal["full", "interval", "mean", ""] = "interval"  # in scores.csv; "": not there
    heading: str = ""  # in the tables for reading; "": not there
    table: TableName = "scores"  # which of these tables
    leaderboard: str = ""  # heading in the leaderboard; "": not there
    rank: int = 0  # 1 ranks the leaderboard, 2 does where 1 is unknown, and so on; 0 never does
    standings: bool = False  # whether the standings across tasks have its mean
    contrast: str = ""  # heading of its paired differences; "": not compared
    on_page: bool = True  # whether the page shows it for single runs

    def __post_init__(self) -> None:
        if not self.stored and (self.curve is None or self.take is not None):
            raise ValueError(f"{self.name} must be stored, or be the last number of a curve")

    @property
    def prefix(self) -> str:
        """How the names of its columns in scores.csv begin."""
        return self.key or self.name

    def column(self, statistic: Statistic = "mean") -> str:
        """Return the column of a statistic in scores.csv."""
        return self.prefix if self.summary == "mean" else f"{self.prefix}_{statistic}"

    @property
    def headings(self) -> dict[str, Statistic]:
        """What a table for reading shows of it, by heading."""
        shown: dict[str, Statistic] = {self.heading: "mean"} if self.heading else {}
        return shown | ({f"{self.heading}, IQM": "iqm"} if self.summary == "full" else {})

    @property
    def axis(self) -> str:
        """Its label on an axis, wrapped."""
        return fill(f"{self.label} [{self.unit.sign}]" if self.unit.sign else self.label, 22)

    def compute(self, ending: RunEnd) -> float:
        """Compute it from the end of a run."""
        if self.take is not None:
            return float(self.take(ending))
        assert self.curve is not None
        return float(ending.curves[self.curve.name][-1])


def _last_value(ending: RunEnd) -> float:
    return float(ending.curves[VALUE_MODEL.name][-1])


def _percentile(values: Values, q: float) -> float:
    """Return a percentile of the last designs that the method ranks first, NaN without any."""
    return float(np.percentile(values, q)) if len(values) else float("nan")


def _mean(values: Values) -> float:
    return float(values.mean()) if len(values) else float("nan")


def _normalise(ending: RunEnd, value: float) -> float:
    """Map the least value of all data, hidden rows included, to 0 and the largest to 1."""
    return _ratio(value - ending.last.low, ending.last.high - ending.last.low)


def _soo_bench(ending: RunEnd) -> tuple[float, float, float]:
    """Return the indicators OI, SI and SO of SOO-Bench (Qian et al. 2025).

    With f the value minus the worst visible value, and its mean over the iterations after the
    start: OI divides it by the best visible value, SI by the best iteration, and SO is their
    harmonic mean. The paper asks for positive f without saying how; the shift is ours.
    """
    values = ending.curves[VALUE_MODEL.name] - ending.worst
    values = values[1:] if len(values) > 1 else values
    oi = _ratio(float(values.mean()), ending.best - ending.worst)
    si = _ratio(float(values.mean()), float(values.max()))
    return oi, si, _ratio(2 * oi * si, oi + si)


def _ratio(part: float, whole: float) -> float:
    """Divide, NaN unless the denominator is positive."""
    return part / whole if whole > 0 else float("nan")


# fmt: off
BEST_VISIBLE = Score(
    "best_visible", "The largest visible value.", "best visible value",
    better="neither", summary="mean",
)
OPTIMUM = Score(
    "optimum", "The largest value that any valid design has, where it is known.", "optimum",
    better="neither", summary="mean",
)
LANDMARKS = (BEST_VISIBLE, OPTIMUM)  # of the task, the same for all methods of a seed

FINAL_MODEL = Score(
    "final_model",
    "The value at the last iteration of the designs that the method itself ranks first.",
    "final value, ranked by the method", VALUE_MODEL, key="value", summary="full",
    heading="value (sd)", leaderboard="Value, sd", rank=2, contrast="final value",
)
FINAL_ORACLE = Score(
    "final_oracle", "The value at the last iteration of the designs that the oracle ranks first.",
    "final value, ranked by the oracle", VALUE_ORACLE,
    key="oracle_final", heading="by oracle, final",
)
BEST_ORACLE = Score(
    "best_oracle",
    "The value of the designs that the oracle ranks first, at the iteration where it is largest.",
    "best iteration, ranked by the oracle", VALUE_ORACLE,
    lambda ending: ending.curves[VALUE_ORACLE.name].max(),
    key="oracle_best", heading="by oracle, best", contrast="best by oracle",
)
MEDIAN_DESIGN = Score(
    "p50", "The 50th percentile of all designs of the last iteration.", "median design", MEDIAN,
    stored=False, heading="median design", on_page=False,
)
SURVIVORS_FINAL = Score(
    "survivors_final",
    "The mean of the best valid designs at the last iteration that has enough of them.",
    "value of the best valid designs", SURVIVORS, stored=False, summary="", on_page=False,
)
BEST_DESIGN = Score(
    "p100", "The 100th percentile of all designs of the last iteration.", "best design", BEST,
    stored=False, heading="best design", on_page=False,
)
PREDICTED_FINAL = Score(
    "predicted_final",
    "The value that the method predicts for the designs it ranks first, at the last iteration.",
    "final prediction", PREDICTED, better="neither", summary="",
)
REGRET_FINAL = Score(
    "regret_final", "How far the final value, ranked by the method, is below the optimum.",
    "regret", take=lambda ending: (ending.optimum - _last_value(ending)) * ending.regret_scale,
    unit=REGRET, better="lower", key="regret", summary="full", heading="regret",
    leaderboard="Regret", rank=1,
)
INVALID_FINAL = Score(
    "invalid_final", "The share of the designs of the last iteration that are invalid.",
    "invalid designs at the end", INVALID, unit=SHARE, better="lower", key="invalid",
    summary="mean", heading="invalid", leaderboard="Invalid", standings=True,
    contrast="invalid at the end",
)
HELD_OUT_RANK = Score(
    "held_out_rank", "The rank correlation of predictions and values of the hidden rows.",
    "rank correlation on hidden rows", take=lambda ending: ending.held_out.rank,
    unit=CORRELATION, key="hidden_rank", heading="hidden rows, rank",
    leaderboard="Hidden rows, rank", rank=3,
)
HELD_OUT_ERROR = Score(
    "held_out_error", "The root mean square error of the predictions of the hidden rows.",
    "error on hidden rows", take=lambda ending: ending.held_out.error, better="lower",
    key="hidden_error", heading="hidden rows, error", leaderboard="Hidden rows, error, sd",
)
HELD_OUT_TOP = Score(
    "held_out_top", "The mean value of the tenth of the hidden rows that the method ranks first.",
    "value of the hidden rows ranked first", take=lambda ending: ending.held_out.top,
    key="hidden_top", heading="hidden rows, top tenth", leaderboard="Hidden rows, top tenth, sd",
)
_Reported = partial(Score, summary="mean", table="protocol")  # mostly by other benchmarks
TOP_BEST = _Reported(
    "top_p100",
    "The 100th percentile of the last designs that the method ranks first, 128 at full budget.",
    "best of the designs ranked first", take=lambda ending: _percentile(ending.last.values, 100),
    heading="100th percentile (sd)",
)
TOP_HIGH = _Reported(
    "top_p80",
    "The 80th percentile of the last designs that the method ranks first, 128 at full budget.",
    "80th percentile of the designs ranked first",
    take=lambda ending: _percentile(ending.last.values, 80),
    heading="80th percentile (sd)",
)
TOP_MEDIAN = _Reported(
    "top_p50",
    "The 50th percentile of the last designs that the method ranks first, 128 at full budget.",
    "median of the designs ranked first", take=lambda ending: _percentile(ending.last.values, 50),
    heading="50th percentile (sd)",
)
NORMALISED_BEST = _Reported(
    "normalised_p100",
    "The best of the last designs ranked first: 0 is the least value of all data, 1 the largest.",
    "normalised best of the designs ranked first", unit=RATIO, heading="100th, normalised",
    take=lambda ending: _normalise(ending, _percentile(ending.last.values, 100)),
)
NORMALISED_MEDIAN = _Reported(
    "normalised_p50",
    "The median of the last designs ranked first: 0 is the least value of all data, 1 the largest.",
    "normalised median of the designs ranked first", unit=RATIO, heading="50th, normalised",
    take=lambda ending: _normalise(ending, _percentile(ending.last.values, 50)),
)
SHARE_OF_OPTIMUM = _Reported(
    "optimum_share",
    "The final value, ranked by the method, as a share of the optimum: 0 is the visible mean.",
    "share of the optimum", take=lambda ending: _ratio(_last_value(ending), ending.optimum),
    unit=SHARE, heading="of the optimum",
)
SOO_IMPROVEMENT = _Reported(
    "soo_oi",
    "SOO-Bench's OI: mean over iterations by the best visible value, above the worst one.",
    "SOO-Bench OI", take=lambda ending: _soo_bench(ending)[0], unit=RATIO, heading="OI",
)
SOO_STABILITY = _Reported(
    "soo_si",
    "SOO-Bench's SI: mean over iterations by the best one, above the worst visible value.",
    "SOO-Bench SI", take=lambda ending: _soo_bench(ending)[1], unit=RATIO, heading="SI",
)
SOO_BOTH = _Reported(
    "soo_so", "SOO-Bench's SO: the harmonic mean of OI and SI.",
    "SOO-Bench SO", take=lambda ending: _soo_bench(ending)[2], unit=RATIO, heading="SO",
)
ORDER_VISIBLE = _Reported(
    "order_top_decile",
    "AUPCC of the predictions of the best visible tenth: 1 is their order, 0.5 is chance.",
    "order of the best visible tenth (AUPCC)", take=lambda ending: ending.last.order_visible,
    unit=RATIO, heading="order, top tenth",
)
ORDER_DESIGNS = _Reported(
    "order_designs",
    "AUPCC of the predictions of all last designs: 1 is their true order, 0.5 is chance.",
    "order of the designs (AUPCC)", take=lambda ending: ending.last.order,
    unit=RATIO, heading="order, designs",
)
DIVERSITY = _Reported(
    "diversity", "The mean distance between two of the last designs that the method ranks first.",
    "diversity", take=lambda ending: ending.last.spread.diversity,
    unit=DISTANCE, better="neither", heading="diversity",
)
NOVELTY = _Reported(
    "novelty", "The mean distance of the last designs ranked first to the nearest visible one.",
    "novelty", take=lambda ending: ending.last.spread.novelty,
    unit=DISTANCE, better="neither", heading="novelty",
)
OFF_SURFACE = _Reported(
    "off_surface_ratio",
    "How far the last designs ranked first are from the plane of their 40 nearest visible designs, "
    "by the 95 % quantile of the visible designs' own residuals (median): about 1 is usual.",
    "off-surface distance", take=lambda ending: ending.last.spread.off_surface,
    unit=RATIO, better="lower", heading="off surface",
)
BATCH_BEST = _Reported(
    "batch_best", f"The largest true value of a batch: the first {BATCH} different last designs.",
    f"best of {BATCH} designs", take=lambda ending: _percentile(ending.last.batch, 100),
    heading=f"best of {BATCH} (sd)",
)
BATCH_VALUE = _Reported(
    "batch_value", "The mean true value of the designs of a batch.",
    f"mean of {BATCH} designs", take=lambda ending: _mean(ending.last.batch),
    heading=f"mean of {BATCH} (sd)",
)
BATCH_LEAST = _Reported(
    "batch_least_distance", "The least distance between two designs of a batch.",
    f"least distance of {BATCH} designs", take=lambda ending: ending.last.spread.batch_least,
    unit=DISTANCE, better="neither", heading=f"least distance of {BATCH}",
)
BATCH_DISTANCE = _Reported(
    "batch_distance", "The mean distance between two designs of a batch.",
    f"mean distance of {BATCH} designs", take=lambda ending: ending.last.spread.batch_mean,
    unit=DISTANCE, better="neither", heading=f"mean distance of {BATCH}",
)
GRAPH_DENSITY = Score(
    "graph_density", "The share of the pairs of codes that the fitted method's graph joins.",
    "density of the graph", take=lambda ending: ending.density, unit=SHARE, better="neither",
    summary="", on_page=False,
)
SCORES = (
    FINAL_MODEL, FINAL_ORACLE, BEST_ORACLE, SURVIVORS_FINAL, MEDIAN_DESIGN, BEST_DESIGN,
    PREDICTED_FINAL, REGRET_FINAL, INVALID_FINAL, HELD_OUT_RANK, HELD_OUT_ERROR, HELD_OUT_TOP,
    TOP_BEST, TOP_HIGH, TOP_MEDIAN, NORMALISED_BEST, NORMALISED_MEDIAN, SHARE_OF_OPTIMUM,
    SOO_IMPROVEMENT, SOO_STABILITY, SOO_BOTH, ORDER_VISIBLE, ORDER_DESIGNS, DIVERSITY, NOVELTY,
    OFF_SURFACE, BATCH_BEST, BATCH_VALUE, BATCH_LEAST, BATCH_DISTANCE, GRAPH_DENSITY,
)
HEADLINE = FINAL_MODEL  # ranks methods across tasks; a run without it has no score

_Seconds = partial(Score, unit=SECONDS, better="lower", summary="")
SECONDS_FIT = _Seconds(
    "seconds_fit", "Wall-clock time to fit, divided by the seeds of a batch.", "time to fit",
)
SECONDS_PROPOSE = _Seconds(
    "seconds_propose", "Wall-clock time to propose, divided by the seeds of a batch.",
    "time to propose",
)
SECONDS_EVALUATE = _Seconds(
    "seconds_evaluate", "Wall-clock time of the oracle, divided by the seeds of a batch.",
    "time to evaluate", on_page=False,
)
SECONDS_CPU = _Seconds(
    "seconds_cpu", "CPU time to fit and propose, divided by the seeds of a batch.", "CPU time",
)
COSTS = (SECONDS_FIT, SECONDS_PROPOSE, SECONDS_EVALUATE, SECONDS_CPU)  # differ between repeats
# fmt: on


def find_score(name: str) -> Score:
    """Return the score with a name."""
    return next(score for score in (*SCORES, *LANDMARKS, *COSTS) if score.name == name)


def compute_curves(run: Judged) -> dict[str, Values]:
    """Return every curve by its name."""
    return {curve.name: curve.compute(run) for curve in CURVES}


def compute_scores(ending: RunEnd) -> dict[str, float]:
    """Return every stored score by its name."""
    return {score.name: score.compute(ending) for score in SCORES if score.stored}


def curve_names() -> list[str]:
    """Return the names of the curves that every run has."""
    return [curve.name for curve in CURVES]


def stored_names() -> list[str]:
    """Return the names of the numbers that every finished run stores."""
    return [score.name for score in (*LANDMARKS, *SCORES, *COSTS) if score.stored]


def repeatable_names() -> list[str]:
    """Return the names of the stored numbers that are the same, to the bit, in a repeated run."""
    return [score.name for score in (*LANDMARKS, *SCORES) if score.stored]


def predicted_names() -> list[str]:
    """Return the names of the curves and stored scores that are predicted and not measured."""
    curves = [curve.name for curve in CURVES if curve.predicted]
    return curves + [score.name for score in SCORES if score.curve and score.curve.predicted]


def oracle_names() -> list[str]:
    """Return the names of the scores of designs that an oracle chooses."""
    return [score.name for score in SCORES if score.curve is VALUE_ORACLE]


def unstored_curves() -> dict[str, str]:
    """Return the curve of each score that a report takes from the end of a curve."""
    return {score.name: score.curve.name for score in SCORES if score.curve and not score.stored}


def tabled_scores(table: TableName | None = None) -> list[Score]:
    """Return the scores in scores.csv, or those in one of the tables for reading."""
    tabled = [score for score in (*LANDMARKS, *SCORES) if score.summary]
    return [score for score in tabled if table in (None, score.table)]


def meanings(table: TableName) -> list[str]:
    """Return a sentence for each score of a table for reading."""
    return [f"{s.heading}: {s.meaning}" for s in tabled_scores(table) if s.heading]


def leaderboard_scores() -> list[Score]:
    """Return the scores of the leaderboard, those that rank it first."""
    shown = [score for score in tabled_scores() if score.leaderboard]
    return sorted(shown, key=lambda score: score.rank or len(shown) + 1)


def standing_scores() -> list[Score]:
    """Return the scores whose means are in the standings across tasks."""
    return [score for score in tabled_scores() if score.standings]


def contrasted_scores() -> dict[str, str]:
    """Return the heading of each score whose paired differences are tested."""
    return {score.name: score.contrast for score in SCORES if score.contrast}


def claimable_names() -> list[str]:
    """Return the names of the scores that a claim may test."""
    return [score.name for score in SCORES]


def comparable_names() -> list[str]:
    """Return the names of the scores that `ddobench.compare` takes, the headline first."""
    return [score.name for score in SCORES if score.stored and score.better != "neither"]


def page_scores() -> list[Score]:
    """Return the scores that the page shows of a single run."""
    return [score for score in (*SCORES, *LANDMARKS, *COSTS) if score.on_page]


def drawn_curves() -> list[Curve]:
    """Return the curves that the page draws of a single run."""
    return [curve for curve in CURVES if curve.line]
