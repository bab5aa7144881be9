"""Array types are for type checkers alone."""

import subprocess
import sys
from typing import Any

from deepwide import arrays


def test_at_run_time_every_type_is_any() -> None:
    assert {name: getattr(arrays, name) for name in arrays.__all__} == dict.fromkeys(arrays.__all__, Any)


def test_they_load_neither_numpy_nor_its_typing() -> None:
    program = "import sys, deepwide.arrays; print([name for name in ('numpy', 'numpy.typing') if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
