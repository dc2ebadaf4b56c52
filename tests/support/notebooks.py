"""Notebooks without Jupyter: their code cells run in order, and what each of them shows.

As in Jupyter, a cell shows what it prints, the value of a last line that is an expression, and the
figures that it leaves open. There are no magics and no shell lines here: the notebooks have none.
"""

import ast
import base64
import contextlib
import io
import json
import re
from pathlib import Path
from typing import Any

import matplotlib as mpl

_NUMBER = re.compile(r"-?\d+\.\d+(?:e[+-]?\d+)?")

Output = dict[str, Any]


def read_notebook(path: Path) -> dict[str, Any]:
    """Return a notebook as it is stored."""
    notebook: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return notebook


def code_cells(notebook: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the cells that run."""
    return [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]


def run_cells(notebook: dict[str, Any]) -> list[list[Output]]:
    """Run every code cell in one namespace and return what each of them shows."""
    mpl.use("agg")
    namespace: dict[str, Any] = {"__name__": "__main__"}
    return [_run("".join(cell["source"]), namespace) for cell in code_cells(notebook)]


def write_outputs(path: Path) -> None:
    """Run a notebook and store what its cells show."""
    notebook = read_notebook(path)
    cells = code_cells(notebook)
    for number, (cell, shown) in enumerate(zip(cells, run_cells(notebook), strict=True), start=1):
        cell["execution_count"] = number
        cell["outputs"] = [
            {**one, "execution_count": number} if one["output_type"] == "execute_result" else one
            for one in shown
        ]
    text = json.dumps(notebook, indent=1, ensure_ascii=False)
    path.write_text(f"{text}\n", encoding="utf-8")


def split_text(outputs: list[Output]) -> tuple[str, list[float], int]:
    """Return the texts of outputs without their numbers, these, and how many pictures there are."""
    texts = ["".join(_text(one)) for one in outputs]
    told = " ".join("\n".join(texts).split())
    pictures = sum("image/png" in one.get("data", {}) for one in outputs)
    return _NUMBER.sub("#", told), [float(x) for x in _NUMBER.findall(told)], pictures


def _text(output: Output) -> list[str]:
    found: list[str] = output.get("text") or output.get("data", {}).get("text/plain") or []
    return found


def _run(source: str, namespace: dict[str, Any]) -> list[Output]:
    body = ast.parse(source).body
    last = body.pop() if body and isinstance(body[-1], ast.Expr) else None
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(compile(ast.Module(body, []), "<cell>", "exec"), namespace)
        value = None
        if last is not None:
            assert isinstance(last, ast.Expr)
            value = eval(compile(ast.Expression(last.value), "<cell>", "eval"), namespace)
    shown: list[Output] = []
    if printed.getvalue():
        shown.append({"output_type": "stream", "name": "stdout", "text": _lines(printed)})
    if value is not None:
        data = {"text/plain": repr(value).splitlines(keepends=True)}
        shown.append({"output_type": "execute_result", "data": data, "metadata": {}})
    return shown + _take_figures()


def _lines(printed: io.StringIO) -> list[str]:
    return printed.getvalue().splitlines(keepends=True)


def _take_figures() -> list[Output]:
    """Return the open figures as pictures, and close them."""
    from matplotlib import pyplot as plt

    shown = []
    for number in plt.get_fignums():
        png = io.BytesIO()
        plt.figure(number).savefig(png, format="png", dpi=80, bbox_inches="tight")
        data = {
            "image/png": base64.b64encode(png.getvalue()).decode(),
            "text/plain": ["<Figure>"],
        }
        shown.append({"output_type": "display_data", "data": data, "metadata": {}})
    plt.close("all")
    return shown
