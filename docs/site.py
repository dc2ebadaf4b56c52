"""What MkDocs needs to show files of the repository that are not below docs.

Pages link to them as files do, `../results/paper/README.md`, so that the links work in the
repository as well. Here they become files of the site.
"""

import re
from pathlib import Path
from typing import Any

from mkdocs.structure.files import File, Files

ROOT = Path(__file__).parent.parent
PAGES = {
    f"{name}.md": f"{name.upper()}.md"
    for name in ("architecture", "contributing", "changelog", "security")
}
LINK = re.compile(
    r"(?<=\]\()(?:\.\./)?(?:results/paper|examples|conf|baselines|ddobench|tasks|tests)/[^)#\s]+"
)


def on_files(files: Files, *, config: Any) -> Files:
    """Add pages of the top folder, and all files that a page links to."""
    for name, source in PAGES.items():
        files.append(File.generated(config, name, abs_src_path=str(ROOT / source)))
    texts = [file.content_string for file in files.documentation_pages()]
    for name in sorted({place(found) for text in texts for found in LINK.findall(text)}):
        files.append(File.generated(config, f"repository/{name}", abs_src_path=str(ROOT / name)))
    return files


def on_page_markdown(markdown: str, *, page: Any, **_: Any) -> str:
    """Link to what was added."""
    for name, source in PAGES.items():
        markdown = re.sub(rf"\]\((\.\./)?{source}", f"]({name}", markdown)
    if page.file.src_uri in PAGES:
        markdown = markdown.replace("](docs/", "](")
    if page.file.src_uri.startswith("repository/"):
        return markdown.replace("](../docs/", "](../../")  # of a folder of the repository
    return LINK.sub(lambda found: f"repository/{place(found[0])}", markdown)


def place(link: str) -> str:
    """Return the file of the repository that a link shows: the page instead of its summary."""
    return link.removeprefix("../").replace("results/paper/README.md", "results/paper/index.html")
