"""The text of `--help`: usage, what is registered, keys and options."""

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from ddobench import registry
from ddobench.cli.argv import MANY

USAGE = """\
[bold]ddobench[/]: from a fixed table of designs, which method proposes the best new ones?

  python -m ddobench method=fgm task=quadratic d=20                one run
  python -m ddobench method=fgm task=quadratic d=20 -m seed=0-49   a sweep over seeds
  python -m ddobench -m 'method=glob(*)' d=10,20 seed=0-9,20-24    several keys at once
  python -m ddobench task=chain d=41 describe=true                 what its rows cover
  python -m ddobench -m experiment=regret                          a published figure
  python -m ddobench -m suite=ddobench-1 method=fgm                a method on fixed tasks
  python -m ddobench.report                                        figures, tables and a page
  python -m ddobench.compare A B                                   two sets of runs side by side
  python -m ddobench.propose table.csv --target y                  new designs for rows of yours
  python -m ddobench.check method=mine --config-dir FOLDER         does it keep its promises?
"""
GROUPS = {
    "Tasks": "task",
    "Methods": "method",
    "Latents": "latent",
    "Axes": "axes",
    "Graphs": "graph",
    "Surrogates": "surrogate",
    "Searches": "search",
    "Rules to select settings by": "select",
    "Experiments": "experiment",
    "Suites": "suite",
    "Launchers, for many cores or machines": "launcher",
}
KEYS = {
    "task, method, experiment, suite": "one of those above",
    "latent, axes, graph, surrogate, search": "the parts of a method, one of those above",
    "select": "a rule that chooses settings of the method on visible rows, one of those above",
    "d, n": "design dimensions and visible rows; each task brings its default",
    "seed": "7, 0-49 or 0-9,20-24",
    "budget": "full, small, tiny or few_designs: training steps and numbers of designs",
    "results_dir": "where runs are stored (results/runs)",
    "device": "auto, cpu or cuda",
    "seeds_per_job": "how many seeds are stacked into one job (50, fewer if workers would be idle)",
    "memory_gb": "memory that a stack of seeds may take (half of what is free)",
    "timeout": "seconds that one run may take (no limit); a stack of S seeds may take S times that",
    "hydra/launcher": "what spreads the jobs of a sweep, one of those above (basic: nothing does)",
    "plan": "true: print what a sweep would run, and stop",
    "describe": "true: print the task and the terms of the paper's theorem for its seeds, and stop",
    "many": f"true: run more than {MANY:,} runs",
    "allow_code": "packages, as in [a,b], whose classes a _target_ may name; yours are allowed",
    "task.KEY, method.KEY": "any parameter of the task or the method; --cfg job lists them",
    "latent.KEY, search.KEY": "any parameter of such a part",
}
OPTIONS = {
    "-m": "sweep: every key may have several values; what is stored already is skipped",
    "--cfg job": "print the configuration instead of running it",
    "--config-dir DIR": "add your own method/NAME.yaml or task/NAME.yaml, Python files beside",
    "-sc install=bash": 'tab completion of the script: eval "$(ddobench -sc install=bash)"',
    "--hydra-help": "everything else",
}


def print_help() -> None:
    """Print the help, with what is registered now."""
    console = Console(highlight=False)
    console.print(USAGE, soft_wrap=True)
    for title, group in GROUPS.items():
        _print_pairs(console, title, {e.name: _sum_up(e) for e in registry.entries(group)})
    _print_pairs(console, "Keys", KEYS)
    _print_pairs(console, "Options", OPTIONS)


def _sum_up(entry: registry.Entry) -> str:
    notes = [note for note in (entry.fidelity, entry.missing_dependency) if note]
    return f"{entry.summary} ({'; '.join(notes)})" if notes else entry.summary


def _print_pairs(console: Console, title: str, pairs: dict[str, str]) -> None:
    table = Table(box=None, show_header=False, pad_edge=False, padding=(0, 2, 0, 2))
    for name, text in pairs.items():
        table.add_row(escape(name), escape(text))
    console.print(f"[bold]{title}[/]")
    console.print(table)
    console.print()
