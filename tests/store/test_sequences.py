"""Any sequence of writes, kills, damage and reads leaves a store that is right about itself."""

import contextlib
import os
import shutil
import tempfile
from pathlib import Path

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from ddobench.store.parquet import SCHEMA, open_runs
from ddobench.store.runs import Store, load, load_curves, read_record
from tests.support.killed import Killed, Mortal
from tests.support.records import (
    change_run,
    failed_row,
    flip_bit,
    record_of,
    same_record,
)

SEEDS = range(4)
seeds = st.sampled_from(SEEDS)


class Sequences(RuleBasedStateMachine):
    """A store beside what should be in it."""

    def __init__(self) -> None:
        super().__init__()
        self.root = Path(tempfile.mkdtemp())
        self.store = Store(self.root / "runs")
        self.place = self.store.place("toy", "mine", 3, 10, "abc")
        self.finals: dict[int, float] = {}  # of the sound records, by seed
        self.damaged: set[int] = set()
        self.failed: set[int] = set()
        self.newer: set[int] = set()
        self.written = 0

    def teardown(self) -> None:
        """Remove the store."""
        shutil.rmtree(self.root)

    @rule(seed=seeds)
    def write(self, seed: int) -> None:
        """Store a run."""
        self.written += 1
        self.store.write(self.place, record_of(seed, final_model=float(self.written)))
        if seed not in self.newer:
            self._stored(seed, self.written)
        self.failed.discard(seed)

    @rule(seed=seeds, calls=st.integers(0, 8))
    def kill(self, seed: int, calls: int) -> None:
        """Kill a writer after so many calls to the system."""
        self.written += 1
        record = record_of(seed, final_model=float(self.written))
        before = self._inode(seed)
        with pytest.MonkeyPatch.context() as patch:
            system = Mortal(calls, patch)
            with contextlib.suppress(Killed):
                self.store.write(self.place, record)
            system.close_files()
        if self._inode(seed) != before:
            self._stored(seed, self.written)
        if not self.place.error(seed).exists():
            self.failed.discard(seed)

    def _inode(self, seed: int) -> int:
        path = self.place.file(seed)
        return path.stat().st_ino if path.exists() else 0

    def _stored(self, seed: int, final: int) -> None:
        self.finals[seed] = final
        self.damaged.discard(seed)

    @rule(seed=seeds)
    def fail(self, seed: int) -> None:
        """Leave the error of a run."""
        self.store.write_failure(self.place, failed_row(seed), "")
        self.failed.add(seed)

    @precondition(lambda self: self.finals)
    @rule(data=st.data())
    def damage(self, data: st.DataObject) -> None:
        """Turn a bit somewhere, or cut a file short."""
        seed = data.draw(st.sampled_from(sorted(self.finals)))
        path = self.place.file(seed)
        size = path.stat().st_size
        if data.draw(st.booleans()):
            with open_runs(path) as file:
                chunk = file.parquet.metadata.row_group(0).column(data.draw(st.integers(0, 3)))
            end = chunk.data_page_offset + chunk.total_compressed_size
            flip_bit(path, 8 * end - data.draw(st.integers(1, 80)))  # in its page, not the header
        else:
            os.truncate(path, data.draw(st.integers(0, size - 1)))
        del self.finals[seed]
        self.damaged.add(seed)

    @precondition(lambda self: self.finals)
    @rule(data=st.data())
    def update(self, data: st.DataObject) -> None:
        """Let a later version write over a run."""
        seed = data.draw(st.sampled_from(sorted(self.finals)))
        change_run(self.place.file(seed), schema=SCHEMA + 1)
        del self.finals[seed]
        self.newer.add(seed)

    @precondition(lambda self: self.finals)
    @rule(data=st.data())
    def remove(self, data: st.DataObject) -> None:
        """Let someone remove a run."""
        seed = data.draw(st.sampled_from(sorted(self.finals)))
        self.place.file(seed).unlink()
        del self.finals[seed]

    @invariant()
    def tells_what_is_missing(self) -> None:
        """The resume check knows what is whole, in any order of looking; nothing is left over."""
        absent = [seed for seed in SEEDS if seed not in self.finals and seed not in self.newer]
        for store in (self.store, Store(self.store.folder)):
            assert store.missing(self.place, SEEDS) == absent
        assert not list(self.root.rglob("*.tmp"))

    @rule()
    def read(self) -> None:
        """Everything that is whole comes back, and nothing else."""
        runs = load(self.store.folder).set_index("seed")
        sound = runs[runs["status"] == "ok"]
        assert sound["final_model"].to_dict().items() >= self.finals.items()
        assert set(sound.index) - set(self.finals) <= self.damaged, "of which the row may be sound"
        assert set(runs.index) - set(sound.index) == self.failed - set(sound.index)
        assert set(load_curves(self.store.folder)["seed"]) >= set(self.finals)
        for seed, final in self.finals.items():
            expected = record_of(seed, final_model=float(final))
            assert same_record(read_record(self.place.file(seed)), expected)


def test_a_store_is_right_about_itself_after_any_sequence(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "fsync", lambda _: None)  # it takes long, and the power stays on
    run_state_machine_as_test(Sequences, settings=settings(max_examples=30, stateful_step_count=15))
