"""Prefix affinity: requests that begin alike go where that beginning is in the engine's cache.

A prompt is cut into blocks, and each block's hash covers all before it: equal hashes, equal
beginnings. A replica is chosen by what it must do before the answer's first token: the work that
it has, and the tokens of this prompt that its cache doesn't hold.

1. Every replica that this router sent the beginning to, and that has not written over it since,
   is worth the tokens that it saves; the least busy one is always among the choices.
2. While even the least busy one has work, a saved token is worth more: it spares all who come
   until the queues are empty. See `SPARED`.
3. A conversation that this router doesn't know is given a little more at the replica that
   rendezvous hashing of its anchor names, as far as others send there: routers that share nothing
   choose alike, and a replica that comes or goes moves only its own share.

Hashes are BLAKE2b: the same in every process, and no client can aim for a collision that
pays (one would only send a request to a replica without its cache).
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from itertools import accumulate
from math import inf
from typing import Final

from regions.fleet import endpoint_of

BLOCK: Final = 512
"""Characters of the first blocks: about 128 tokens, a few blocks of an engine's cache."""
EACH: Final = 8
"""Blocks of one size; the next eight are twice as large, eight sizes in all."""
SIZES: Final = tuple(BLOCK << step for step in range(8) for _ in range(EACH))
BLOCKS: Final = len(SIZES)
"""Blocks looked at, at most: a million characters."""
SIZES_UPTO: Final = tuple(accumulate(SIZES, initial=0))
"""Characters of the first so many blocks."""
ANCHOR: Final = 4
"""The anchor is the end of the first user message, or this many blocks into it if that is first."""
SPARED: Final = 4.0
"""A token of work delays those who come until the queue it stands in is empty: as many as are in it
by now, times `r / (1 - r)` at a load of `r`. That is four times at the 80 % of capacity that a
fleet should be able to run at. How many are in it is told by its work, over a request's usual."""
PATIENCE: Final = 8.0
"""A saved prompt counts so for as many usual requests at most, however long it is: for the sake of
others nobody waits longer than that times `SPARED` the shortest queue."""
_MEAN: Final = 100
"""Requests after which the newest weighs no less in what one usually has to compute."""
GUESS: Final = 0.2
"""The share of a prompt that is taken for held where another router may have sent its beginning.
More finds more of what others sent, and makes longer queues: see `docs/simulation.md`."""
TIE: Final = 128.0
"""Tokens by which a replica may be busier and still count as no less idle: a part of an engine's
step, for which every request waits anyway. Of a short prompt not more than `_BRIEF` of it."""
_BRIEF: Final = 0.1
_HOLDERS: Final = 64
"""Replicas remembered for a block, the newest."""
TURNS: Final = 8
"""Blocks are kept so, while all that can be remembered is filled so many times."""
SPARED_AT_ONCE: Final = 16
"""Blocks passed over for each that is remembered, at most."""


@dataclass(frozen=True, slots=True)
class Trail:
    """The beginning of a prompt: chained block hashes, and what names the conversation.

    `stem`: how many blocks lie before the anchor's end; who knows more knows the conversation.
    `length`: characters of the whole prompt, of which the blocks may be the first part only.
    `owner`: whose it is, as the tenant.
    """

    blocks: tuple[bytes, ...]
    anchor: bytes
    stem: int = 0
    length: int = 0
    owner: str = ""


def trail(
    parts: Iterable[tuple[str, str]], salt: bytes = b"", session: bytes = b"", owner: str = ""
) -> Trail:
    """The trail of a prompt's parts, each a role and a text, in order.

    Args:
        salt: what caches are never shared across, as the model.
        session: the client's own name for the conversation; it then is the anchor.
        owner: whose it is.
    """
    anchor = blake2b(salt + b"\0" + session, digest_size=8).digest() if session else b""
    blocks: list[bytes] = []
    chain, rest, length = blake2b(salt, digest_size=8).digest(), "", 0
    far = stem = BLOCKS
    for role, text in parts:
        length += len(text) + len(role) + 2
        if len(blocks) >= BLOCKS:
            continue
        rest += f"\x1e{role}\x1f{text[: SIZES_UPTO[-1]]}"
        if role == "user":
            far = min(far, len(blocks) + ANCHOR)
        at = 0
        while len(blocks) < BLOCKS and len(rest) - at >= (size := SIZES[len(blocks)]):
            chain = _linked(chain, rest[at : at + size])
            blocks.append(chain)
            at += size
        rest = rest[at:]
        if not anchor and len(blocks) >= far:
            anchor, stem = blocks[far - 1], far - 1
        if not anchor and role == "user":
            anchor, stem = _linked(chain, rest), len(blocks)
    known = min(stem, len(blocks))
    return Trail(tuple(blocks), anchor or _linked(chain, rest), known, length, owner)


