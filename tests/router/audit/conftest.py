from pathlib import Path

import pytest

from tests.router.audit.logbox import LogBox


@pytest.fixture
def box(tmp_path: Path) -> LogBox:
    return LogBox(tmp_path)
