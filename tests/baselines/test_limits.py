"""Promises about designs of more codes than a method can take on."""

import pytest

from ddobench.baselines.cma import CMA
from ddobench.contracts import Space
from tests.support.catalogue import refusal


def test_attention_between_many_codes_is_declined() -> None:
    reason = refusal("ehrlich", "cliqueformer")  # 16 letters of 32 states
    assert reason == "attention between 496 codes takes too long; it has at most 256"


@pytest.mark.parametrize(("codes", "declined"), [(500, False), (501, True)])
def test_covariances_of_many_codes_are_declined(codes: int, declined: bool) -> None:
    reason = CMA().declines(Space(codes))
    assert (reason is not None and "at most 500 codes" in reason) == declined
