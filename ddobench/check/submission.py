"""A submission: a folder with a method, its records and a card, examined as a reviewer would.

    submission.yaml   what the method is, and its card
    mine.py           the method, unless it is in an installed package
    records/          its runs, as `evaluate` or a sweep has stored them

One seed of every cell (a task at one size and budget) is run again and compared with its record.
Checking a submission runs its code.
"""

import importlib.util
import platform
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from pkgutil import resolve_name
from typing import Any

import numpy as np
import pandas as pd
import yaml

from ddobench import registry
from ddobench.check.promises import Finding, Promise, Subject
from ddobench.errors import UsageError, read_message
from ddobench.evaluation import respecify
from ddobench.report.tables.select import BY_SIZE, SERIES
from ddobench.runner.build import check_targets
from ddobench.runner.spec import Specification, digest
from ddobench.scores import HEADLINE, INVALID_FINAL
from ddobench.seeds import format_seeds, parse_seeds
from ddobench.store.published import published
from ddobench.store.records import DATA, Record
from ddobench.store.runs import load, read_record
from ddobench.task_view import name_of
from ddobench.variants import split_variant

FILE, RECORDS = "submission.yaml", "records"
FEW = 8  # seeds, as in the published tables
_CARD = {
    "label": "the name of the method in tables",
    "summary": "one line on what it does",
    "fidelity": "faithful or adaptation, of a paper, or own",
    "chosen_on": "the seeds or data on which its settings were chosen, or nothing",
}
_KEYS = ("method", "name", "version", "card")
_SLACK = 0.05  # sd, between machines
Section = tuple[str, list[Finding]]


@dataclass(frozen=True)
class Submission:
    """A folder that was read."""

    folder: Path
    method: Any  # a function, a regressor, or the name of a method
    settings: Mapping[str, Any]  # the file
    runs: pd.DataFrame

    @property
    def card(self) -> Mapping[str, Any]:
        """What the file says about the method."""
        return self.settings.get("card") or {}


