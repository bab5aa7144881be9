"""What several tests need, and what none may have: a network."""

import os
import shutil
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

# The same examples on every run, however busy the machine; `--hypothesis-profile=explore` looks further.
settings.register_profile("steady", deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("explore", settings.get_profile("steady"), derandomize=False, max_examples=1000)
settings.load_profile("steady")

ROOT = Path(__file__).parent.parent
# Some virtual machines announce AMX and trap its use: bfloat16 products then end the process (illegal instruction).
os.environ.setdefault("ONEDNN_MAX_CPU_ISA", "AVX512_CORE_FP16")
os.environ.pop("PYTHONUNBUFFERED", None)  # users have none: a full disk is met when Python ends, with a buffer to write
os.environ.pop("COLUMNS", None)  # a shell may export how wide its terminal is, and then lines break elsewhere

# This process and every Python that a test starts are cut off: see the module.
OFFLINE = str(Path(__file__).parent / "offline")
os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, [OFFLINE, os.environ.get("PYTHONPATH")]))
sys.path.insert(0, OFFLINE)
sys.modules.pop("sitecustomize", None)
__import__("sitecustomize")
sys.path.remove(OFFLINE)


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """The development data: beside the repository, or where DEEPWIDE_DATA says. A user's machine has none."""
    for folder in (os.environ.get("DEEPWIDE_DATA"), ROOT.parent / "shared" / "data"):
        if folder and Path(folder).is_dir():
            return Path(folder).resolve()
    pytest.skip("no development data: put it in ../shared/data or set DEEPWIDE_DATA")


@pytest.fixture
def memory(tmp_path: Path) -> Iterator[Path]:
    """A folder in memory where there is one: thousands of syncs cost nothing there, and a kill is a kill."""
    shared = Path("/dev/shm")
    if not shared.is_dir():
        yield tmp_path
        return
    home = Path(tempfile.mkdtemp(prefix="deepwide-test-", dir=shared))
    yield home
    shutil.rmtree(home, ignore_errors=True)


@pytest.fixture
def small_corpus(tmp_path: Path) -> Path:
    """A folder of short documents."""
    corpus = tmp_path / "corpus"
    corpus.mkdir()
    for i in range(40):
        (corpus / f"{i:02d}.txt").write_text(f"Document {i}: " + " ".join(str(i * k % 97) for k in range(100)))
    return corpus
