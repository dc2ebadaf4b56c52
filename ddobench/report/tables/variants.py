"""The variant of a task or a method: the settings in which it departs from its file, as stored.

A record holds it as one text, `latent=scores search.prior=0.1`; this is the only place that takes
the text apart.
"""

import re

_BEFORE_NAME = re.compile(r"\s+(?=[\w.]+=)")  # a value may hold spaces, as a list does


def split_variant(variant: str) -> dict[str, str]:
    """Return the settings of a variant by their dotted names."""
    words = [word.partition("=") for word in _BEFORE_NAME.split(variant.strip()) if word]
    return {name: value for name, _, value in words}
