"""The promises of SECURITY.md that no other test makes.

Odd records stop nothing and change no number, and names obey no terminal: report/test_odd_records.
Markup stays text: report/test_report and, in a browser, report/test_page_browser. What a report may
clear away: report/test_manifest. LaTeX is escaped: report/test_tables.
"""

import ast
import base64
import gzip
import json
import pickle
import re
from hashlib import sha256
from itertools import pairwise
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from markdown_it import MarkdownIt

from ddobench.compare.__main__ import main as compare
from ddobench.errors import UsageError
from ddobench.report import write_report
from ddobench.report.claims import read_claims
from ddobench.report.data import ReportData
from ddobench.report.tables.formatting import escape_markdown, to_csv
from ddobench.store.cache import ArrayCache
from ddobench.store.parquet import to_bytes, to_stored
from ddobench.store.records import Record
from ddobench.store.runs import Store, read_diagnostics
from tests.support.pages import open_page
from tests.support.records import forge, read_footer
from tests.support.synthetic_runs import run_row, sweep
from tests.support.synthetic_stores import Fill, store_rows
from tests.test_layers import ROOT, modules

FORMULAS = ("=1+1", "+1+cmd", "-1+cmd|' /C calc'!A0", "@SUM(A1)", "\t=1", "\r=1", "\r\n=1", "\n=1")
MARKUP = (
    "evil [a](http://example.org) ![b](http://example.org/c.png) <img src='//example.org'> `d` "
    "[e]: http://example.org \\[f](http://example.org) **g** www.example.org ``` ~~~"
)
CONTROLS = "\x00\x07\x08\x0b\x0c\x1b\x1f\x7f\x85\x9b\u2028\u202a\u202e\u2066\u2069"
NETWORK = {"socket", "http", "ftplib", "smtplib", "urllib.request", "requests", "httpx", "aiohttp"}


class Trap:
    """Leaves a file behind when it is unpickled."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> tuple[object, tuple[object, ...]]:
        return Path.touch, (self.path,)


def imports(path: Path) -> set[str]:
    """Return what a module imports, under its full name."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            found |= {name.name for name in node.names}
        elif isinstance(node, ast.ImportFrom):
            found |= {str(node.module), *(f"{node.module}.{name.name}" for name in node.names)}
    return found


def calls(path: Path) -> set[str]:
    """Return the functions that a module calls, as they are written."""
    tree = ast.parse(path.read_text())
    return {ast.unparse(node.func) for node in ast.walk(tree) if isinstance(node, ast.Call)}


def all_modules() -> list[Path]:
    """Return every module of the product."""
    return [path for folder in ("ddobench", "tasks", "baselines") for path in modules(folder)]


ISOLATION = ROOT / "ddobench" / "runner" / "isolation.py"


def test_no_module_unpickles() -> None:
    risky = {"pickle", "cPickle", "dill", "cloudpickle", "marshal", "shelve"}
    assert [path for path in all_modules() if imports(path) & risky] == [ISOLATION]
    loaders = {"torch.load", "np.load", "numpy.load"}
    assert {
        str(path.relative_to(ROOT)) for path in all_modules() if calls(path) & loaders
    } == {"ddobench/store/cache.py", "ddobench/runner/isolation.py"}  # fmt: skip


def test_only_the_process_of_a_method_unpickles_what_the_harness_sends() -> None:
    tree = ast.parse(ISOLATION.read_text())
    (server,) = (one for one in tree.body if getattr(one, "name", "") == "_Server")
    assert "pickle.loads" in ast.unparse(server)
    others = "\n".join(ast.unparse(one) for one in tree.body if one is not server)
    assert "pickle.load" not in others
    assert others.count("torch.load(") == others.count("weights_only=True") == 1


def test_no_module_evaluates_text_or_reads_yaml_that_builds_objects() -> None:
    risky = {"eval", "exec", "yaml.load", "yaml.unsafe_load", "yaml.full_load", "os.system"}
    assert [path for path in all_modules() if calls(path) & risky] == []


def test_no_module_can_open_a_connection() -> None:
    assert [path for path in all_modules() if imports(path) & NETWORK] == []


def test_a_record_that_holds_a_pickle_and_names_a_class_runs_nothing(tmp_path: Path) -> None:
    sprung = tmp_path / "sprung"
    folder = store_rows(tmp_path / "runs", sweep(dimensions=[10], seeds=1))
    bait = pickle.dumps(Trap(sprung))
    kind = pa.field(
        "row", pa.binary(),
        metadata={"ARROW:extension:name": "arrow.py_extension_type",
                  "ARROW:extension:metadata": bait},
    )  # fmt: skip
    target = {"_target_": "pathlib.Path.touch", "self": str(sprung)}
    place = next(folder.glob("*-naive-10"))
    record = Record(run_row("naive", 10, 2), config={"task": target, "method": target})
    (place / "seed-00002.parquet").write_bytes(to_bytes([to_stored(record)]))
    forge(place / "seed-00001.parquet", read_footer(place / "seed-00002.parquet"),
          pa.table([pa.array([bait])], schema=pa.schema([kind])))  # fmt: skip
    report = write_report(folder, tmp_path / "report", formats="svg")
    assert "3 runs" in report.message
    assert compare([str(folder), str(folder)]) == 0
    assert read_diagnostics(place / "seed-00002.parquet") == {}
    assert not sprung.exists()


