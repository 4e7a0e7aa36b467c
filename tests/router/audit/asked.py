"""A log of a few requests, small enough to know every answer."""

from router.audit.entry import Entry, Interned, Json
from tests.router.audit.logbox import LogBox


def shared(tenant: str, value: str, rule: str) -> Interned:
    who: dict[str, Json] = {
        "tenant": tenant, "app": "", "key": f"{tenant}-1", "model": "assistant",
        "surface": "chat.completions", "purpose": "interactive", "policy": "p",
        "router": {"id": "eu-1", "region": "self:fra1"},
    }  # fmt: skip
    return Interned(
        {
            "who": who,
            "attributes": {"data_class": {"values": [value], "closed": True, "from": []}},
            "allowed": {"rules": [{"rule": rule}], "dry_run": ["trial"]},
        }
    )


RAN = Interned(
    {
        "endpoint": "fra",
        "place": "not observable",
        "ran": {"provider": "self", "process": ["self:fra1", "self:par1"], "retain": ["self:fra1"]},
    }
)
TOLD = Interned(
    {
        "endpoint": "par",
        "place": "self:par1",
        "ran": {"provider": "self", "process": ["self:fra1", "self:par1"], "retain": "nothing"},
    }
)


async def fill(box: LogBox) -> None:
    """clinic/health at fra, shop/public told par; one refused, one misdirected, one still open."""
    log = await box.open()
    clinic, shop = shared("clinic", "health", "german"), shared("shop", "public", "any")

    async def one(id_: str, common: Interned, ran: Interned, status: str = "ok") -> None:
        box.clock.now += 10
        await log.commit(Entry("decision", id_, box.clock.now, {"plan": ["fra", "par"]}, common), 0)
        body: dict[str, Json] = {
            "status": status, "attempts": [{"endpoint": "fra"}], "tokens": [3, 2], "cost": 7,
            "millis": 40,
        }  # fmt: skip
        await log.record(Entry("outcome", id_, box.clock.now, body, ran))

    await one("q1", clinic, RAN)
    await one("q2", shop, TOLD)
    await one("q3", shop, RAN, "incomplete")
    box.clock.now += 10
    await log.record(Entry("refusal", "q4", box.clock.now, {"code": "no_grant"}, clinic))
    await log.record(Entry("misdirected", "q5", box.clock.now, {"key": "k", "target": "none"}))
    box.clock.now += 10
    await log.commit(Entry("decision", "q6", box.clock.now, {"plan": []}, clinic), None)
    await log.tick()
