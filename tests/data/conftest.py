import os
from pathlib import Path

import pytest


@pytest.fixture
def real_data() -> Path:
    """The folder with the real data sets; tests that need it are skipped where there is none."""
    if not os.environ.get("COUNTERPOINT_DATA"):
        pytest.skip("COUNTERPOINT_DATA is not set")
    return Path(os.environ["COUNTERPOINT_DATA"])
