"""A submission is examined as a reviewer would: its card, one seed of each cell, and questions."""

import shutil
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

import ddobench
from ddobench import registry
from ddobench.check.__main__ import main

MODEL = """
from my_helper import bend

class Bowl:
    def fit(self, x, y):
        self.mean = y.mean()

    def predict(self, x):
        return self.mean + bend(x)

model = Bowl()
"""
EXAMPLE = Path(__file__).parent.parent.parent / "examples" / "submission"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Return a copy of the example; what it imports is forgotten afterwards."""
    monkeypatch.setattr(sys, "path", [*sys.path])
    yield Path(shutil.copytree(EXAMPLE, tmp_path / "mine"))
    for name in ("shrink", "my_model", "my_helper"):
        sys.modules.pop(name, None)


def change(folder: Path, **settings: object) -> None:
    """Change the file of a submission; None leaves a key out."""
    file = folder / "submission.yaml"
    changed = yaml.safe_load(file.read_text()) | settings
    file.write_text(yaml.safe_dump({k: v for k, v in changed.items() if v is not None}))


def check(folder: Path, capsys: pytest.CaptureFixture[str], *options: str) -> tuple[int, str]:
    """Return the exit code and what is printed."""
    code = main(["--submission", str(folder), *options])
    return code, capsys.readouterr().out


def test_the_example_keeps_its_promises(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, printed = check(folder, capsys, "--all")
    assert code == 0, printed
    assert printed.count("a run again has the stored score") == 2
    assert "a reviewer would ask:\n  - on 1 of 2 sizes it is not above the best" in printed


def test_another_function_is_found_out(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    source = folder / "shrink.py"
    source.write_text(source.read_text().replace("0.25", "2.5"))
    code, printed = check(folder, capsys)
    assert code == 1
    assert "broken: a run again has the stored score; found: " in printed
    assert "on chain d=11 n=2000" in printed


def test_a_regressor_and_its_helpers_can_be_submitted(
    folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    shutil.rmtree(folder / "records")
    (folder / "my_helper.py").write_text("def bend(x):\n    return -(x**2).sum(axis=1)\n")
    (folder / "my_model.py").write_text(MODEL)
    monkeypatch.syspath_prepend(folder)
    from my_model import Bowl  # type: ignore[import-not-found]

    size: dict[str, Any] = {"task": "rbf", "d": 5, "n": 40, "budget": "tiny"}
    ddobench.evaluate(Bowl(), results_dir=folder / "records", **size)
    change(folder, method="my_model.py:model")
    code, printed = check(folder, capsys)
    assert code == 0, printed
    assert "Bowl on rbf d=5 n=40 budget=tiny: 3 kept" in printed


def test_what_a_card_lacks_is_listed(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    card = {"label": "Mine", "summary": "s", "fidelity": "adaptation", "chosen_on": "5-20"}
    change(folder, card=card)
    code, printed = check(folder, capsys)
    assert code == 0
    assert "which paper is it from?" in printed
    assert "where does it differ from its paper?" in printed
    assert "its settings were chosen on seeds 5-7, which are scored here" in printed
    change(folder, card={"label": "Mine"})
    code, printed = check(folder, capsys)
    assert code == 1
    assert "broken: the card has chosen_on; found: submission.yaml has no chosen_on" in printed


def test_a_method_with_a_yaml_can_be_submitted(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(registry, "use_config_dir", lambda _: None)
    ddobench.run("naive", "rbf", d=5, n=40, budget="tiny", results_dir=tmp_path / "records")
    change_to = {"method": "naive", "card": {"label": "N", "summary": "s", "fidelity": "own",
                                             "chosen_on": "nothing"}}  # fmt: skip
    (tmp_path / "submission.yaml").write_text(yaml.safe_dump(change_to))
    code, printed = check(tmp_path, capsys)
    assert code == 0, printed
    assert "1 of 1 cells have fewer than 8 seeds, such as rbf with 1" in printed
    assert "1 of 1 sizes were not published, such as rbf d=5 n=40 budget=tiny" in printed


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        ({"method": None}, "submission.yaml must say method: FILE.py:NAME"),
        ({"method": "nowhere.py:f"}, "the method nowhere.py:f cannot be imported: FileNotFound"),
        ({"method": "shrink.py:f"}, "the method shrink.py:f cannot be imported: AttributeError"),
        ({"metod": 3}, "submission.yaml may have method, name, version, card, got 'metod'"),
    ],
)
def test_a_folder_that_cannot_be_read_gets_one_sentence(
    settings: dict[str, object], sentence: str, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    change(folder, **settings)
    with pytest.raises(SystemExit, match="2"):
        check(folder, capsys)
    assert sentence in capsys.readouterr().err


def test_a_folder_without_records_or_file_gets_one_sentence(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    shutil.rmtree(folder / "records")
    for sentence in (
        "a submission needs its runs in records",
        "a submission needs submission.yaml",
    ):
        with pytest.raises(SystemExit, match="2"):
            check(folder, capsys)
        assert sentence in capsys.readouterr().err
        (folder / "submission.yaml").unlink(missing_ok=True)
    with pytest.raises(SystemExit, match="2"):
        main(["--submission"])
    assert "write --submission FOLDER" in capsys.readouterr().err
