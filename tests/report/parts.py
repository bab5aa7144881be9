"""What tests of reports share: a strict reader of HTML, a hostile text, folders of runs with a law in them."""

import base64
import gzip
import json
import math
from html.parser import HTMLParser
from pathlib import Path

from deepwide.report import Attachment, Report, to_html
from deepwide.run import RunFolder

EVIL = "<script>alert(1)</script>\"'><img src=x onerror=alert(2)> [a](javascript:alert(3)) | `b` \x1b[0m\u202e"
SAFE = (
    "#",
    *(f"data:{kind};base64," for kind in ("image/svg+xml", "text/csv", "application/json", "application/gzip")),
)
VOID = ("meta", "img", "br", "hr", "link", "input")


class Reader(HTMLParser):
    """Every tag with its attributes, every text; refuses a tag that is not closed where it should be."""

    def __init__(self, page: str) -> None:
        super().__init__(convert_charrefs=True)
        self.open: list[str] = []
        self.tags: list[tuple[str, dict[str, str]]] = []
        self.texts: list[str] = []
        self.feed(page)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, {name: value or "" for name, value in attrs}))
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.texts.append(data)

    @property
    def text(self) -> str:
        return "".join(self.texts)

    def files(self) -> dict[str, bytes]:
        """What the page's links save, unpacked, by name."""
        links = {at["download"]: at["href"] for tag, at in self.tags if tag == "a" and "download" in at}
        return {name: unpacked(name, address) for name, address in links.items()}


def unpacked(name: str, address: str) -> bytes:
    content = base64.b64decode(address.partition("base64,")[2])
    return gzip.decompress(content) if name.endswith(".gz") else content


def read(report: Report) -> Reader:
    """The report as HTML, which must be safe whatever it says."""
    page = Reader(to_html(report))
    assert {tag for tag, _ in page.tags} & {"script", "iframe", "object", "form", "link", "base"} == set()
    for _, attributes in page.tags:
        assert not [name for name in attributes if name.startswith("on") or name == "style"]
        for name in ("src", "href"):
            assert attributes.get(name, "#").startswith(SAFE)
    return page


def attachments(report: Report) -> dict[str, bytes]:
    return {block.name: block.content for block in report.blocks() if isinstance(block, Attachment)}


def write_runs(home: Path, number: int = 32, *, unfinished: int = 0, error: str = "") -> Path:
    """Runs of 2 and 4 layers whose curves cross; the last ones without a result, or failed with an error."""
    for i in range(number):
        depth, width = (2, 4)[i % 2], 16 + 8 * (i // 4)
        size = 12 * depth * width**2
        counts = {"depth": depth, "width": width, "block_params": size, "total_params": size + 257 * width}
        config = {"trainer": "toy", "depth": depth, "width": width, "seed": i // 2 % 2, "lr": 0.1}
        run = RunFolder.create(home, config, data_fingerprint="d", numerics="1", counts=counts | {"tokens": 1000})
        loss = 1.4 + 9 * size**-0.3 * (1.0 if depth == 2 else 1.05 - 0.01 * math.log(size / 3000)) + 0.001 * (i % 3)
        result = {"status": "failed", "error": error} if error and i == 0 else {"status": "done", "loss": loss}
        if i < number - unfinished:
            (run.path / "result.json").write_text(json.dumps(result))
    return home
