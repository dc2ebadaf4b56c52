"""Checksums inside a Parquet file, of each part of it that is read without the others.

A file is a head (the columns of numbers that summaries read), a body (the other columns) and a
footer. Among the keys of the footer is one whose value says where the head ends and what the three
parts sum up to; it is filled in once the file is there, and counts as zeros in its own sum. So a
record stays one file, that anything reads which reads Parquet.
"""

from dataclasses import dataclass
from zlib import crc32

import pyarrow as pa

KEY = b"ddobench.checksums"  # a file with other checksums needs another name for them
_DIGITS = 8  # of each number
EMPTY = b"0" * (4 * _DIGITS)
_BEFORE = KEY + b"\x18" + bytes([len(EMPTY)])  # how Parquet writes a key before its value
_TAIL = 1 << 15  # bytes, more than most footers have
_PIECE = 1 << 16  # bytes read at once; a larger piece is new memory every time


@dataclass(frozen=True)
class Checksums:
    """Where the head of a file ends, and the checksums of head and body."""

    head_ends: int
    head: int
    body: int


def fill_in(content: bytes, head_ends: int | None) -> bytes:
    """Return a file, written with EMPTY at the key, with its checksums; None: it has no body."""
    begins = len(content) - _footer_length(content[-8:], len(content))
    head_ends = begins if head_ends is None else head_ends
    view = memoryview(content)
    numbers = (head_ends, crc32(view[:head_ends]), crc32(view[head_ends:begins]))
    at = content.index(_BEFORE + EMPTY, begins) + len(_BEFORE)
    partly = b"".join(b"%08x" % number for number in numbers) + EMPTY[:_DIGITS]
    footer = content[begins:at] + partly + content[at + len(partly) :]
    last = at + len(partly) - _DIGITS - begins
    return b"".join(
        (view[:begins], footer[:last], b"%08x" % crc32(footer), footer[last + _DIGITS :])
    )


def read_footer(source: pa.NativeFile) -> bytes:
    """Return the footer of a Parquet file, with the length at its end."""
    size = source.size()
    tail = _read(source, max(0, size - _TAIL), size)
    length = _footer_length(tail[-8:], size)
    if length > len(tail):
        tail = _read(source, size - length, size)
    return tail[-length:]


def check_footer(footer: bytes) -> Checksums | None:
    """Return the checksums in a footer, None if it has none; raise if they are not its own."""
    before = footer.rfind(_BEFORE)
    if before < 0:
        return None
    at = before + len(_BEFORE)
    digits = footer[at : at + len(EMPTY)]
    blank = at + len(EMPTY) - _DIGITS
    found = crc32(footer[:blank] + EMPTY[:_DIGITS] + footer[blank + _DIGITS :])
    if digits[-_DIGITS:] != b"%08x" % found:
        raise ValueError("damaged: its footer does not match its checksum")
    numbers = [int(digits[i : i + _DIGITS], 16) for i in range(0, 3 * _DIGITS, _DIGITS)]
    return Checksums(*numbers)


def check_head(source: pa.NativeFile, expected: Checksums) -> None:
    """Raise unless the columns of numbers are as they were written."""
    if _sum_up(source, 0, expected.head_ends) != expected.head:
        raise ValueError("damaged: its curves do not match their checksum")


def check_body(source: pa.NativeFile, expected: Checksums, footer: bytes) -> None:
    """Raise unless the other columns are as they were written."""
    if _sum_up(source, expected.head_ends, source.size() - len(footer)) != expected.body:
        raise ValueError("damaged: its designs and their values do not match their checksum")


def _sum_up(source: pa.NativeFile, begin: int, end: int) -> int:
    total = 0
    for at in range(begin, end, _PIECE):
        total = crc32(_read(source, at, min(at + _PIECE, end)), total)
    return total


def _read(source: pa.NativeFile, begin: int, end: int) -> bytes:
    source.seek(begin)
    return source.read(end - begin)


def _footer_length(end: bytes, size: int) -> int:
    """Return the length of a footer, these last bytes included, or raise if there is none."""
    length = int.from_bytes(end[:4], "little") + len(end)
    if len(end) < 8 or end[4:] != b"PAR1" or length > size:
        raise ValueError("no whole Parquet file")
    return length
