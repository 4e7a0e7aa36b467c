import asyncio

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from router.audit.anchors.keeper import AnchorHealth, AnchorKeeper
from router.audit.anchors.witness import AnchorRefused
from router.audit.note import Checkpoint, Signer
from tests.router.audit.logbox import Clock

SIGNER = Signer("eu-1", Ed25519PrivateKey.from_private_bytes(bytes(32)))


def head(size: int) -> Checkpoint:
    return SIGNER.checkpoint(size, bytes(32))


async def test_one_failing_anchor_keeps_no_other_from_its_checkpoint() -> None:
    clock, taken = Clock(), list[int]()
    broken = True

    async def good(checkpoint: Checkpoint) -> None:
        taken.append(checkpoint.size)

    async def bad(checkpoint: Checkpoint) -> None:
        if broken:
            raise AnchorRefused("no entry")
        taken.append(-checkpoint.size)

    keeper = AnchorKeeper({"witness": good, "bucket": bad}, clock)
    assert [one.state for one in keeper.health()] == ["late", "late"]
    await keeper.publish(head(5))
    clock.now += 10
    assert keeper.health() == [
        AnchorHealth("witness", "ok", 5, 10.0, ""),
        AnchorHealth("bucket", "failing", 0, None, "no entry"),
    ]
    broken = False
    await keeper.publish(head(9))
    assert taken == [5, 9, -9]
    clock.now += 181
    assert [(one.state, one.size) for one in keeper.health()] == [("late", 9), ("late", 9)]


async def test_an_anchor_that_never_answers_is_failing() -> None:
    async def silent(_: Checkpoint) -> None:
        await asyncio.Event().wait()

    keeper = AnchorKeeper({"witness": silent}, Clock(), timeout=0.01)
    await keeper.publish(head(5))
    assert [(one.state, one.reason) for one in keeper.health()] == [
        ("failing", "no answer in time")
    ]


async def test_without_anchors_there_is_nothing_to_say() -> None:
    keeper = AnchorKeeper({}, Clock())
    await keeper.publish(head(5))
    assert keeper.health() == []
