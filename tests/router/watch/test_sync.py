"""Everything AWS says now, in every source region, against what we hold."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from regions.document import parse_as
from router.narrowing.accepted import AcceptedFile
from router.providers.base import AwsKeys
from router.simulator.bedrock import TEST_KEY, TEST_SECRET, BedrockStub
from router.snapshot import Snapshot
from router.transport.client import HttpTransport
from router.watch.bedrock_reader import BedrockReader
from router.watch.sync import Report, accesses, draft, sync
from tests.router.folders import AT
from tests.router.watch.test_drift import EU, SIX, folder, now_lists, stub

__all__ = ["stub"]


@pytest.fixture
async def reader() -> AsyncIterator[BedrockReader]:
    transport = HttpTransport()
    yield BedrockReader(transport, lambda: AT, asyncio.get_running_loop().time)
    await transport.close()


async def run(snapshot: Snapshot, reader: BedrockReader, *sources: str) -> Report:
    return await sync(snapshot, reader, sources, None, AT)


async def test_the_profile_in_use_is_as_known(
    tmp_path: Path, stub: BedrockStub, reader: BedrockReader
) -> None:
    report = await run(folder(tmp_path, stub).snapshot(), reader)
    assert report.sources == ("eu-central-1",)
    assert report.endpoints == ()
    # The stub offers one profile of the many that the catalog lists.
    assert {one.kind for one in report.changes} == {"gone"}
    assert EU not in {one.profile for one in report.changes}
    assert report.unread == ()


async def test_a_new_member_is_found_and_drafted(
    tmp_path: Path, stub: BedrockStub, reader: BedrockReader
) -> None:
    snapshot = folder(tmp_path, stub).snapshot()
    now_lists(stub, *SIX, "eu-west-2")
    report = await run(snapshot, reader)
    [change] = [one for one in report.changes if one.kind == "members"]
    assert (change.profile, change.added, change.removed) == (EU, ("eu-west-2",), ())
    [endpoint] = report.endpoints
    assert endpoint.widened
    assert set(endpoint.seen["process"]) - set(endpoint.expected["process"]) == {"aws:eu-west-2"}
    _, file = parse_as(draft(report, "2026-11-29"), "x.yaml", AcceptedFile)
    [row] = file.accepted
    assert (row.profile, row.source) == (EU, "eu-central-1")
    assert set(row.members) == {*SIX, "eu-west-2"}


async def test_another_source_is_asked_with_the_credential_there_is(
    tmp_path: Path, stub: BedrockStub, reader: BedrockReader
) -> None:
    report = await run(folder(tmp_path, stub).snapshot(), reader, "aws:eu-west-1")
    assert report.sources == ("eu-west-1",)
    assert {one.source for one in report.changes} == {"eu-west-1"}


async def test_what_cannot_be_read_is_told(
    tmp_path: Path, stub: BedrockStub, reader: BedrockReader
) -> None:
    snapshot = folder(tmp_path, stub).snapshot()
    stub.kill()
    report = await run(snapshot, reader)
    assert not report.drifted
    assert len(report.unread) == 2


async def test_the_role_stands_in_where_an_endpoint_uses_it(
    tmp_path: Path, stub: BedrockStub, reader: BedrockReader
) -> None:
    box = folder(tmp_path, stub)
    path = tmp_path / "baseline" / "main.yaml"
    path.write_text(path.read_text().replace('"file:aws.json"', "instance-role"))
    snapshot = box.snapshot()
    assert accesses(snapshot, None) == {}
    assert len((await run(snapshot, reader)).unread) == 1
    role = AwsKeys(TEST_KEY, TEST_SECRET.secret_key)
    assert accesses(snapshot, role)["eu-central-1"].credential is role
    assert (await sync(snapshot, reader, (), role, AT)).unread == ()


def test_nothing_to_accept_is_a_file_all_the_same() -> None:
    _, file = parse_as(draft(Report((), (), (), ()), "2026-11-29"), "x.yaml", AcceptedFile)
    assert file.accepted == ()
