"""Runs command lines in this process and checks what they did.

The checks read the words of a line by themselves: nothing here asks the code under test what a word
means. Only the work inside a run is replaced.
"""

import contextlib
import fnmatch
import io
import logging
import os
import re
import sys
import tempfile
import traceback
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from unittest import mock

import yaml

import ddobench.conf
from ddobench.cli import main as cli
from ddobench.runner import batches
from ddobench.runner.spec import Specification
from ddobench.store.records import Record, TaskSample

CONF = Path(next(iter(ddobench.conf.__path__)))
GROUPS = ("task", "method", "budget", "latent", "axes", "graph", "surrogate", "search")
KEYS = (*GROUPS, "experiment", "d", "n", "seed", "results_dir", "device", "seeds_per_job", "plan",
        "many", "memory_gb", "allow_code", "timeout", "isolate", "select", "training")  # fmt: skip
PARAMETERS = (
    "task.noise=0.5", "task.signs=random", "method.ridge=0.5", "search.steps=2", "latent.width=8",
    "surrogate.width=8", "graph.alpha=0.1", "budget.designs=4", "budget.top=2", "search.rate=1e-3",
    "+method.foo=1", "+task.foo=1", "+method._partial_=true", "+method._args_=[1]", "method.foo=1",
    "method.card=hello", "task.card=null", "method.card.label=3", "method.latent=null",
    "method._target_=logging.FileHandler", "task._target_=os.system", "method._target_=3",
    "+foo=1", "++bar=2", "foo=1", "~d", "~method", "~task.noise", "method@x=naive", "task@:x=chain",
    "task.d=3", "task=quadratic,rbf", "allow_code=[logging]", "allow_code=logging", "allow_code=3",
)  # fmt: skip
DEFAULTS = {"task": "quadratic", "method": "fgm", "budget": "full", "seed": "0"}
MOST_RUNS = 60  # then the line is interrupted
SHOWS = ("--cfg", "-c", "--info", "-i", "--help", "-h", "--version", "--hydra-help", "-sc",
         "--shell-completion")  # fmt: skip


def options_of(group: str) -> list[str]:
    """List the options of a group that ship."""
    return sorted(path.stem for path in (CONF / group).glob("*.yaml"))


@dataclass
class Attempt:
    """The outcome of a command line."""

    words: list[str]
    code: int = 0
    out: str = ""
    err: str = ""
    crash: str = ""
    ran: list[tuple[Specification, list[int]]] = field(default_factory=list)
    files: list[str] = field(default_factory=list)  # from the working folder


def attempt(words: Sequence[str]) -> Attempt:
    """Run a command line in an empty folder, with a home folder of its own, and tidy up."""
    tried = Attempt(list(words))
    with tempfile.TemporaryDirectory() as sandbox, _elsewhere(Path(sandbox)):
        out, err = io.StringIO(), io.StringIO()
        with (
            contextlib.redirect_stdout(out),
            contextlib.redirect_stderr(err),
            mock.patch.object(sys, "argv", ["ddobench", *words]),
            mock.patch.object(batches, "run_seeds", _recording(tried)),
            mock.patch.object(batches, "sample_task", _sample_task),
        ):
            try:
                cli.main()
            except SystemExit as end:
                tried.code = end.code if isinstance(end.code, int) else int(end.code is not None)
            except BaseException:
                tried.crash = traceback.format_exc()
        tried.out, tried.err = out.getvalue(), err.getvalue()
        tried.files = [
            os.path.relpath(Path(folder, name), Path(sandbox, "work"))
            for folder, _, names in os.walk(sandbox)
            for name in names
        ]
    return tried


