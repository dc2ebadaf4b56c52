"""Promises of factorials of parts: found, completed, analysed and described."""

from itertools import product
from typing import Any

import pytest

from ddobench.report.data import ReportData
from ddobench.report.tables.factorial import (
    combination_table,
    describe_levels,
    describe_shares,
    level_table,
    share_table,
)
from tests.support.synthetic_runs import Row, climb, data_of

LATENTS = {"identity": 0.0, "stitched": 2.0}
SEARCHES = {"ascent": -1.0, "cautious": 3.0, "top_adam": 1.0}
USUAL = {"latent": "identity", "search": "ascent"}


def combined(latent: str, search: str, seed: int, **changes: Any) -> Row:
    """Return a run whose value is the sum of what its parts and its seed are worth."""
    parts = {"latent": latent, "search": search}
    variant = " ".join(f"{name}={x}" for name, x in parts.items() if x != USUAL[name])
    value = 4.0 + LATENTS.get(latent, 0.0) + SEARCHES[search] + 0.5 * seed
    row = climb("ga", seed=seed, **{"method_variant": variant, "final_model": value, **changes})
    return row | {"axes": "identity", "graph": "complete", "surrogate": "mlp", **parts}


def factorial(seeds: int = 3) -> list[Row]:
    """Return every combination of two latents and three searches."""
    return [combined(*place) for place in product(LATENTS, SEARCHES, range(seeds))]


def shares_of(stored: ReportData) -> dict[str, float]:
    """Return the share of each source."""
    table = share_table(stored.factorials)
    return dict(zip(table["source"], table["share"], strict=True))


def test_additive_effects_of_parts_and_seeds_explain_all_variance() -> None:
    # sums of squares: latents 18 x 1, searches 6 x (4 + 4 + 0), seeds 6 x (.25 + .25)
    shares = shares_of(data_of(factorial()))
    assert list(shares) == ["latent", "search", "latent \u00d7 search", "seed", "rest"]
    assert list(shares.values()) == pytest.approx([18 / 69, 48 / 69, 0.0, 3 / 69, 0.0], abs=1e-12)


def test_levels_have_their_mean_gain_over_the_best_visible_design() -> None:
    table = level_table(data_of(factorial()).factorials).set_index("level")
    assert table.loc["stitched", "mean"] == pytest.approx(2.0 + 1.0 + 0.5)  # best visible is 4
    assert table.loc["ascent", "value"] == pytest.approx(4.0 - 1.0 + 1.0 + 0.5)
    assert set(table["part"]) == {"latent", "search"}  # the surrogate does not vary


def test_under_noise_gains_are_over_the_true_value_of_the_best_visible_design() -> None:
    noisy = [row | {"best_visible": 6.0} for row in factorial()]
    naive = [climb("naive", seed=seed, best_visible=6.0, final_model=4.0) for seed in range(3)]
    (found,) = data_of([*noisy, *naive]).factorials
    assert found.best_visible.tolist() == [4.0] * 3
    assert found.gains.mean() == pytest.approx(2.5)
    (alone,) = data_of(noisy).factorials
    assert alone.gains.mean() == pytest.approx(0.5)


def test_a_level_that_lacks_runs_is_left_out_and_lost_runs_are_counted() -> None:
    rows = [*factorial(), combined("vae", "ascent", 0)]
    rows += [combined("vae", "cautious", seed, status="declined", reason="no") for seed in range(3)]
    (found,) = data_of(rows).factorials
    assert dict(found.levels) == {"latent": ("identity", "stitched"), "search": tuple(SEARCHES)}
    assert dict(found.lost) == {"declined": 3, "failed": 0, "missing": 2, "unscored": 0}
    (group,) = describe_shares([found]).groups
    assert "18 runs, 3 declined, 2 missing" in group.note


def test_a_seed_that_most_combinations_lack_is_left_out() -> None:
    (found,) = data_of([*factorial(2), combined("identity", "ascent", 2)]).factorials
    assert found.seeds == (0, 1)
    assert found.scores.shape == (2, 3, 2)


@pytest.mark.parametrize(
    "rows",
    [
        [combined("identity", search, seed) for search in SEARCHES for seed in range(3)],
        [combined(*place, 0) for place in product(LATENTS, SEARCHES)],
        [combined("identity", "ascent", 0), combined("stitched", "cautious", 1)],
        [climb("ga", seed=seed) for seed in range(3)],
    ],
    ids=["one part", "one seed", "no combination twice", "no parts"],
)
def test_a_factorial_needs_two_parts_and_two_seeds(rows: list[Row]) -> None:
    found = data_of(rows).factorials
    assert found == []
    assert describe_shares(found).groups == describe_levels(found).groups == []


def test_runs_that_change_more_than_parts_are_left_out() -> None:
    odd = [combined(*place, method_variant="search.prior=0.1", final_model=99.0)
           for place in product(LATENTS, SEARCHES, range(3))]  # fmt: skip
    for place, row in enumerate(odd):
        row["digest"] = f"odd-{place // 3}"
    assert shares_of(data_of([*factorial(), *odd])) == shares_of(data_of(factorial()))


def test_sizes_and_budgets_are_separate_factorials() -> None:
    other = [row | {"n": 200, "digest": f"{row['digest']}-200"} for row in factorial()]
    tiny = [row | {"budget": "tiny", "digest": f"{row['digest']}-tiny"} for row in factorial()]
    stored = data_of([*factorial(), *other, *tiny])
    assert [group.title for group in describe_shares(stored.factorials).groups] == [
        "chain, n = 100, d = 11: parts of ga",
        "chain, n = 100, d = 11, budget tiny: parts of ga",
        "chain, n = 200, d = 11: parts of ga",
    ]


def test_equal_values_have_no_shares() -> None:
    rows = [row | {"final_model": 4.0} for row in factorial()]
    assert share_table(data_of(rows).factorials)["share"].isna().all()


def test_combinations_are_named_by_their_parts() -> None:
    table = combination_table(data_of(factorial()).factorials)
    best = table.sort_values("gain").iloc[-1]
    assert best["combination"] == "latent=stitched search=cautious"
    assert (best["gain"], len(table)) == (5.5, 6)


def test_a_factorial_with_privileged_runs_is_marked() -> None:
    (group,) = describe_shares(data_of(factorial()).factorials).groups
    assert "Some runs use" not in group.note
    rows = [row | {"privileges": "hidden" if row["latent"] == "stitched" else ""}
            for row in factorial()]  # fmt: skip
    (group,) = describe_levels(data_of(rows).factorials).groups
    assert group.note.endswith("18 runs. Some runs use: hidden.")
