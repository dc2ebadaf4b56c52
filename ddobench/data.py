"""Measured data of others: listed, fetched and verified by `python -m ddobench.data`."""

import argparse
import io
import logging
import shutil
import sys
import zipfile
from collections.abc import Sequence
from hashlib import sha256
from pathlib import Path

from ddobench.cli.argv import SentenceParser, complain, quiet_output
from ddobench.datasets import (
    FOLDER,
    SETS,
    DataSet,
    Part,
    data_folder,
    find_file,
    find_set,
    read_data,
)
from ddobench.errors import UsageError
from ddobench.store.atomic import write_whole

_EPILOG = f"""\
Without options, the sets are listed with their licence and whether they are here. A set is fetched
once, from its public address, into the folder {FOLDER} (default: ddobench in the user's cache), and
kept only if its SHA-256 is the known one. Fetching needs pooch: pip install 'ddobench[data]'. Tasks
never fetch anything themselves. Exit code: 0, 1 if a file that is verified is missing or another
one, 2 if the request cannot be carried out."""


@quiet_output()
def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line and return its exit code."""
    parser = SentenceParser(
        prog="python -m ddobench.data",
        description="List, fetch and verify the measured data that some tasks need.",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("names", nargs="*", metavar="NAME", help="data sets (default: all)")
    parser.add_argument("--fetch", action="store_true", help="download what is not here")
    parser.add_argument("--verify", action="store_true", help="compute the hash of what is here")
    options = parser.parse_args(arguments)
    try:
        chosen = [find_set(name) for name in options.names or SETS]
        if options.fetch:
            for one in chosen:
                print(f"{one.name}: {find_file(one.name) or fetch(one, data_folder())}")
        elif options.verify:
            wrong = [reason for one in chosen if (reason := _find_fault(one))]
            print("\n".join(wrong) or f"{len(chosen)} as published")
            return int(bool(wrong))
        else:
            for one in chosen:
                print(f"{one.name}: {find_file(one.name) or 'not here'}")
                print(f"  {one.citation}; {one.licence}\n  {one.parts[0].address}")
    except UsageError as error:
        complain(str(error))
    except KeyboardInterrupt:
        print("interrupted; nothing is lost, and the same command continues", file=sys.stderr)
        return 130
    return 0


def _find_fault(one: DataSet) -> str:
    try:
        read_data(one.name)
    except UsageError as error:
        return str(error)
    return ""


def fetch(one: DataSet, folder: Path) -> Path:
    """Download the parts of a set, and write its file if that is the published one.

    Parts that were downloaded before an interruption are not downloaded again.
    """
    downloads = folder / "downloads" / one.name
    text = one.assemble([_take(part, _download(part, downloads)) for part in one.parts])
    text = text.replace(b"\r\n", b"\n")
    found = sha256(text).hexdigest()
    if found != one.sha256:
        shutil.rmtree(downloads)
        raise UsageError(
            f"{one.parts[0].address} has another file than the one published: its SHA-256 must be "
            f"{one.sha256[:12]}..., got {found[:12]}...; find the published one, and give it as "
            "task.file"
        )
    target = write_whole(folder / one.file, text)
    shutil.rmtree(downloads)
    return target


def _download(part: Part, folder: Path) -> Path:
    try:
        import pooch
    except ImportError as error:
        raise UsageError("fetching needs pooch: pip install 'ddobench[data]'") from error
    pooch.get_logger().setLevel(logging.WARNING)
    name = sha256(part.address.encode()).hexdigest()[:16]
    try:
        return Path(pooch.retrieve(part.address, part.sha256, fname=name, path=folder))
    except ValueError as error:  # of pooch: the hash is wrong, and the file is gone
        raise UsageError(
            f"{part.address} has another file than the one published, or only a piece of it came: "
            "its SHA-256 is wrong; try again, or give the published file as task.file"
        ) from error
    except OSError as error:  # those of requests are among them
        reason = str(error).splitlines()[0][:200]
        raise UsageError(
            f"{part.address} cannot be downloaded: {reason}; run the same command again, or "
            "download it elsewhere and give it as task.file"
        ) from error


def _take(part: Part, path: Path) -> bytes:
    """Return the text of a download."""
    content = path.read_bytes()
    if not part.member:
        return content
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            return archive.read(part.member)
    except (zipfile.BadZipFile, KeyError) as error:
        path.unlink()
        raise UsageError(
            f"{part.address} must be an archive with {part.member}: {error}; try again, or give "
            "the published file as task.file"
        ) from error


if __name__ == "__main__":
    sys.exit(main())
