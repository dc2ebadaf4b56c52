"""Promises of what is told of crosses of parts: found, completed, analysed, tabled and drawn."""

from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from matplotlib.patches import Rectangle

from ddobench.report.data.report_data import ReportData
from ddobench.report.figures import gallery
from ddobench.report.figures.crosses import variance_by_part
from ddobench.report.output.writer import write_report
from ddobench.report.tables.crosses import (
    combination_table,
    cross_markdown,
    find_crosses,
    level_table,
    share_table,
)
from tests.support.drawn import only, overflow
from tests.support.pages import open_page
from tests.support.synthetic_runs import Row, climb, evidence_of
from tests.support.synthetic_stores import stored_with

LATENTS = {"identity": 0.0, "stitched": 2.0}
SEARCHES = {"ascent": -1.0, "cautious": 3.0, "top_adam": 1.0}
USUAL = {"latent": "identity", "search": "ascent"}


def crossed(latent: str, search: str, seed: int, **changes: Any) -> Row:
    """Return a run whose value is the sum of what its parts and its seed are worth."""
    parts = {"latent": latent, "search": search}
    variant = " ".join(f"{name}={x}" for name, x in parts.items() if x != USUAL[name])
    value = 4.0 + LATENTS.get(latent, 0.0) + SEARCHES[search] + 0.5 * seed
    row = climb("ga", seed=seed, **{"method_variant": variant, "final_model": value, **changes})
    return row | {"axes": "identity", "graph": "complete", "surrogate": "mlp", **parts}


def cross(seeds: int = 3) -> list[Row]:
    return [crossed(*place) for place in product(LATENTS, SEARCHES, range(seeds))]


def shares_of(stored: ReportData) -> dict[str, float]:
    table = share_table(stored.crosses)
    return dict(zip(table["source"], table["share"], strict=True))


def test_what_parts_and_seeds_add_is_found_and_nothing_is_left() -> None:
    # sums of squares: latents 18 x 1, searches 6 x (4 + 4 + 0), seeds 6 x (.25 + .25)
    shares = shares_of(evidence_of(cross()))
    assert list(shares) == ["latent", "search", "latent \u00d7 search", "seed", "rest"]
    assert list(shares.values()) == pytest.approx([18 / 69, 48 / 69, 0.0, 3 / 69, 0.0], abs=1e-12)


def test_levels_have_their_mean_gain_over_doing_nothing() -> None:
    table = level_table(find_crosses(evidence_of(cross()).runs)).set_index("level")
    assert table.loc["stitched", "mean"] == pytest.approx(2.0 + 1.0 + 0.5)  # best visible is 4
    assert table.loc["ascent", "value"] == pytest.approx(4.0 - 1.0 + 1.0 + 0.5)
    assert set(table["part"]) == {"latent", "search"}  # nobody exchanged the surrogate


def test_a_level_that_lacks_runs_is_left_out_and_what_was_lost_is_counted() -> None:
    rows = [*cross(), crossed("vae", "ascent", 0)]
    rows += [crossed("vae", "cautious", seed, status="declined", reason="no") for seed in range(3)]
    (found,) = find_crosses(evidence_of(rows).runs)
    assert dict(found.levels) == {"latent": ("identity", "stitched"), "search": tuple(SEARCHES)}
    assert dict(found.lost) == {"declined": 3, "failed": 0, "missing": 2, "unscored": 0}
    assert "18 runs, 3 declined, 2 missing" in cross_markdown([found])


def test_a_seed_that_most_combinations_lack_is_left_out_and_no_level_is() -> None:
    rows = [*cross(2), crossed("identity", "ascent", 2)]
    (found,) = find_crosses(evidence_of(rows).runs)
    assert found.seeds == (0, 1)
    assert found.scores.shape == (2, 3, 2)


