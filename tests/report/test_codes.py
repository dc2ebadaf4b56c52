"""Promises of the picture of codes beside designs."""

from pathlib import Path
from typing import Any

import numpy as np

from ddobench.report.figures.codes import codes_beside_designs
from ddobench.report.figures.figure import Absence
from tests.support.drawn import only, overflow
from tests.support.synthetic_runs import Row, climb, curve_of, data_with
from tests.support.synthetic_stores import Details, stored_with


def sample(codes: int = 3, rows: int = 40) -> Details:
    """Return what a run with a latent tells of some designs."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=(rows, 3))
    return {"codes_sample": rng.normal(size=(rows, codes)).tolist(), "designs_sample": x.tolist(),
            "decoded_sample": (x + 0.1).tolist(), "values_sample": x.sum(axis=1).tolist(),
            "active_dimensions": 2, "latent_dimensions": codes, "round_trip_correlation": 0.97,
            "round_trip_valid": 0.9}  # fmt: skip


def encoding(d: int = 3, seed: int = 0, **changes: Any) -> Row:
    """Return a run with a latent."""
    return climb(d=d, seed=seed, **{"task": "toy3d", "latent": "vae"} | changes)


def test_codes_and_designs_are_scattered_in_pairs_and_coloured_by_value(tmp_path: Path) -> None:
    figure = only(codes_beside_designs, stored_with(tmp_path, [(encoding(), sample())]))
    *panels, bar = figure.drawing.axes
    assert [axes.get_xlabel() for axes in panels] == [
        *("observed $x_0$", "observed $x_0$", "observed $x_1$"),
        *("code $z_0$", "code $z_0$", "code $z_1$"),
    ]
    assert "value" in bar.get_ylabel()
    assert list(figure.data) == [
        *(f"{name}_{i}" for name in ("observed", "code", "decoded") for i in range(3)), "y",
    ]  # fmt: skip
    values = panels[0].collections[0].get_array()
    assert values is not None
    assert list(values) == sorted(figure.data["y"])  # the largest on top
    lead = np.asarray(panels[0].get_lines()[0].get_xdata(), float)
    assert len(lead) == 3 * len(figure.data)
    for said in ("2 of 3 codes are active", "90 % of the designs are valid", "0.97", "all coord"):
        assert said in figure.caption
    assert overflow(figure) <= 0


def test_the_smallest_size_and_the_plainest_run_are_chosen(tmp_path: Path) -> None:
    rows = [encoding(d, s) for d in (21, 11) for s in (0, 1)]
    rows += [encoding(11, method_variant="latent=scores", latent="scores")]
    plain = encoding(7, method_variant="latent=identity", latent="identity")
    scaled = (2 * np.array(sample()["designs_sample"]) + 1).tolist()
    told = [(row, sample()) for row in rows] + [(plain, sample() | {"codes_sample": scaled})]
    figure = only(codes_beside_designs, stored_with(tmp_path, told))
    assert figure.name == "codes-toy3d-d11-n100"
    assert "latent: vae" in figure.caption
    assert "seed 0 alone, the first coordinates" in figure.caption


def test_fewer_codes_than_coordinates_have_fewer_panels(tmp_path: Path) -> None:
    for codes in (1, 2):
        stored = stored_with(tmp_path / str(codes), [(encoding(), sample(codes))])
        figure = only(codes_beside_designs, stored)
        shown = [axes for axes in figure.drawing.axes if axes.get_visible()]
        assert len(shown) == 3 + (codes == 2) + 1
        assert overflow(figure) <= 0


def test_only_a_task_that_is_there_to_be_looked_at_is_told_what_is_missing(tmp_path: Path) -> None:
    row = encoding()
    config = {row["digest"]: {"method": {"latent": {"_target_": "a.Latent", "dim": 3}}}}
    (absence,) = codes_beside_designs(stored_with(tmp_path / "toy", [(row, {})], config))
    assert isinstance(absence, Absence)
    assert "task=toy3d d=3" in absence.remedy
    published = {"left_out": ["codes_sample"]}
    (absence,) = codes_beside_designs(stored_with(tmp_path / "copy", [(row, published)], config))
    assert isinstance(absence, Absence)
    assert "published without a sample of their codes" in absence.reason
    config = {encoding(11)["digest"]: config[row["digest"]]}
    large = stored_with(tmp_path / "large", [(encoding(11), {})], config)
    assert list(codes_beside_designs(large)) == []
    plain = {row["digest"]: {"method": {"latent": {"_target_": "a.Latent"}}}}
    assert list(codes_beside_designs(stored_with(tmp_path / "plain", [(row, {})], plain))) == []
    older = data_with([climb()], [curve_of(climb())])
    assert list(codes_beside_designs(older)) == []
