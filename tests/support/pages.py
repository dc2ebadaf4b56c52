"""A parser of written pages, and hostile texts to look for in them."""

import base64
import gzip
import json
from html.parser import HTMLParser
from pathlib import Path

SCRIPT = "<script>alert('x')</script>"
HOSTILE = (
    r"</script><script>window.broken = 1</script><img src=x onerror='window.broken = 2'>$\frac{"
)
OUR_SCRIPTS = ["application/gzip;base64", None]  # the types of the data and of what shows them
PAPERS = "https://doi.org/"  # how a link to a paper begins; the page does not need them
MINUS, DASH = "\u2212", "\u2013"


class Page(HTMLParser):
    """Collects the tags and texts of a page."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.text = ""
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Record a tag, and the content of a packed part."""
        self.tags.append((tag, dict(attrs)))
        if packed := dict(attrs).get("data-packed"):
            inside = Page(json.loads(gzip.decompress(base64.b64decode(packed))))
            self.tags += inside.tags
            self.text += inside.text

    def handle_data(self, data: str) -> None:
        """Record a text."""
        self.text += data

    @property
    def scripts(self) -> list[str | None]:
        """The types of all scripts."""
        return [attributes.get("type") for tag, attributes in self.tags if tag == "script"]


def open_page(path: Path) -> Page:
    """Read a written page."""
    return Page(path.read_text(encoding="utf-8"))
