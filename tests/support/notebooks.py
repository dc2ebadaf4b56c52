"""Run notebooks without Jupyter: the code cells in order, and the outputs of each.

As in Jupyter, the outputs of a cell are what it prints, the value of its last line if that is an
expression, and the figures that it leaves open. Magics and shell lines are not supported.
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
    """Return the code cells."""
    return [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]


def run_cells(notebook: dict[str, Any]) -> list[list[Output]]:
    """Run every code cell in one namespace and return the outputs of each."""
    mpl.use("agg")
    namespace: dict[str, Any] = {"__name__": "__main__"}
    return [_run("".join(cell["source"]), namespace) for cell in code_cells(notebook)]


def write_outputs(path: Path) -> None:
    """Run a notebook and store its outputs."""
    notebook = read_notebook(path)
    cells = code_cells(notebook)
    for number, (cell, outputs) in enumerate(zip(cells, run_cells(notebook), strict=True), 1):
        cell["execution_count"] = number
        cell["outputs"] = [
            {**one, "execution_count": number} if one["output_type"] == "execute_result" else one
            for one in outputs
        ]
    text = json.dumps(notebook, indent=1, ensure_ascii=False)
    path.write_text(f"{text}\n", encoding="utf-8")


def split_text(outputs: list[Output]) -> tuple[str, list[float], int]:
    """Return the text of outputs without numbers, the numbers, and how many pictures there are."""
    text = " ".join("\n".join("".join(_text(one)) for one in outputs).split())
    pictures = sum("image/png" in one.get("data", {}) for one in outputs)
    return _NUMBER.sub("#", text), [float(x) for x in _NUMBER.findall(text)], pictures


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
    outputs: list[Output] = []
    if printed.getvalue():
        outputs.append({"output_type": "stream", "name": "stdout", "text": _lines(printed)})
    if value is not None:
        data = {"text/plain": repr(value).splitlines(keepends=True)}
        outputs.append({"output_type": "execute_result", "data": data, "metadata": {}})
    return outputs + _take_figures()


def _lines(printed: io.StringIO) -> list[str]:
    return printed.getvalue().splitlines(keepends=True)


def _take_figures() -> list[Output]:
    """Return the open figures as PNG outputs, and close them."""
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
