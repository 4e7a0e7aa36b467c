"""Answers under idempotency keys in Redis, for several processes.

One script takes a key or says what it stands for, one ends it. When Redis can't be asked nothing is
known of a key, so the request is refused: carrying it out might be the second time. What ended
while it could not be asked is told as soon as it can, as spent: also to a Redis that came back
empty. Whatever a refused request's call did, or does yet where it comes late, is undone.
"""

from __future__ import annotations

import asyncio
from base64 import b64decode, b64encode
from typing import Final

import orjson

from router.state.answers import Answer, Differs, InFlight, Spent, Unavailable
from router.state.granted import Granting
from router.state.shared import Scripts

TIMEOUT: Final = 0.5
AGAIN: Final = 1.0
"""Seconds until an end that could not be written is tried again."""
DOUBTS: Final = 10_000
"""Calls whose answer did not come that are known at most; the oldest are left to their lease."""
AT_ONCE: Final = 8
# KEYS: one. ARGV: digest, token, lease in ms. Gives {} when it is taken, else {state, answer}.
BEGIN: Final = """
local held = redis.call('HMGET', KEYS[1], 'd', 's', 'a')
if not held[1] then
  redis.call('HSET', KEYS[1], 'd', ARGV[1], 't', ARGV[2], 's', 'open')
  redis.call('PEXPIRE', KEYS[1], ARGV[3])
  return {}
end
if held[1] ~= ARGV[1] then return {'differs', ''} end
return {held[2], held[3] or ''}
"""
# KEYS: one. ARGV: token, state (`kept`, `spent`, `gone`), answer, window in ms, digest: a key that
# was forgotten before its request ended is no longer free.
END: Final = """
if redis.call('HGET', KEYS[1], 't') ~= ARGV[1] then
  if ARGV[2] == 'gone' or redis.call('EXISTS', KEYS[1]) == 1 then return 0 end
  redis.call('HSET', KEYS[1], 'd', ARGV[5])
end
if ARGV[2] == 'gone' then return redis.call('DEL', KEYS[1]) end
redis.call('HSET', KEYS[1], 's', ARGV[2], 'a', ARGV[3])
redis.call('HDEL', KEYS[1], 't')
return redis.call('PEXPIRE', KEYS[1], ARGV[4])
"""


