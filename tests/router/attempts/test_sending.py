"""One attempt's way out and back: what a provider says of an answer goes with what comes of it."""

from __future__ import annotations

from pathlib import Path

from router.audit.bodies import Body, attempts_in
from router.audit.layout import Folder
from router.audit.reading import LogReader
from tests.router.scripted import JSON, Reply, Script, answer, event, scripted, stream

CALL = "req_0123456789abcdef"
HEAD = (*JSON, (b"x-request-id", CALL.encode()))


def first(reply: Reply) -> Script:
    """`fra1` answers so, everybody else well."""
    return lambda host, number: reply if host == "fra1" else answer()


def tried(folder: Path) -> list[Body]:
    """The outcome's attempts, as the log tells them."""
    entries = list(LogReader(Folder(folder / "log").log("eu-1")).entries())
    (body,) = [entry.body for entry in entries if entry.kind == "outcome"]
    return attempts_in(body)


async def test_an_attempt_that_failed_has_the_calls_id_too(tmp_path: Path) -> None:
    for number, reply in enumerate(
        (
            Reply(500, HEAD, [b"{}"]),
            Reply(200, HEAD, [b'{"error":{"type":"overloaded","message":"x"}}']),
            Reply(200, HEAD, [b"{broken"]),
        )
    ):
        folder = tmp_path / str(number)
        folder.mkdir()
        async with scripted(folder, first(reply)) as world:
            assert (await world.ask()).status == 200
        assert [one.get("call") for one in tried(folder)] == [CALL, None]


async def test_an_answer_of_another_type_than_asked_for_is_cut_off(tmp_path: Path) -> None:
    reply = stream(event(content="hi"))
    async with scripted(tmp_path, first(reply)) as world:
        assert (await world.ask()).status == 200
        assert world.transport.replies[0].aborted
    assert [one["result"] for one in tried(tmp_path)] == ["bad_answer", "ok"]
