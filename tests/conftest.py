"""What several tests need."""

import os
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

# The same examples on every run, however busy the machine; `--hypothesis-profile=explore` looks further.
settings.register_profile("steady", deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("explore", settings.get_profile("steady"), derandomize=False, max_examples=1000)
settings.load_profile("steady")

ROOT = Path(__file__).parent.parent


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """The development data: beside the repository, or where DEEPWIDE_DATA says. A user's machine has none."""
    for folder in (os.environ.get("DEEPWIDE_DATA"), ROOT.parent / "shared" / "data"):
        if folder and Path(folder).is_dir():
            return Path(folder).resolve()
    pytest.skip("no development data: put it in ../shared/data or set DEEPWIDE_DATA")
