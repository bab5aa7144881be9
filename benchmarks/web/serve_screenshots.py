"""The pictures of the server's pages in docs/: `python -m benchmarks.web.serve_screenshots`.

The runs are simulated; studies and ranks are the published ones.
"""

import json
import shutil
import tempfile
import urllib.request
from pathlib import Path

from benchmarks.web.browser import chromium, missing
from benchmarks.web.pictures import save_small
from benchmarks.web.screenshots import LARGEST
from benchmarks.web.served import served, write_runs

ROOT = Path(__file__).resolve().parents[2]
# name: width, height, colours, address
PICTURES = {
    "serve-sweep": (1200, 1080, "light", "/sweeps/{sweep}"),
    "serve-separation": (1200, 900, "light", "/separation#depth=2&width=4"),
    "serve-studies": (1200, 760, "dark", "/studies"),
}


def main() -> None:
    """Draw them all."""
    if why := missing():
        raise SystemExit(why)
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder)
        write_runs(home / "runs" / "first", 432, running=2, waiting=6, corrupt=1)
        shutil.copytree(ROOT / "results" / "studies", home / "studies")
        shutil.copytree(ROOT / "results" / "separation" / "ranks", home / "ranks")
        with served(home) as (url, _), chromium() as browser:
            sweeps = json.load(urllib.request.urlopen(f"{url}/api/index", timeout=60))["sweeps"]
            for name, (width, height, colours, address) in PICTURES.items():
                page = browser.new_page(viewport={"width": width, "height": height}, color_scheme=colours)
                page.goto(url + address.format(sweep=sweeps[0]["id"]))
                page.wait_for_timeout(6000)
                save_small(page, ROOT / "docs" / f"{name}.png", LARGEST)
                page.close()


if __name__ == "__main__":
    main()
