"""Promises of what a report clears away: its own old files, and nothing else."""

from hashlib import sha256
from pathlib import Path

import pytest

from ddobench.report.output.manifest import clear_stale
from ddobench.store.atomic import write_whole


def test_a_report_clears_away_what_an_earlier_one_left_and_nothing_else(tmp_path: Path) -> None:
    figures, tables = tmp_path / "figures", tmp_path / "tables"
    ours = {figures / "old.svg": b"old", figures / "edited.svg": b"ours", tables / "a.csv": b"a"}
    for path, content in ours.items():
        write_whole(path, content)
    clear_stale(tmp_path, ours)
    (figures / "edited.svg").write_bytes(b"theirs")
    (figures / "notes.svg").write_bytes(b"theirs")
    clear_stale(tmp_path, {tables / "a.csv": b"a"})
    left = {str(path.relative_to(tmp_path)) for path in tmp_path.rglob("*") if path.is_file()}
    assert left == {"figures/edited.svg", "figures/notes.svg", "tables/a.csv", "manifest.json"}


@pytest.mark.parametrize(
    "listed", ["no JSON", "[]", '{"../victim": "%s"}', '{"figures/../victim": "%s"}']
)
def test_a_strange_manifest_deletes_nothing(tmp_path: Path, listed: str) -> None:
    victim, report = tmp_path / "victim", tmp_path / "report"
    victim.write_bytes(b"precious")
    (report / "figures").mkdir(parents=True)
    (report / "victim").write_bytes(b"precious")
    (report / "manifest.json").write_text(listed.replace("%s", sha256(b"precious").hexdigest()))
    clear_stale(report, {})
    assert victim.exists()
    assert (report / "victim").exists()
