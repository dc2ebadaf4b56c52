"""Who may import whom: layers point one way."""

import ast
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent

# Each harness module stands on the ones in earlier rows only.
LAYERS = [
    {
        *(
            "bca",
            "determinism",
            "errors",
            "files",
            "graphs",
            "identity",
            "products",
            "records",
            "regression",
        ),
        *("elimination", "scoring", "statistics"),
    },
    {"streams", "seeds", "provenance", "progress", "registry", "devices", "memory"},
    {"contracts", "arguments"},
]
OF_A_RUN = ("execution", "job", "sweeper", "specification", "build", "store")


def modules(folder: str) -> list[Path]:
    """Return the Python files of a folder, its packages included, without what links lead to."""
    return sorted(
        path
        for path in (ROOT / folder).rglob("*.py")
        if not any(parent.is_symlink() for parent in path.parents)
    )


def imports(path: Path) -> set[str]:
    """Return the full names that a file imports from, anywhere in it."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            assert node.level == 0, f"{path} uses a relative import"
            found |= {node.module, *(f"{node.module}.{alias.name}" for alias in node.names)}
    return found


def offenders(folder: str, forbidden: tuple[str, ...]) -> list[str]:
    """Return the imports in a folder that begin with a forbidden name."""
    return [
        f"{path.relative_to(ROOT)} imports {name}"
        for path in modules(folder)
        for name in sorted(imports(path))
        if any(name == bad or name.startswith(f"{bad}.") for bad in forbidden)
    ]


def test_the_harness_imports_no_task_and_no_method() -> None:
    assert offenders("ddobench", ("ddobench.tasks", "ddobench.baselines")) == []


def test_a_method_imports_no_task_no_store_and_no_runner() -> None:
    runner = tuple(f"ddobench.{name}" for name in OF_A_RUN)
    assert offenders("baselines", ("ddobench.tasks", *runner)) == []


def test_a_task_imports_no_method_no_store_and_no_runner() -> None:
    runner = tuple(f"ddobench.{name}" for name in OF_A_RUN)
    assert offenders("tasks", ("ddobench.baselines", *runner)) == []


def test_a_run_never_imports_a_plotting_library() -> None:
    inside = offenders("ddobench", ("matplotlib", "seaborn"))
    assert [line for line in inside if not line.startswith("ddobench/report/")] == []
    assert offenders("tasks", ("matplotlib", "seaborn")) == []
    assert offenders("baselines", ("matplotlib", "seaborn")) == []


def test_the_report_runs_nothing() -> None:
    runner = ("torch", "ddobench.execution", "ddobench.job", "ddobench.contracts")
    assert offenders("ddobench/report", runner) == []


@pytest.mark.parametrize("folder", ["ddobench", "tasks", "baselines", "tests", "benchmarks"])
def test_tasks_and_baselines_are_never_import_names_of_the_top_level(folder: str) -> None:
    assert offenders(folder, ("tasks", "baselines", "conf")) == []


def test_the_foundations_stand_on_nothing_above_them() -> None:
    allowed: set[str] = set()
    for layer in LAYERS:
        for name in sorted(layer):
            path = ROOT / "ddobench" / f"{name}.py"
            if not path.exists():
                continue
            ours = {n.split(".")[1] for n in imports(path) if n.startswith("ddobench.")}
            assert ours <= allowed | layer, f"{name} imports {sorted(ours - allowed - layer)}"
        allowed |= layer


def test_no_two_modules_import_each_other_in_a_circle() -> None:
    graph = {
        path.stem: {
            name.split(".")[1]
            for name in top_level_imports(path)
            if name.startswith("ddobench.") and name.split(".")[1] != path.stem
        }
        for path in modules("ddobench")
        if path.parent.name == "ddobench"
    }
    done: set[str] = set()
    while len(done) < len(graph):
        ready = {name for name in graph if name not in done and graph[name] & set(graph) <= done}
        assert ready, f"a circle among {sorted(set(graph) - done)}"
        done |= ready


def top_level_imports(path: Path) -> set[str]:
    """Return the names imported when the module itself is imported."""
    found: set[str] = set()
    for node in ast.parse(path.read_text()).body:
        if isinstance(node, ast.ImportFrom) and node.module:
            found |= {node.module, *(f"{node.module}.{alias.name}" for alias in node.names)}
    return found


@pytest.mark.parametrize(
    ("word", "owner"),
    [
        ("instantiate(", "ddobench/build.py"),
        (".evaluate(", "ddobench/execution.py"),
        ("pq.write_table(", "ddobench/store.py"),
    ],
)
def test_what_one_module_does_no_other_does(word: str, owner: str) -> None:
    users = {
        str(path.relative_to(ROOT))
        for folder in ("ddobench", "baselines")
        for path in modules(folder)
        if word in path.read_text()
    }
    assert users == {owner}
