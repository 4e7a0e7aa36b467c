"""The router is itself a place: an early 421 is never wrong, and nobody outside reads a prompt."""

from __future__ import annotations

import asyncio
import hashlib
import json
import os
import tempfile
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from unittest.mock import patch

from hypothesis import event, example, given, settings
from hypothesis import strategies as st

from policies.attributes import EVERYONE, Declaration
from policies.conditions import AnyOf, Condition, Is, Not
from policies.model import App, Grant, Rule
from policies.timed import always
from regions.catalog import Catalog
from regions.places import Boundary
from router.app import SURFACES, Clocks, Router
from router.audit.layout import Folder
from router.audit.lines import Value
from router.audit.reading import LogReader
from router.audit.settings import LogSettings
from router.auth import KeyRing, Principal, StoredKey
from router.config import Peer
from router.ids import Ids
from router.snapshot import Snapshot
from router.types import Arrival, Purpose
from tests.router.audit.faultydisk import QuickDisk
from tests.router.house import OWN, Plan, signing_key, snapshot
from tests.router.scripted import FakeExchange, Reply, ScriptedTransport, answer

ATLAS = Catalog.load(OWN).atlas
REGIONS = ("self:fra1", "self:par1", "self:iad1")
PLACES: tuple[Boundary, ...] = (
    ATLAS.jurisdiction("EU"), ATLAS.country("DE"), ATLAS.country("FR"), ATLAS.country("US"),
    ATLAS.country("GB"), ATLAS.country("DE") | ATLAS.country("US"), ATLAS.worldwide(),
    ATLAS.worldwide() - ATLAS.country("US"),
)  # fmt: skip
DECLARED = {
    "data": Declaration("data", frozenset("xy"), frozenset("x"), EVERYONE),
    "kind": Declaration("kind", frozenset("xy"), frozenset(), EVERYONE),
    "sector": Declaration("sector", frozenset("xy"), frozenset("y"), frozenset({"key", "app"})),
}
REFUSED = {"misdirected", "no_router_inside_boundary", "no_endpoint_inside_boundary", "no_grant"}
CANARY = "canary-4b1d"


@dataclass(frozen=True)
class Case:
    """A policy, a router's place, and what key, headers and body say."""

    grant: Boundary
    rules: Sequence[tuple[Condition, Boundary]]
    trusted: frozenset[str]
    router: str
    peers: Sequence[str]
    by_key: dict[str, str]
    by_header: dict[str, str]
    by_body: dict[str, str]


VALUES = st.sampled_from("xy")
LEAF = st.builds(lambda n, v: Is(n, frozenset(v)), st.sampled_from(sorted(DECLARED)), VALUES)
OWN_LEAF = st.builds(lambda v: Not(Is("sector", frozenset(v))), VALUES)
CONDITION: st.SearchStrategy[Condition] = (
    LEAF | OWN_LEAF | st.builds(lambda a, b: AnyOf((a, b)), LEAF, LEAF | OWN_LEAF)
)
SAID = st.dictionaries(st.sampled_from(["data", "kind"]), st.sampled_from("xy"), max_size=2)
CASE = st.builds(
    Case,
    grant=st.sampled_from(PLACES) | st.just(ATLAS.worldwide()),
    rules=st.lists(st.tuples(CONDITION, st.sampled_from(PLACES)), min_size=1, max_size=3),
    trusted=st.frozensets(st.sampled_from(["data", "kind", "sector"])),
    router=st.sampled_from(REGIONS),
    peers=st.lists(st.sampled_from([*REGIONS, "self:lon1"]), max_size=2),
    by_key=st.dictionaries(st.just("sector"), st.sampled_from("xy")),
    by_header=SAID,
    by_body=SAID,
)


def policy_of(case: Case, folder: Path) -> Snapshot:
    """The case as a snapshot."""
    rules = tuple(
        Rule(f"rule-{number}", condition, process=always(place))
        for number, (condition, place) in enumerate(case.rules)
    )
    peers = tuple(Peer(region=one, url=f"https://{one[5:]}.example.com") for one in case.peers)
    plan = Plan(rules=rules, declared=DECLARED, region=case.router, peers=peers)
    made = snapshot(plan, {region: f"http://{region[5:]}:80" for region in REGIONS}, folder)
    tenants = {**made.policy.tenants}
    tenants["world"] = replace(tenants["world"], grant=Grant.within(always(case.grant)))
    app = App("crm", case.trusted)
    ring = KeyRing(
        [
            StoredKey(
                hashlib.sha256(b"dom-key").digest(),
                Principal(
                    "a-key", "world", "crm", attributes={k: (v,) for k, v in case.by_key.items()}
                ),
            )
        ]
    )
    return replace(made, policy=replace(made.policy, tenants=tenants, apps={"crm": app}), keys=ring)


