from __future__ import annotations

from pathlib import Path

import pytest

from router.audit.disk import LocalDisk
from router.audit.errors import AuditError
from router.narrowing.veto_file import VetoFile
from router.reconcile.imposing import impose
from tests.router.audit.logbox import LogBox


def test_the_next_start_knows(tmp_path: Path) -> None:
    assert impose(tmp_path, "eu-1", {"sonnet": "it ran in X", "nova": "y" * 900}, 7.0) == (
        "sonnet", "nova",
    )  # fmt: skip
    assert impose(tmp_path, "eu-1", {"sonnet": "again"}, 8.0) == ()
    imposed = VetoFile.open(tmp_path, "eu-1", LocalDisk()).state.imposed
    assert [(one.name, one.by, one.at, len(one.reason)) for one in imposed] == [
        ("sonnet", "reconcile", 7.0, 11), ("nova", "reconcile", 7.0, 500),
    ]  # fmt: skip


async def test_a_running_router_s_file_is_left_alone(tmp_path: Path) -> None:
    box = LogBox(tmp_path)
    log = await box.open(disk=LocalDisk())
    with pytest.raises(AuditError, match="running process"):
        impose(box.folder, "eu-1", {"sonnet": "x"}, 7.0)
    await log.close()