def test_a_pickle_in_the_cache_is_not_opened(tmp_path: Path) -> None:
    cache = ArrayCache(tmp_path, "task")
    cache.put("vae", {"width": 1}, 0, {"weights": np.zeros(2)})
    path = next(tmp_path.rglob("*.npz"))
    with path.open("wb") as file:
        np.savez(file, weights=np.array([Trap(tmp_path / "sprung")], dtype=object))
    assert cache.get("vae", {"width": 1}, 0) is None
    assert not (tmp_path / "sprung").exists()


@pytest.mark.parametrize(
    "text",
    [
        "claims: !!python/object/apply:pathlib.Path.touch [sprung]",
        "claims: !!python/object/new:pathlib.Path [sprung]",
        "claims: !!python/name:os.system",
        "[" * 100_000,
        "claims: 2001-99-99",
        "claims: \x00",
    ],
)
def test_a_claims_file_builds_no_object(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("claims.yaml").write_text(text)
    with pytest.raises(UsageError, match=r"claims must be YAML"):
        read_claims("claims.yaml")
    assert [path.name for path in tmp_path.iterdir()] == ["claims.yaml"]


def test_a_claims_file_that_is_no_text_is_refused(tmp_path: Path) -> None:
    (tmp_path / "claims.yaml").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(UsageError, match="claims must be YAML"):
        read_claims(tmp_path / "claims.yaml")


def test_the_policy_of_the_page_allows_its_own_script_and_nothing_else(
    fill: Fill, tmp_path: Path
) -> None:
    written = write_report(fill([run_row()]), tmp_path / "report", formats="svg")
    text = written.page.read_text(encoding="utf-8")
    policies = [a["content"] for tag, a in open_page(written.page).tags
                if tag == "meta" and a.get("http-equiv") == "Content-Security-Policy"]  # fmt: skip
    script = re.findall(r"<script>(.*?)</script>", text, re.DOTALL)[-1]
    own = base64.b64encode(sha256(script.encode()).digest()).decode()
    assert policies == [
        "default-src 'none'; img-src data: 'self' file:; style-src 'unsafe-inline'; "
        f"script-src 'sha256-{own}'"
    ]  # fmt: skip
    assert text.index("Content-Security-Policy") < text.index("<style")


@pytest.mark.slow
def test_a_text_that_a_spreadsheet_would_compute_is_a_text_in_every_csv(tmp_path: Path) -> None:
    rows = [
        run_row(f"m{i}", label=text, method_variant=text, status="declined", reason=f"no{text}")
        for i, text in enumerate(FORMULAS)
    ]
    folder = store_rows(tmp_path / "runs", [*rows, run_row("naive", 10)])
    written = write_report(folder, tmp_path / "report", formats="svg,csv")
    tables = [path for path in written.files if path.suffix == ".csv"]
    assert compare([str(folder), str(folder), "--all", "--output", f"{tmp_path / 'c.csv'}"]) == 0
    cells = {
        cell
        for path in (*tables, tmp_path / "c.csv")
        for row in pd.read_csv(path, dtype=str, header=None).itertuples(index=False)
        for cell in row
        if isinstance(cell, str)
    }
    for text in FORMULAS:
        assert "'" + text.replace("\r\n", "\n").replace("\r", "\n") in cells
    assert [cell for cell in cells if cell.startswith(tuple("=@\t\r\n"))] == []


@pytest.fixture(scope="module")
def hostile(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with a report and two comparisons of runs whose texts are hostile."""
    folder = tmp_path_factory.mktemp("hostile")
    texts = {"budget": f"x{CONTROLS}", "label": f"{MARKUP} {CONTROLS}",
             "method_variant": f"x={MARKUP}{CONTROLS}",
             "task_variant": f"{MARKUP}{CONTROLS}", "command": f"a\n```\n{MARKUP}{CONTROLS}",
             "reason": f"{MARKUP}{CONTROLS}"}  # fmt: skip
    config: dict[str, dict[str, object]] = {"task": {}, "method": {f"# {MARKUP}{CONTROLS}": 1}}
    for side, value in (("a", 4.0), ("b", 3.0)):
        config["method"][f"[x]: http://example.org '{CONTROLS}"] = f"{value}'"
        rows = [run_row("ga", d, seed, final_model=value, digest=f"{side}{d}", **texts)
                for d in (10, 20) for seed in (0, 1)]  # fmt: skip
        declined = run_row("fgm", 10, 0, **texts, status="declined")
        records = [Record(row, config, {"cpu": MARKUP + CONTROLS}) for row in (*rows, declined)]
        store = Store(folder / side)
        for record in records:
            place = store.place("task", "method", record.row["d"], 100, record.row["digest"])
            store.write(place, record)
    write_report(folder / "a", folder / "report", formats="svg,csv")
    for ending in ("md", "csv"):
        output = folder / "report" / f"comparison.{ending}"
        assert compare([f"{folder / 'a'}", f"{folder / 'b'}", "--all", f"--output={output}"]) == 0
    return folder / "report"


def test_markup_in_records_stays_text_in_every_markdown_file(hostile: Path) -> None:
    files = [*hostile.rglob("*.md")]
    assert {path.name for path in files} > {"README.md", "leaderboard.md", "comparison.md"}
    for path in files:
        tokens = MarkdownIt("js-default").parse(path.read_text(encoding="utf-8"))
        tokens += [inner for token in tokens for inner in token.children or ()]
        links = {str(token.attrGet("href") or token.attrGet("src")) for token in tokens}
        assert {link for link in links if "//" in link} == set(), path
        assert {token.type for token in tokens} & {
            "html_inline",
            "html_block",
            "code_inline",
        } == set()
        assert sum(token.type == "fence" for token in tokens) == (path.name == "README.md")
        titles = [b.content for a, b in pairwise(tokens) if a.type == "heading_open"]
        assert [title for title in titles if title.startswith("evil")] == []


def test_no_control_character_of_a_record_is_in_any_written_file(hostile: Path) -> None:
    files = [path for path in hostile.rglob("*") if path.is_file()]
    assert {path.suffix for path in files} >= {".md", ".tex", ".csv", ".html", ".svg"}
    for path in files:
        if path.suffix in (".md", ".tex", ".csv", ".html", ".svg"):
            assert set(path.read_bytes().decode()) & {*CONTROLS} == set(), path
        if path.suffix == ".svg":
            ElementTree.fromstring(path.read_bytes())
    page = open_page(hostile / "index.html")
    packed = re.findall(r'id="run-data">([^<]+)<', (hostile / "index.html").read_text())
    shown = gzip.decompress(base64.b64decode(packed[0])).decode()
    for text in (page.text, json.dumps(json.loads(shown), ensure_ascii=False)):
        assert set(text) & {*CONTROLS} == set()
        assert "u202e" in text
    assert "u001b" not in shown
    assert "u202e" in (hostile / "tables" / "scores.csv").read_text()


def test_no_control_character_of_a_record_reaches_the_terminal(
    hostile: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    a, b = hostile.parent / "a", hostile.parent / "b"
    compare([str(a), str(b), "--all"])
    with pytest.raises(SystemExit):
        compare([str(a), str(b), "budget=none"])
    with pytest.raises(UsageError) as caught:
        write_report(a, hostile, filters={"budget": "none"})
    printed = capsys.readouterr()
    assert "u202e" in printed.out
    assert set(printed.out + printed.err + str(caught.value)) & {*CONTROLS} == set()


def test_ordinary_text_is_the_same_in_markdown() -> None:
    for text in ("0.50 [0.10, 0.90]", "ensemble_mean, latent=vae", "w_C", "5 % (a-b) #1 1.5", "-1",
                 "d=[10,20]", "a: b", "\u2212 0.3!", "FGM\u2020, x=(1, 2)"):  # fmt: skip
        assert escape_markdown(text) == text


def test_numbers_in_a_csv_stay_numbers() -> None:
    table = pd.DataFrame({"a": [-1.5, 2.0], "b": ["-1.5", "+2e3"], "c": ["-1.5 2.0", "-"],
                          "-d": [None, "-x"]})  # fmt: skip
    lines = to_csv(table).splitlines()
    assert lines == ["a,b,c,'-d", "-1.5,-1.5,-1.5 2.0,", "2.0,+2e3,'-,'-x"]


def test_paths_inside_a_record_are_ignored(tmp_path: Path) -> None:
    rows = [run_row(seed=seed, path="/etc/passwd", graph="../../x") for seed in (0, 1)]
    stored = ReportData.read(store_rows(tmp_path / "runs", rows))
    assert all((tmp_path / "runs" / path).is_file() for path in stored.runs["path"])


def test_the_readme_leads_here() -> None:
    assert "](SECURITY.md)" in (ROOT / "README.md").read_text()
    for path in re.findall(r"\]\(([^)]+)\)", (ROOT / "SECURITY.md").read_text()):
        assert (ROOT / path).exists()
