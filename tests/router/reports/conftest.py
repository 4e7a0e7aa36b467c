from pathlib import Path

import pytest

from tests.router.audit.logbox import LogBox


@pytest.fixture
def plain(tmp_path: Path) -> LogBox:
    """A folder without a log."""
    return LogBox(tmp_path)