def read_submission(folder: Path) -> Submission:
    """Read the file of a submission, import its method, and load its records."""
    if not folder.is_dir():
        raise UsageError(f"--submission needs a folder, got {folder}")
    try:
        settings = yaml.safe_load((folder / FILE).read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        reason = read_message(error).splitlines()[0]
        raise UsageError(f"a submission needs {FILE}, which cannot be read: {reason}") from None
    if not isinstance(settings, dict) or not isinstance(settings.get("method"), str):
        raise UsageError(f"{FILE} must say method: FILE.py:NAME, PACKAGE.MODULE:NAME or NAME")
    unknown = [key for key in settings if key not in _KEYS]
    if unknown:
        raise UsageError(f"{FILE} may have {', '.join(_KEYS)}, got {unknown[0]!r}")
    runs = load(folder / RECORDS) if (folder / RECORDS).is_dir() else pd.DataFrame()
    if runs.empty:
        raise UsageError(f"a submission needs its runs in {RECORDS}, and there are none")
    return Submission(folder, _load_method(folder, settings["method"]), settings, runs)


def _load_method(folder: Path, address: str) -> Any:
    """Return the object that an address names, or the name of a method with a YAML."""
    module, colon, name = address.partition(":")
    if not colon:
        registry.use_config_dir(str(folder))
        return address
    try:
        if not module.endswith(".py"):
            return resolve_name(address)
        spec = importlib.util.spec_from_file_location(Path(module).stem, folder / module)
        if spec is None or spec.loader is None:
            raise ImportError(f"there is no module {module}")
        loaded = importlib.util.module_from_spec(spec)
        sys.modules[loaded.__name__] = loaded  # as if it were imported from its own folder
        sys.path.append(str(folder.resolve()))
        spec.loader.exec_module(loaded)
        return getattr(loaded, name)
    except Exception as error:  # of code that is not ours
        reason = f"{type(error).__name__}: {read_message(error)}"
        raise UsageError(f"the method {address} cannot be imported: {reason}") from error


def examine_submission(given: Submission) -> Iterator[Section]:
    """Check the card, then every cell: one seed of it is run again."""
    yield f"submission {given.folder.resolve().name}", list(_examine_card(given))
    for (*size, method, variant), cell in given.runs.groupby([*BY_SIZE, *SERIES]):
        task, task_variant, n, budget, d = size
        words = [method, f"on {task} d={d} n={n}", task_variant, f"budget={budget}", variant]
        yield " ".join(map(str, filter(None, words))), list(_examine_cell(given, cell))


def _examine_card(given: Submission) -> Iterator[Finding]:
    for key, meaning in _CARD.items():
        promise = _promise(f"the card has {key}", f"write card: {{{key}: ...}}, {meaning}")
        yield _finding(promise, None if given.card.get(key) else f"{FILE} has no {key}")
    failed = int((given.runs["status"] == "failed").sum())
    promise = _promise("no run has failed", "run them again, or say why they cannot be")
    yield _finding(promise, f"{failed} of {len(given.runs)} have" if failed else None)


def _examine_cell(given: Submission, cell: pd.DataFrame) -> Iterator[Finding]:
    """Run the first finished seed again, and compare."""
    again = _promise("a run again has the stored score", "draw from the given rng alone")
    finished = cell[cell["status"] == "ok"]
    if finished.empty:
        yield _finding(again, f"no run has finished: {', '.join(sorted(set(cell['reason'])))}")
        return
    row = finished.iloc[0]
    stored = read_record(given.folder / RECORDS / row["path"])
    try:
        spec = _specify(given, stored)
        (record,) = Subject(spec).run(int(row["seed"]))
    except Exception as error:  # of code that is not ours
        yield _finding(again, f"{type(error).__name__}: {read_message(error)}")
        return
    yield _compare_digests(stored, spec)
    rows = _promise("it sees the rows that its record names", "use the task as it is released")
    known = stored.row.get(DATA)
    yield _finding(rows, None if known == record.row[DATA] else f"{record.row[DATA]}, not {known}")
    yield _finding(again, _compare_scores(record, stored, finished))


def _specify(given: Submission, stored: Record) -> Specification:
    """Return the specification of a record, with the method of the submission."""
    row, config = stored.row, stored.config
    check_targets({"task": config["task"]}, [])
    spec = Specification(
        task=row["task"], method=row["method"], budget=row["budget"], d=row["d"], n=row["n"],
        device="auto", seeds_per_job=None, config=config,
        task_departures=split_variant(row["task_variant"]),
        method_departures=split_variant(row["method_variant"]),
        digest=row["digest"], task_digest=digest({"task": config["task"]}),
    )  # fmt: skip
    if isinstance(given.method, str):
        check_targets(config, [])
        chosen = {"task": spec.task, "method": given.method}
        return replace(spec, digest=digest({**config, "chosen": chosen}))
    title, version = given.settings.get("name"), given.settings.get("version")
    return respecify(spec, given.method, title or name_of(given.method), version)


def _compare_digests(stored: Record, spec: Specification) -> Finding:
    promise = _promise("the records were made by this code", "run them again")
    made = str(stored.provenance.get("python", "")).rpartition(".")[0]
    here = platform.python_version().rpartition(".")[0]
    if spec.digest == stored.row["digest"]:
        return Finding(promise, "kept")
    if made != here:
        return Finding(promise, "not checked", f"they were made with Python {made}, here is {here}")
    return _finding(promise, "its code or its settings have another digest than the records")


def _compare_scores(record: Record, stored: Record, cell: pd.DataFrame) -> str | None:
    """Return how the score differs, None if it is within what seeds and machines differ by."""
    now, then = (_score(one) for one in (record, stored))
    if np.isnan(now) and np.isnan(then):
        return None
    spread = cell[HEADLINE.name].std() if len(cell) > 1 else 0.0
    if record.row["status"] == "ok" and abs(now - then) <= max(_SLACK, spread):
        return None
    return f"{now:.4g} sd in place of {then:.4g} at seed {stored.row['seed']}"


def _score(record: Record) -> float:
    value = record.row.get(HEADLINE.name)
    return float("nan") if value is None else float(value)


def ask(given: Submission) -> list[str]:
    """Return what a reviewer would ask."""
    runs, questions = given.runs, []
    ok = runs[runs["status"] == "ok"]
    seeds = {key: sorted(set(own["seed"])) for key, own in ok.groupby([*BY_SIZE, *SERIES])}
    few = [key for key, own in seeds.items() if len(own) < FEW]
    if few:
        questions.append(
            f"{len(few)} of {len(seeds)} cells have fewer than {FEW} seeds, such as "
            f"{few[0][0]} with {len(seeds[few[0]])}: are the intervals wide?"
        )
    if len({tuple(own) for own in seeds.values()}) > 1:
        questions.append("cells have different seeds: why?")
    known = published()[BY_SIZE].drop_duplicates().assign(published=True)
    beside = ok[BY_SIZE].drop_duplicates().merge(known, on=BY_SIZE, how="left")
    alone = beside[beside["published"].isna()]
    if len(alone):
        first = alone.iloc[0]
        questions.append(
            f"{len(alone)} of {len(beside)} sizes were not published, such as {first['task']} "
            f"d={first['d']} n={first['n']} budget={first['budget']}: what is it compared with?"
        )
    gains = (ok[HEADLINE.name] - ok["best_visible"]).groupby([ok[name] for name in BY_SIZE]).mean()
    below = gains[gains <= 0]
    if len(below):
        questions.append(
            f"on {len(below)} of {len(gains)} sizes it is not above the best visible design, such "
            f"as {below.index[0][0]} ({below.iloc[0]:+.2f} sd): what is it for?"
        )
    invalid = ok[INVALID_FINAL.name].mean()
    if invalid > 0.1:
        questions.append(f"{invalid:.0%} of its designs are invalid: does it know the domain?")
    if "privileges" in ok and (ok["privileges"] != "").any():
        questions.append("it uses more than the visible rows: why is that fair?")
    questions += _ask_card(given, {seed for own in seeds.values() for seed in own})
    cost = ok["seconds_cpu"].mean()
    questions.append(f"it takes {cost:.3g} CPU seconds a seed: is that worth what it gains?")
    return questions


def _ask_card(given: Submission, seeds: set[int]) -> Iterator[str]:
    card = given.card
    if card.get("fidelity") in ("faithful", "adaptation") and not card.get("paper"):
        yield "which paper is it from?"
    if card.get("fidelity") == "adaptation" and not card.get("differs"):
        yield "where does it differ from its paper?"
    chosen = str(card.get("chosen_on", ""))
    try:
        shared = seeds & {*parse_seeds(chosen)}
    except UsageError:  # words, not seeds
        return
    if shared:
        yield (
            f"its settings were chosen on seeds {format_seeds(sorted(shared))}, which are scored "
            "here: what does it do on others?"
        )


def _promise(text: str, remedy: str) -> Promise:
    return Promise(text, remedy, lambda _: None)  # it is checked here


def _finding(promise: Promise, found: str | None) -> Finding:
    return Finding(promise, "kept" if found is None else "broken", found or "")
