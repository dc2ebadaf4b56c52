"""A check before a model is trusted: hide the best rows, fit to the others, predict the hidden."""

import logging
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ddobench.judging import HeldOut, Reference
from ddobench.progress import stage
from ddobench.proposing.fitted import Codes, Fitted
from ddobench.runner.spec import Specification
from ddobench.tabular.encodings import Encoding
from ddobench.tabular.rows import Values
from ddobench.tabular.tables import split_best

log = logging.getLogger(__name__)

HIDE = 80.0  # percentile of the values above which rows are hidden
FEWEST = 5  # hidden rows that can tell anything


@dataclass(frozen=True)
class Check:
    """How the best rows were predicted by a model that had not seen them."""

    hidden: NDArray[np.bool_]  # (N,)
    predicted: Values  # of the hidden rows, larger being better
    held_out: HeldOut
    chance: float  # mean value of all hidden rows, in standard deviations
    excess: float  # of the predictions over the values, their mean in standard deviations


def check_on_best(
    spec: Specification, encoding: Encoding, codes: Codes, y: Values, seed: int
) -> Check | None:
    """Hide the best rows from the method; None if too few are hidden or it predicts nothing."""
    hidden = split_best(y, HIDE)
    if hidden.sum() < FEWEST or np.ptp(y[~hidden]) == 0:
        return None
    fitted = Fitted(spec, encoding)
    log.info("checking %s: the best %d rows are hidden from it", spec.method, hidden.sum())
    with stage("without the best rows"):
        fitted.fit(codes[~hidden], y[~hidden], [seed])
    predicted = fitted.predict(codes[hidden])
    if predicted is None:
        return None
    reference = Reference.of(y[~hidden], float("nan"))
    return Check(
        hidden=hidden,
        predicted=predicted[0],
        held_out=HeldOut.of(y[hidden], predicted[0], reference),
        chance=float(reference.standardise(y[hidden]).mean()),
        excess=float((predicted[0] - y[hidden]).mean() / reference.sd),
    )
