"""The variant of a task or a method: the settings in which it departs from its file.

It is a mapping, such as `{"latent": "scores", "search.prior": "0.1"}`; records, tables and claims
hold it as one text, `latent=scores search.prior=0.1`. Here alone one becomes the other, and back.
"""

import json
import re
from collections.abc import Mapping

# a value may hold spaces, as a list does, and ends where the next name begins
_SETTING = re.compile(r'([\w.]+)=("(?:[^"\\]|\\.)*"|.*?)(?=\s+[\w.]+=|\s*$)', re.DOTALL)


def format_variant(settings: Mapping[str, str]) -> str:
    """Return settings as one text; a value that could be taken for more than one is quoted."""
    return " ".join(_format_setting(name, value) for name, value in settings.items())


def split_variant(variant: str) -> dict[str, str]:
    """Return the settings of a variant by their dotted names."""
    return {
        name: json.loads(value) if len(value) > 1 and value[0] == value[-1] == '"' else value
        for name, value in _SETTING.findall(variant.strip())
    }


def _format_setting(name: str, value: str) -> str:
    plain = f"{name}={value}"
    clear = '"' not in value and split_variant(plain) == {name: value}
    return plain if clear else f"{name}={json.dumps(value)}"