@contextlib.contextmanager
def _elsewhere(sandbox: Path) -> Iterator[None]:
    """Work in an empty folder, and leave this process as it was."""
    (sandbox / "work").mkdir()
    before, path, modules = Path.cwd(), [*sys.path], {*sys.modules}
    root = logging.getLogger()  # to which --info of Hydra adds a handler for every word
    level, handlers = root.level, [*root.handlers]
    with mock.patch.dict(os.environ, {"HOME": str(sandbox / "home")}):
        for name in ("DDOBENCH_CONFIG_DIR", "HYDRA_FULL_ERROR"):
            os.environ.pop(name, None)
        os.chdir(sandbox / "work")
        try:
            yield
        finally:
            os.chdir(before)
            root.setLevel(level)
            root.handlers[:] = handlers
            sys.path[:] = path
            for name in {*sys.modules} - modules:
                if name.startswith("fuzz_"):
                    del sys.modules[name]


def _recording(tried: Attempt) -> Any:
    def run_seeds(
        spec: Specification, _: object, __: object, seeds: Sequence[int], base: dict[str, Any],
        *___: object,
    ) -> list[Record]:  # fmt: skip
        tried.ran.append((spec, [*seeds]))
        if sum(len(seeds) for _, seeds in tried.ran) > MOST_RUNS:
            raise KeyboardInterrupt
        outcome = {"status": "declined", "reason": "only looked at"}
        return [Record(row={**base, **outcome, "seed": seed}, config=spec.config) for seed in seeds]

    return run_seeds


def _sample_task(spec: Specification, *_: object) -> TaskSample:
    return TaskSample(spec.task, "", spec.d, spec.n, 0, "", "", "", None, [], None, [])


def judge(tried: Attempt) -> list[str]:
    """Return what is wrong with the outcome of a command line, nothing if all is well."""
    if tried.crash or "Traceback" in tried.out + tried.err:
        return [f"a traceback: {(tried.crash or tried.err).strip().splitlines()[-1]}"]
    checks = (_judge_words, _judge_files, _judge_runs, _judge_settings)
    return [complaint for check in checks for complaint in check(tried)]


def _judge_words(tried: Attempt) -> Iterator[str]:
    if tried.code not in (0, 1, 2, 130):
        yield f"exit code {tried.code}"
    lines = tried.err.splitlines()
    if tried.code == 2 and (len(lines) != 1 or not lines[0].startswith("ddobench: ")):
        yield f"not one sentence: {tried.err!r}"
    if "Exception" in tried.err and "Exception" not in " ".join(tried.words):
        yield f"a class name of the inside: {tried.err!r}"


def _judge_files(tried: Attempt) -> Iterator[str]:
    folder = _plain(_typed(tried.words).get("results_dir", "results/runs"))
    folder = os.path.normpath(folder.replace("~", "../home", 1) if folder[:1] == "~" else folder)
    for file in tried.files:
        if not file.startswith(f"{folder}/") and folder != ".":
            yield f"a file outside {folder}: {file}"


def _judge_runs(tried: Attempt) -> Iterator[str]:
    if not tried.ran:
        return
    typed = _typed(tried.words)
    if tried.code == 2:
        yield "something ran before the error"
    if typed.get("plan") == "true" or any(word in SHOWS for word in tried.words):
        yield "something ran though nothing should"
    if not {"-m", "--multirun"} & {*tried.words} and "experiment" not in typed:
        digests = {spec.digest for spec, _ in tried.ran}
        if len(digests) > 1:
            yield "more than one point without -m"
    for key in typed:
        if key.split(".")[0] not in KEYS and not key.startswith(
            ("hydra/launcher", "hydra.job.env")
        ):
            yield f"something ran though {key} is no key"
    for spec, seeds in tried.ran:
        for key, found in _found(spec, seeds).items():
            wanted = (
                typed.get(key) if key in typed or "experiment" in typed else _default(spec, key)
            )
            values = None if wanted is None else _expand(key, wanted)
            if values is not None and not found <= values:
                yield f"{key}={wanted} was asked for, {key}={sorted(found)} ran"


