"""axe-core, which looks for faults of accessibility: npm's where that is installed, or PyPI's axe-core-python."""

import subprocess
from importlib.util import find_spec
from pathlib import Path
from typing import Any

WEIGHTY = ("serious", "critical")


def axe_source() -> str | None:
    """The program of axe-core, or None where it is not installed."""
    places = [Path("node_modules/axe-core/axe.min.js")]
    spec = find_spec("axe_core_python")
    if spec is not None and spec.submodule_search_locations:
        places += [Path(folder) / "axe.min.js" for folder in spec.submodule_search_locations]
    try:
        folder = subprocess.run(["npm", "root", "--global"], capture_output=True, text=True, timeout=30).stdout.strip()
        places.insert(0, Path(folder) / "axe-core" / "axe.min.js")
    except (OSError, subprocess.TimeoutExpired):
        pass
    return next((path.read_text(encoding="utf-8") for path in places if path.is_file()), None)


def serious_faults(page: Any, source: str) -> list[str]:
    """What axe-core calls serious or critical on a page, each with the first element that has it."""
    page.evaluate(source)  # not as a script element, which the page's policy refuses
    violations = page.evaluate("async () => (await axe.run()).violations")
    return [f"{each['id']}: {each['nodes'][0]['html']}" for each in violations if each["impact"] in WEIGHTY]