@pytest.mark.parametrize(
    "rows",
    [
        [crossed("identity", search, seed) for search in SEARCHES for seed in range(3)],
        [crossed(*place, 0) for place in product(LATENTS, SEARCHES)],
        [crossed("identity", "ascent", 0), crossed("stitched", "cautious", 1)],
        [climb("ga", seed=seed) for seed in range(3)],
    ],
    ids=["one part", "one seed", "no combination twice", "no parts"],
)
def test_less_than_two_parts_and_two_seeds_is_no_cross(rows: list[Row]) -> None:
    stored = evidence_of(rows)
    assert stored.crosses == []
    assert list(variance_by_part(stored)) == []
    assert share_table([]).empty
    assert level_table([]).empty


def test_runs_with_another_setting_than_a_part_are_no_level() -> None:
    odd = [crossed(*place, method_variant="search.prior=0.1", final_model=99.0)
           for place in product(LATENTS, SEARCHES, range(3))]  # fmt: skip
    for place, row in enumerate(odd):
        row["digest"] = f"odd-{place // 3}"
    assert shares_of(evidence_of([*cross(), *odd])) == shares_of(evidence_of(cross()))


def test_cells_budgets_and_methods_are_crosses_of_their_own() -> None:
    other = [row | {"n": 200, "digest": f"{row['digest']}-200"} for row in cross()]
    tiny = [row | {"budget": "tiny", "digest": f"{row['digest']}-tiny"} for row in cross()]
    stored = evidence_of([*cross(), *other, *tiny])
    assert len(stored.crosses) == 3
    assert [figure.title for figure in variance_by_part(stored)] == [
        "Which part earns the gain: the parts of ga",
        "Which part earns the gain: the parts of ga, budget tiny",
    ]


def test_the_figure_has_a_bar_of_shares_and_a_dot_per_combination_beside_doing_nothing() -> None:
    figure = only(variance_by_part, evidence_of(cross()))
    left, right = figure.drawing.axes
    widths = [patch.get_width() for patch in left.patches if isinstance(patch, Rectangle)]
    assert sum(widths) == pytest.approx(100)
    assert max(widths) == pytest.approx(100 * 48 / 69)
    dots = [line for line in right.get_lines() if line.get_marker() == "o"]
    assert sorted(np.asarray(dots[0].get_xdata(), float)) == pytest.approx(
        [-0.5, 1.5, 1.5, 3.5, 3.5, 5.5]
    )
    assert "stitched, cautious" in [text.get_text() for text in right.texts]
    assert "doing nothing" in [text.get_text() for text in right.texts]
    assert overflow(figure) <= 0
    assert not figure.task  # it is about several


def test_equal_values_can_be_drawn() -> None:
    rows = [row | {"final_model": 4.0} for row in cross()]
    figure = only(variance_by_part, evidence_of(rows))
    assert figure.data["share"].isna().all()
    low, high = figure.drawing.axes[1].get_xlim()
    assert high > low


def test_combinations_are_named_by_their_parts() -> None:
    table = combination_table(evidence_of(cross()).crosses)
    best = table.sort_values("gain").iloc[-1]
    assert best["combination"] == "latent=stitched search=cautious"
    assert len(table) == 6


def test_a_cross_says_if_some_of_its_runs_were_told_more_than_the_table() -> None:
    assert "know more" not in cross_markdown(evidence_of(cross()).crosses)
    rows = [row | {"privileges": "hidden" if row["latent"] == "stitched" else ""}
            for row in cross()]  # fmt: skip
    assert "18 runs. Some of them know more: hidden." in cross_markdown(evidence_of(rows).crosses)


@pytest.mark.slow
def test_the_page_links_the_table_where_its_figure_stands(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(gallery, "FIGURES", {variance_by_part: False})
    stored_with(tmp_path / "runs", [(row, {}) for row in cross(2)])
    written = write_report(tmp_path / "runs", tmp_path / "report", formats="svg")
    links = [attributes.get("href") for _, attributes in open_page(written.page).tags]
    assert "tables/cross.md" in links
    assert (tmp_path / "report" / "tables" / "cross.md").is_file()
