"""The pictures of the page and of a report in docs/: `python -m benchmarks.web.screenshots`."""

import json
import tempfile
from pathlib import Path

from benchmarks.web.browser import chromium, missing, saved_page
from benchmarks.web.pictures import save_small
from deepwide.catalogue import find_model
from deepwide.report import write_report
from deepwide.shape import write_config

DOCS = Path(__file__).resolve().parents[2] / "docs"
AUDITED = "llama-3-8b"
LARGEST = 150_000  # bytes of a picture
DROP = """([name, text]) => {
  const transfer = new DataTransfer();
  transfer.items.add(new File([text], name));
  document.dispatchEvent(new DragEvent("drop", { dataTransfer: transfer, bubbles: true, cancelable: true }));
}"""
REPORTED = DOCS.parent / "results/studies/gemstones-cpu"
# name: width, height, colours, address, whether a config is dropped on it
PICTURES = {
    "page-light": (1280, 1180, "light", "", False),
    "page-dark": (1280, 1120, "dark", "#budget=7B&kv_heads=8&context=8192&vocab=128256", True),
    "page-phone": (360, 900, "light", "#budget=7B&kv_heads=8", False),
}


def main() -> None:
    """Draw them all."""
    if why := missing():
        raise SystemExit(why)
    config = json.dumps(write_config(find_model(AUDITED).shape, "llama"))
    with tempfile.TemporaryDirectory() as folder, chromium() as browser:
        address = saved_page(Path(folder))
        for name, (width, height, colours, fragment, audited) in PICTURES.items():
            page = browser.new_page(viewport={"width": width, "height": height}, color_scheme=colours)
            page.goto(address + fragment)
            if audited:
                page.evaluate(DROP, [f"{AUDITED}.json", config])
            page.wait_for_timeout(800)
            page.evaluate("() => { document.activeElement?.blur(); scrollTo(0, 0); }")
            save_small(page, DOCS / f"{name}.png", LARGEST)
            page.close()
        page = browser.new_page(viewport={"width": 980, "height": 1180})
        page.goto(write_report(REPORTED, Path(folder) / "report.html").as_uri())
        save_small(page, DOCS / "report.png", LARGEST)


if __name__ == "__main__":
    main()
