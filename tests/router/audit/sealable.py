"""Logs of several segments whose decisions name what they may be kept in."""

from datetime import timedelta
from hashlib import sha256

import orjson

from router.audit.entry import Entry, Interned, Json
from router.audit.layout import Folder
from router.audit.sealing import Sealer, SealTerms
from tests.router.audit.faultydisk import QuickDisk
from tests.router.audit.logbox import LogBox
from tests.router.audit.shelf import Shelf

TERMS = SealTerms("aws:eu-central-1", timedelta(days=1000), "logs/")
INSIDE = ("aws:eu-central-1", "aws:eu-west-1")
FACTS = b'{"a.yaml":"facts"}'


async def fill(
    box: LogBox, count: int = 30, retain: tuple[str, ...] = INSIDE, kept: Json = None
) -> None:
    """One process; its segments end after 2 kB. `kept` is what rules say of the records."""
    box.segment_bytes = 2000
    log = await box.open()
    content = orjson.dumps({"data": sha256(FACTS).hexdigest(), "format": 1})
    digest = sha256(content).hexdigest()
    await log.snapshot(sha256(FACTS).hexdigest(), FACTS)
    await log.snapshot(digest, content)
    allowed: dict[str, Json] = {"retain": list(retain)}
    if kept is not None:
        allowed["kept"] = kept
    shared = Interned({"allowed": allowed, "snapshot": digest})
    for number in range(count):
        box.clock.now += 10
        id_ = f"q{number}-{box.clock.now}"
        await log.commit(Entry("decision", id_, box.clock.now, {"plan": ["a"]}, shared), None)
        body: dict[str, Json] = {"status": "ok", "attempts": [{"endpoint": "a"}]}
        await log.record(Entry("outcome", id_, box.clock.now, body))
        await log.tick()
    await log.close()


def sealer(box: LogBox, shelf: Shelf, terms: SealTerms = TERMS) -> Sealer:
    return Sealer(Folder(box.folder), "eu-1", shelf, terms, QuickDisk(), box.clock)
