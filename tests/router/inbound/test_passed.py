"""What stands in front of an exchange lets everything pass, and sees the bytes of the answer."""

from __future__ import annotations

from hashlib import sha256

from router.inbound.passed import Digested, Passed
from tests.router.scripted import FakeExchange


async def test_everything_passes() -> None:
    behind = FakeExchange(b"body", [(b"a", b"b")])
    front = Passed(behind)
    assert front.head is behind.head
    assert (front.gone, front.started) == (False, False)
    assert await front.body(10) == b"".join([piece async for piece in front.chunks(10)]) == b"body"
    left: list[int] = []
    assert front.on_gone(lambda: left.append(1)) is None
    await front.start(200, [(b"x", b"y")])
    await front.write(b"one ")
    await front.end(b"two")
    behind.leave()
    assert (left, front.gone, front.started) == ([1], True, True)
    assert (behind.status, behind.sent, behind.written) == (200, {"x": "y"}, b"one two")


async def test_the_digest_is_of_all_that_passed() -> None:
    front = Digested(FakeExchange(b"", []))
    assert front.digest() == sha256(b"").digest()
    await front.write(b"one ")
    await front.end(b"two")
    assert front.digest() == sha256(b"one two").digest()
