"""A real browser for the tests of pages, without network access."""

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from playwright.sync_api import Browser, expect, sync_playwright

from tests.support.processes import PATIENCE

NAMES = ("chromium", "chromium-browser", "google-chrome")
FLAGS = (
    *("--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run"),
    *("--disable-background-networking", "--disable-component-update", "--disable-sync"),
)

PATIENCE_OF_A_PAGE = 120.0  # seconds for a step that takes a moment on an idle machine

expect.set_options(timeout=1e3 * PATIENCE_OF_A_PAGE)


def find_chromium() -> str:
    """Return the path of Chromium; without one, skip, or fail if a browser is required."""
    found = next(filter(None, map(shutil.which, NAMES)), None)
    if found is None:
        reason = "no Chromium is installed (on Debian: apt-get install chromium)"
        if is_required(os.environ):
            pytest.fail(f"{reason}, and the tests of the page must not be skipped here")
        pytest.skip(reason)
    return found


def is_required(environment: "os._Environ[str] | dict[str, str]") -> bool:
    """Return whether a missing browser is a failure: in continuous integration, or if requested."""
    return bool(environment.get("CI")) or environment.get("DDOBENCH_BROWSER") == "required"


@contextmanager
def start_chromium() -> Iterator[Browser]:
    """Start a browser, and end it afterwards."""
    path = find_chromium()
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=path, args=list(FLAGS), timeout=1e3 * PATIENCE
        )
        try:
            yield browser
        finally:
            browser.close()