class Unread(FakeExchange):
    """A request whose body says whether anybody read it."""

    read = False

    async def body(self, limit: int) -> bytes:
        self.read = True
        return await super().body(limit)


def request(case: Case) -> Unread:
    """What the client sends."""
    metadata = {f"domicile-attr-{name}": value for name, value in case.by_body.items()}
    body = {
        "model": "assistant",
        "messages": [{"role": "user", "content": CANARY}],
        "metadata": metadata,
    }
    headers = [(b"authorization", b"Bearer dom-key")]
    headers += [(f"x-domicile-attr-{k}".encode(), v.encode()) for k, v in case.by_header.items()]
    return Unread(json.dumps(body).encode(), headers)


def always_good(host: str, number: int) -> Reply:
    return answer()


async def ask(case: Case, folder: Path, *, early: bool) -> tuple[Unread, list[str]]:
    """Run it; gives the exchange and the hosts asked. Without `early` only the full decision
    speaks."""
    loop = asyncio.get_running_loop()
    clocks = Clocks(lambda: 1_800_000_000.0, loop.time, os.urandom)
    transport = ScriptedTransport(always_good)
    settings_ = LogSettings(folder / "log", "eu-1", signing_key(folder))
    with ExitStack() as stack:
        stack.enter_context(patch("router.audit.log.LocalDisk", QuickDisk))
        if not early:
            stack.enter_context(patch("router.deciding.elsewhere", lambda *_: None))
        router = await Router.open(policy_of(case, folder), settings_, clocks, transport)
        exchange = request(case)
        now = loop.time()
        await router.pipeline.run(
            Arrival(exchange, Ids(clocks.wall, clocks.entropy)(), router.live.stamp(), now,
                    now + 20, SURFACES[0], Purpose.INTERACTIVE, router.live.snapshot)
        )  # fmt: skip
        await router.close(0)
    return exchange, [sent.origin.host for sent in transport.sent]


def both(case: Case) -> tuple[Unread, Unread, list[str], list[dict[str, Value]]]:
    """With and without the early answer; the hosts that were asked; the log of the first."""

    async def run() -> tuple[Unread, Unread, list[str], list[dict[str, Value]]]:
        with tempfile.TemporaryDirectory() as one, tempfile.TemporaryDirectory() as other:
            first, asked = await ask(case, Path(one), early=True)
            entries = LogReader(Folder(Path(one) / "log").log("eu-1")).entries()
            kept = [dict(shown.body) for shown in entries if shown.kind == "misdirected"]
            second, also = await ask(case, Path(other), early=False)
            assert asked == also
            return first, second, asked, kept

    return asyncio.run(run())


LATE = Case(
    ATLAS.worldwide(), [(Is("data", frozenset("y")), ATLAS.country("US"))], frozenset(),
    "self:fra1", ["self:iad1"], {}, {}, {"data": "y"},
)  # fmt: skip
SOON = replace(LATE, by_header={"data": "y"})
# The header alone would send it away; but what a trusted body says replaces nothing, it adds.
TRUSTED = replace(SOON, trusted=frozenset({"data"}), by_body={"data": "x"})


def test_what_only_the_body_says_is_found_late() -> None:
    early, full, asked, kept = both(LATE)
    assert (early.read, early.code, full.code) == (True, "misdirected", "misdirected")
    assert (asked, kept) == ([], [])


def test_what_the_header_says_is_found_before_the_body_is_read() -> None:
    early, full, asked, kept = both(SOON)
    assert (early.read, early.code, full.code) == (False, "misdirected", "misdirected")
    assert (asked, len(kept)) == ([], 1)


@settings(max_examples=60, deadline=None)
@given(case=CASE)
@example(TRUSTED)
def test_an_early_421_implies_that_the_full_decision_excludes_this_router(case: Case) -> None:
    early, full, asked, kept = both(case)
    event(f"{early.code}, read: {early.read}")
    place = ATLAS.place(case.router)
    if early.read:  # nobody was sent away early: both are the full decision
        assert (early.status, early.code) == (full.status, full.code)
        assert kept == []
    else:
        assert early.code in ("misdirected", "no_router_inside_boundary")
        assert full.code in REFUSED
        assert asked == []
        assert [set(one) for one in kept] == [{"key", "target", "when"}]
        peers = [one for one in case.peers if case.grant.contains(ATLAS.place(one))]
        assert early.code == "no_router_inside_boundary" or peers
    if asked:  # whoever asked an endpoint from here may process here
        assert case.grant.contains(place)
