"""What a reader must know before believing a method, declared in conf/report.yaml.

A remark says by settings which runs it is about, so that it follows a part into any method that
uses it: `{surrogate: units, surrogate.form: gaussian}`. A setting of the task, as `task.bump`,
keeps it to tasks that have it.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import pandas as pd

MethodRemarks = Sequence[Mapping[str, Any]]  # each with `where`, settings of a method, and `text`


def find_remarks(
    runs: pd.DataFrame, configs: Mapping[str, Mapping[str, Any]], declared: MethodRemarks
) -> dict[str, tuple[str, ...]]:
    """Return the remarks on each configuration that has any, by its digest."""
    found = {}
    for row in runs.drop_duplicates("digest").to_dict("records"):
        config = configs.get(row["digest"], {})
        own = {**(config.get("method") or {}), "task": config.get("task")}
        texts = tuple(
            str(remark["text"])
            for remark in declared
            if all(_read(own, row, name) == str(x) for name, x in remark["where"].items())
        )
        if texts:
            found[str(row["digest"])] = texts
    return found


def _read(settings: Any, row: Mapping[Any, Any], name: str) -> str | None:
    """Return a setting by its dotted name; that of a part is which option it is."""
    node = settings
    for key in name.split("."):
        if not isinstance(node, Mapping) or key not in node:
            return None
        node = node[key]
    return str(row.get(name)) if isinstance(node, Mapping) else str(node)