def _linked(before: bytes, text: str) -> bytes:
    return blake2b(before + text.encode("utf-8", "surrogatepass"), digest_size=8).digest()


def rendezvous(anchor: bytes, keys: Iterable[str]) -> str:
    """The anchor's own replica of these: the same in every router."""
    return min(keys, key=lambda key: blake2b(anchor + key.encode(), digest_size=8).digest())


_Holder = tuple[str, float]
_Entry = tuple[str, int, tuple[_Holder, ...]]
"""Whose a block was last, as how manyeth block remembered, and who holds it."""


def _endless(key: str) -> float:
    """The room of a cache of which nothing is known."""
    del key
    return inf


def _all(key: str) -> float:
    """What others have of the requests at a replica, where it isn't known how many routers send."""
    del key
    return 1.0


class Affinity:
    """Where beginnings were sent, by this router; bounded, the longest unused is forgotten first.
    An owner that has less than an equal share keeps it while others fill the rest, `TURNS` times as
    long: else whoever sends what nobody sends again would have all others' beginnings forgotten.

    Args:
        spared: what it is worth to others when what a request usually has to compute is saved: so
            many times the work that even the least busy replica has. 0: nothing.
        guess: the share of a prompt whose conversation is not known that is taken for held at the
            replica that its anchor names, as far as others send there: one of them may have sent
            its beginning. Where none does, `TIE` of its tokens, so that a router that begins anew
            finds what it sent before.
        bound: blocks remembered.
    """

    __slots__ = (
        "_born", "_bound", "_count", "_gone", "_guess", "_owned", "_seen", "_spared", "_usual",
        "_written",
    )  # fmt: skip

    def __init__(self, spared: float = SPARED, guess: float = GUESS, bound: int = 1 << 17) -> None:
        self._spared = spared
        self._guess = guess
        self._bound = bound
        # Not a plain dict: its first key is found behind the places of all that were dropped.
        self._seen: OrderedDict[bytes, _Entry] = OrderedDict()
        self._count = 0
        self._owned: dict[str, int] = {}
        # A replica that comes counts on from the highest that went: what it held before was written
        # before it was born, so nobody needs to look for that.
        self._written: dict[str, float] = {}
        self._born: dict[str, float] = {}
        self._gone = 0.0
        self._usual: dict[str, tuple[int, float]] = {}

    def choose(
        self,
        trail: Trail,
        loads: Mapping[str, float],
        prompt: int,
        least: str,
        room: Callable[[str], float] = _endless,
        others: Callable[[str], float] = _all,
        queues: bool = False,
        keys: Iterable[str] | None = None,
    ) -> tuple[str, int]:
        """The replica for a prompt, and how many of its tokens that has yet to compute; remembered.

        Args:
            loads: tokens of work at each replica that may be chosen.
            prompt: its tokens.
            least: the least busy replica, taken when no cache is worth more.
            room: the tokens that a replica's cache can hold.
            others: the share of the requests at a replica that this router did not send.
            queues: whether every replica has prompts to compute, so that whoever comes waits.
            keys: all replicas, where `loads` finds out one by one which of them may be chosen.
        """
        held, known = self._held(trail, prompt, room)
        place = endpoint_of(least)
        count, usual = self._usual.get(place, (0, float(prompt)))
        # Where all queue, what is spared at one is sent elsewhere less: all of them are one queue.
        queue = sum(loads.values()) / len(loads) if queues else loads[least]
        worth, most = self._spared * queue, PATIENCE * usual
        wanted = {
            key: tokens + worth * min(tokens, most) / max(1.0, usual)
            for key, tokens in held.items()
            if key in loads
        }
        wanted.setdefault(least, 0.0)
        if not known and self._guess:
            home = rendezvous(trail.anchor, loads if keys is None else keys)
            if home not in loads:
                home = rendezvous(trail.anchor, loads)
            share = max(self._guess * others(home) * prompt, min(TIE, _BRIEF * prompt))
            wanted[home] = max(wanted.get(home, 0.0), share)
        chosen = min(wanted, key=lambda key: (loads[key] - wanted[key], key != least))
        left = prompt - held.get(chosen, 0)
        count = min(count + 1, _MEAN)
        self._usual[place] = count, usual + (left - usual) / count
        self.remember(trail.blocks, chosen, left, trail.owner)
        return chosen, left

    def _held(
        self, trail: Trail, prompt: int, room: Callable[[str], float]
    ) -> tuple[dict[str, int], bool]:
        """The prompt's tokens in the cache of each replica, and if one knows the conversation.

        The last token is always computed.
        """
        held: dict[str, int] = {}
        known, before, length = False, None, trail.length or SIZES_UPTO[len(trail.blocks)]
        for count in range(len(trail.blocks), 0, -1):
            found = self._seen.get(trail.blocks[count - 1])
            if found is None or found is before:
                continue
            tokens = min(prompt - 1, prompt * SIZES_UPTO[count] // length)
            before = found
            for key, written in found[2]:
                if key not in held and self._holds(key, written, room):
                    held[key] = tokens
                    known = known or count > trail.stem
        return held, known

    def _holds(self, key: str, written: float, room: Callable[[str], float]) -> bool:
        """Whether what was sent to a replica then is there still."""
        born = self._born.get(key)
        return born is not None and born <= written and self._written[key] - written <= room(key)

    def remember(self, blocks: Sequence[bytes], key: str, fresh: int = 0, owner: str = "") -> None:
        """A replica is about to hold these blocks, and to write so many tokens for that."""
        born = self._born.setdefault(key, self._gone)
        written = self._written[key] = self._written.get(key, born) + fresh
        seen, owned = self._seen, self._owned
        self._count += len(blocks)
        mine: _Entry = (owner, self._count, ((key, written),))
        before, joined, more = None, mine, 0
        for block in blocks:
            found = seen.pop(block, mine)
            if found is not before:
                before, joined = found, _joined(found, key, mine)
            if found is mine:
                more += 1
            elif found[0] != owner:
                more += 1
                self._lost(found[0])
            seen[block] = joined
        if more:
            owned[owner] = owned.get(owner, 0) + more
        if len(seen) > self._bound:
            self._drop(SPARED_AT_ONCE * len(blocks))

    def _drop(self, spared: int) -> None:
        """Forget what is too much; so many blocks of those who have little may be passed over."""
        seen, owned, bound = self._seen, self._owned, self._bound
        share, late = bound / len(owned), self._count - TURNS * bound
        while len(seen) > bound:
            block, entry = seen.popitem(last=False)
            left = owned[entry[0]]
            if left <= share and spared and entry[1] > late:
                seen[block] = entry
                spared -= 1
            elif left > 1:
                owned[entry[0]] = left - 1
            else:
                del owned[entry[0]]

    def _lost(self, owner: str) -> None:
        """One block less is an owner's."""
        left = self._owned[owner] - 1
        if left:
            self._owned[owner] = left
        else:
            del self._owned[owner]

    def forget(self, keep: frozenset[str]) -> None:
        """Drop replicas that are gone: what they held is void at once, and leaves the table as it
        is written over or grows old. Asked every second, between requests: no block is looked at.
        """
        gone = self._written.keys() - keep
        if not gone:
            return
        for key in gone:
            self._gone = max(self._gone, self._written.pop(key) + 1)
            del self._born[key]
        for place in self._usual.keys() - {endpoint_of(key) for key in keep}:
            del self._usual[place]


def _joined(found: _Entry, key: str, mine: _Entry) -> _Entry:
    """The entry with a new holder in front."""
    if found is mine:
        return mine
    others = tuple([holder for holder in found[2] if holder[0] != key])[: _HOLDERS - 1]
    return mine[0], mine[1], mine[2] + others