class SharedAnswers:
    """See `Answers`.

    Args:
        window: seconds that a key counts for, after its request.
        timeout: seconds a reply may take.
        again: seconds between two tries to write that a request ended.
    """

    def __init__(
        self,
        redis: Scripts,
        window: float,
        prefix: str = "domicile",
        timeout: float = TIMEOUT,
        again: float = AGAIN,
    ) -> None:
        self._redis = redis
        self._window = window
        self._prefix = prefix
        self._timeout = timeout
        self._again = again
        self._digests: dict[str, str] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._granting = Granting[Answer | None]()
        self._doubts: dict[str, tuple[str, float]] = {}  # token: key, end of its lease
        self._freeing: asyncio.Task[None] | None = None

    async def begin(
        self, key: str, digest: str, token: str, lease: float, owner: str = ""
    ) -> Answer | None:
        """See `Answers`. How many keys there may be is Redis's own to bound, whosoever they are."""

        def give_back(kept: Answer | None) -> None:
            if kept is None:
                self.release(key, token)

        return await self._granting.ask(self._began(key, digest, token, lease), give_back)

    async def _began(self, key: str, digest: str, token: str, lease: float) -> Answer | None:
        given = (self._key(key), digest, token, str(int(lease * 1000)))
        try:
            async with asyncio.timeout(self._timeout):
                found = await self._redis.eval(BEGIN, 1, *given)
            kept = _read(found)
        except (InFlight, Differs, Spent):
            raise
        except Exception as error:
            # It may have been taken all the same, for a request that will not run; or be taken yet,
            # by a call that comes after the one that undoes it.
            self.release(key, token)
            self._doubt(key, token, lease)
            raise Unavailable(f"redis: {type(error).__name__}") from error
        if kept is None:
            self._digests[token] = digest
        return kept

    def keep(self, key: str, token: str, answer: Answer | None) -> None:
        """See `Answers`."""
        state, text = ("spent", "") if answer is None else ("kept", _written(answer))
        self._later(key, token, state, text)

    def release(self, key: str, token: str) -> None:
        """See `Answers`."""
        self._later(key, token, "gone", "")

    async def close(self) -> None:
        """See `Answers`."""
        await self._granting.close(self._timeout)
        if self._tasks:
            await asyncio.wait(self._tasks, timeout=self._timeout * 4)
        for task in (*self._tasks, *([self._freeing] if self._freeing is not None else [])):
            task.cancel()

    def _key(self, key: str) -> str:
        return f"{self._prefix}:once:{{{key}}}"

    def _later(self, key: str, token: str, state: str, text: str) -> None:
        given = self._key(key), token, state, text, self._digests.pop(token, "")
        task = asyncio.get_running_loop().create_task(self._ended(*given))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _ended(self, key: str, token: str, state: str, text: str, digest: str) -> None:
        """Write that a request ended. One that ran is tried again for as long as its key counts:
        when its lease is over it would else run twice. One that did not, see `_frees`."""
        until = asyncio.get_running_loop().time() + self._window
        while not await self._wrote(key, token, state, text, str(int(self._window * 1000)), digest):
            if state == "gone":
                self._doubt(key, token, self._window, named=True)
                return
            if asyncio.get_running_loop().time() >= until:
                return
            state, text = "spent", ""  # not so many bytes of answers for so long
            await asyncio.sleep(self._again)

    def _doubt(self, key: str, token: str, lease: float, *, named: bool = False) -> None:
        """A key may be held for nobody: for a whole lease its client would be told to wait."""
        loop = asyncio.get_running_loop()
        if len(self._doubts) >= DOUBTS:
            del self._doubts[next(iter(self._doubts))]
        name = key if named else self._key(key)
        self._doubts.setdefault(token, (name, loop.time() + lease))
        if self._freeing is None or self._freeing.done():
            self._freeing = loop.create_task(self._frees())

    async def _frees(self) -> None:
        """Undo what calls without an answer did: a while after them, until it is written. Where
        Redis is away a few are tried in turn, not all: it would be asked for each without a pause.
        """
        loop = asyncio.get_running_loop()
        while self._doubts:
            await asyncio.sleep(self._again)
            known = tuple(self._doubts.items())
            for at in range(0, len(known), AT_ONCE):
                some = known[at : at + AT_ONCE]
                wrote = await asyncio.gather(
                    *(self._wrote(key, token, "gone", "", "0", "") for token, (key, _) in some)
                )
                for (token, held), done in zip(some, wrote, strict=True):
                    left = self._doubts.pop(token, None) is not None
                    if left and not done and loop.time() < held[1]:
                        self._doubts[token] = held  # behind those that were not tried
                if not any(wrote):
                    break

    async def _wrote(self, *given: str) -> bool:
        try:
            async with asyncio.timeout(self._timeout * 4):
                await self._redis.eval(END, 1, *given)
        except Exception:  # noqa: BLE001 - nobody waits for it; it is tried again, or its lease ends
            return False
        return True


def _read(found: object) -> Answer | None:
    if not isinstance(found, list):
        raise TypeError("the script gave no list")
    if not found:
        return None
    state, text = found
    if state == b"differs":
        raise Differs
    if state == b"spent":
        raise Spent
    if state != b"kept":
        raise InFlight
    told = orjson.loads(text)
    headers = tuple((b64decode(name), b64decode(value)) for name, value in told["headers"])
    body = b64decode(told["body"])
    origin = told["endpoint"], told["footprint"], told["sent"]
    return Answer(told["id"], *origin, told["status"], headers, body)


def _written(answer: Answer) -> str:
    def text(data: bytes) -> str:
        return b64encode(data).decode()

    told = {
        "id": answer.id,
        "endpoint": answer.endpoint,
        "footprint": answer.footprint,
        "sent": answer.sent,
        "status": answer.status,
        "headers": [[text(name), text(value)] for name, value in answer.headers],
        "body": text(answer.body),
    }
    return orjson.dumps(told).decode()
