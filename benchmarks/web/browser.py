"""A real browser for the page: Debian's Chromium, headless, driven by Playwright."""

import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Any

NAMES = ("chromium", "chromium-browser", "google-chrome")
FLAGS = (
    "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
    "--disable-component-update", "--disable-sync", "--disable-dev-shm-usage",
)  # fmt: skip


def missing() -> str:
    """Why there is no browser here; empty if there is one."""
    if find_spec("playwright") is None:
        return "playwright is not installed: pip install playwright"
    return "" if executable() else "no Chromium here: apt-get install chromium"


def executable() -> str | None:
    """Where Chromium is."""
    return next((path for name in NAMES if (path := shutil.which(name))), None)


@contextmanager
def chromium() -> Iterator[Any]:
    """A browser, closed at the end."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright, tempfile.TemporaryDirectory() as home:
        # A home of its own: Debian's start script and Chromium write there.
        environment: dict[str, Any] = {"HOME": home, "PATH": "/usr/local/bin:/usr/bin:/bin", "LANG": "C.UTF-8"}
        browser = playwright.chromium.launch(executable_path=executable(), args=list(FLAGS), env=environment)
        try:
            yield browser
        finally:
            browser.close()


def saved_page(folder: Path, laws: tuple[Any, ...] = ()) -> str:
    """The page as a file in a folder; returns its address."""
    from deepwide.web import plan_page

    path = folder / "plan.html"
    path.write_text(plan_page(laws=laws), encoding="utf-8")
    return path.as_uri()