def _judge_settings(tried: Attempt) -> Iterator[str]:
    """Look for each setting of a method, a task or a part in what ran."""
    dotted = {key: value for key, value in _typed(tried.words).items() if "." in key}
    for key, value in dotted.items() if tried.ran else ():
        values = _expand(key, value)
        if key.startswith(("hydra.", "select.")) or values is None or "None" in values:
            continue
        found = {*filter(None, (_look_up(spec, key) for spec, _ in tried.ran))}
        if not found:
            yield f"{key}={value} was accepted and is in no run"
        elif not {*map(_canonical, found)} & {*map(_canonical, values)}:
            yield f"{key}={value} was asked for, {sorted(map(str, found))} ran"


def _look_up(spec: Specification, key: str) -> str | None:
    """Return the value of a setting in a run, or in one of the candidates of a rule."""
    group, *names = key.split(".")
    method = spec.config["method"]
    plain = [*method.get("candidates", {"": method}).values()] if group != "budget" else []
    nodes: list[Any] = [spec.config] if group in spec.config else []
    nodes += [one for one in plain if isinstance(one, dict) and group in one]
    for node in nodes:
        value = node[group]
        for name in names:
            value = value.get(name) if isinstance(value, dict) else None
        if value is not None:
            return str(value)
    return None


def _canonical(word: str) -> str:
    try:
        return str(float(word))
    except ValueError:
        return word.lower()


def _found(spec: Specification, seeds: list[int]) -> dict[str, set[str]]:
    """Return what ran, by key."""
    values = {
        "task": {spec.task}, "method": {spec.method}, "budget": {spec.budget}, "d": {str(spec.d)},
        "n": {str(spec.n)}, "seed": {*map(str, seeds)},
        **{group: {option} for group, option in spec.parts.items()},
    }  # fmt: skip
    for word in PARAMETERS:
        key = word.partition("=")[0]
        group, _, name = key.partition(".")
        node = spec.config["method"].get(group) if group in spec.parts else spec.config.get(group)
        if isinstance(node, dict) and isinstance(node.get(name), int | float | str):
            values[key] = {str(node[name])}
    return values


def _typed(words: Sequence[str]) -> dict[str, str]:
    """Return what is typed behind each key."""
    pairs = [word.partition("=") for word in words if not word.startswith("-") and "=" in word]
    return {key.lstrip("+").strip(): value for key, _, value in pairs}


def _default(spec: Specification, key: str) -> str | None:
    if key in ("d", "n"):
        file = CONF / "task" / f"{spec.task}.yaml"
        return str(yaml.safe_load(file.read_text())[key])
    return DEFAULTS.get(key)


def _plain(value: str) -> str:
    value = value.strip() if value[:1] in ("'", '"') else value
    quoted = len(value) > 1 and value[0] == value[-1] and value[0] in "'\""
    return value[1:-1] if quoted else value


def _expand(key: str, value: str) -> set[str] | None:
    """Return the values that a text stands for, None where only Hydra could tell."""
    value = _plain(value.strip())
    if key == "seed":
        value = value.strip("[]")
        spans = [re.fullmatch(r"\s*(\d+)(?:-(\d+))?\s*", part) for part in value.split(",")]
        if all(spans):
            ends = [(int(span[1]), int(span[2] or span[1])) for span in spans if span]
            if sum(last - first for first, last in ends) > 10**6:
                return None
            return {str(seed) for first, last in ends for seed in range(first, last + 1)}
    if match := re.fullmatch(r"range\((\d+),(\d+)(?:,(\d+))?\)", value):
        return {str(one) for one in range(int(match[1]), int(match[2]), int(match[3] or 1))}
    if (match := re.fullmatch(r"glob\(([^\[\]]*)\)", value)) and key in GROUPS:
        return {*fnmatch.filter([*options_of(key), "mine"], match[1])}
    if match := re.fullmatch(r"(?:choice|sort|shuffle)\((.*)\)", value):
        value = match[1]
    if re.search(r"[(){}\[\]$]", value):
        return None
    return {_number(_plain(part.strip())) for part in value.split(",")}


def _number(word: str) -> str:
    try:
        number = yaml.safe_load(word)
    except yaml.YAMLError:
        return word
    if isinstance(number, bool):
        return word
    return str(float(word) if re.fullmatch(r"\d+e-\d+", word) else number)
