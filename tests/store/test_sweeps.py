"""How far a sweep is can be seen from the store, by anyone, while it is under way."""

import json
import os
from pathlib import Path

import pytest

from ddobench.seeds import parse_seeds
from ddobench.store.folding import compact
from ddobench.store.runs import Place, Store
from ddobench.store.sweeps import announce, read_sweeps
from ddobench.watch import describe, main
from tests.support.records import failed_row, record_of

SEEDS = parse_seeds("0-3")


def sweep_files(store: Store) -> list[Path]:
    """Return what sweeps under way have written down."""
    return list((store.folder / ".cache" / "sweeps").iterdir())


def test_runs_are_counted_as_they_are_stored_or_fail_in_either_form(
    store: Store, place: Place
) -> None:
    store.write_failure(place, failed_row(3), "before")
    os.utime(place.error(3), (0, 0))
    with announce(store, "a sweep", [(place, SEEDS)]) as sweep:
        assert (sweep.runs, sweep.count_done(store.folder)) == (4, 0)
        store.write(place, record_of(0))
        store.write(place, record_of(9))  # of another sweep
        assert sweep.count_done(store.folder) == 1
        store.write_failure(place, failed_row(1), "now")
        os.utime(place.error(1), (2e9, 2e9))
        assert sweep.count_done(store.folder) == 2
        compact(store.folder)
        assert sweep.count_done(store.folder) == 2


def test_a_sweep_is_seen_while_it_lasts_and_leaves_nothing(store: Store, place: Place) -> None:
    with announce(store, "a sweep", [(place, SEEDS)]) as sweep:
        assert read_sweeps(store.folder) == [(sweep, True)]
    assert read_sweeps(store.folder) == []
    assert sweep_files(store) == []
    with pytest.raises(KeyboardInterrupt), announce(store, "a sweep", [(place, SEEDS)]):
        raise KeyboardInterrupt
    assert sweep_files(store) == []


def test_a_killed_sweep_is_told_apart_and_cleared_away_by_the_next(
    store: Store, place: Place
) -> None:
    with announce(store, "a sweep", [(place, SEEDS)]):
        (path,) = sweep_files(store)
        text = path.read_text()
    path.write_text(text)  # as if it had been killed
    ((sweep, alive),) = read_sweeps(store.folder)
    assert not alive
    assert describe(sweep, store.folder, alive) == (
        "0 of 4 runs, killed: the same command continues (a sweep)"
    )
    with announce(store, "another", [(place, SEEDS)]) as another:
        assert read_sweeps(store.folder) == [(another, True)]


@pytest.mark.parametrize(
    "text",
    ["", "[]", "{}", '{"command": "x", "began": "a", "runs": 1, "goals": []}',
     json.dumps({"command": "x", "began": 0, "runs": 1,
                 "goals": [{"folder": "../../etc", "seeds": "0-3"}]}),
     json.dumps({"command": "x", "began": 0, "runs": 1,
                 "goals": [{"folder": "a-b", "seeds": "lots"}]})],
)  # fmt: skip
def test_odd_files_of_sweeps_are_left_out(store: Store, text: str) -> None:
    path = store.folder / ".cache" / "sweeps" / "odd.sweep.json"
    path.parent.mkdir(parents=True)
    path.write_text(text)
    assert read_sweeps(store.folder) == []


def test_a_watch_says_how_far_how_fast_and_how_long(
    store: Store, place: Place, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    with announce(store, "a sweep", [(place, SEEDS)]) as sweep:
        store.write(place, record_of(0))
        monkeypatch.setattr("ddobench.watch.time.time", lambda: sweep.began + 120)
        assert main([str(store.folder), "--once"]) == 0
    assert capsys.readouterr().out == "1 of 4 runs, 0.5 a minute, about 6 min left (a sweep)\n"
    assert main([str(store.folder)]) == 0
    assert capsys.readouterr().out == f"no sweep is under way in {store.folder}\n"


def test_a_watch_prints_a_line_whenever_a_sweep_has_got_further_and_ends_with_it(
    store: Store, place: Place, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    announced = announce(store, "a sweep", [(place, SEEDS)])
    announced.__enter__()
    steps = iter(range(4))

    def sleep(_: float) -> None:
        step = next(steps)
        if step == 1:
            store.write(place, record_of(0))
        elif step == 3:
            announced.__exit__(None, None, None)

    monkeypatch.setattr("ddobench.watch.time.sleep", sleep)
    assert main([str(store.folder)]) == 0
    first, second, last = capsys.readouterr().out.splitlines()
    assert first == "0 of 4 runs (a sweep)"
    assert second.startswith("1 of 4 runs, ")
    assert last == f"no sweep is under way in {store.folder} any more"


def test_a_watch_of_nothing_is_answered_in_one_sentence(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit, match="2"):
        main(["nowhere"])
    said = "ddobench: there is no folder nowhere; give one that runs are stored in\n"
    assert capsys.readouterr().err == said
