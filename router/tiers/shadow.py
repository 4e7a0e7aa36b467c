"""The shadow lane: of a few requests, what both tiers make of them, judged.

A tenant consents to a share of its requests; a graded model may explore less. What is asked again
is authorised, decided, committed and recorded anew, as the request of the key it came from, and
never leaves that tenant's boundary. The client's answer is not kept: both tiers are asked, one
request at a time, after it. What remains is an outcome without text.
"""

from __future__ import annotations

import asyncio
from collections import Counter, deque
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from heapq import merge
from operator import attrgetter
from typing import Final

import orjson

from classifiers.declared import HEADER
from classifiers.difficulty.audit import Shadow, StandingAudit, explores
from classifiers.difficulty.audit import Tier as Chosen
from classifiers.difficulty.cascade import Answer
from classifiers.difficulty.dataset import features_row
from classifiers.difficulty.features import extract
from classifiers.view import PromptView
from policies.model import Model, Policy
from regions.model import Tier
from router.inbound.exchange import Headers
from router.inbound.inward import InwardExchange
from router.live import Live
from router.settling import Ended
from router.surfaces.base import Surface
from router.tiers.grading import Graders
from router.tiers.judges import Means, Pair, Qualities, answer_of, judge, wanted_of
from router.tiers.outcome_store import Outcome, OutcomeStore
from router.tiers.sandbox import NoSandbox, Sandbox
from router.tiers.strata import kind_of, script_of
from router.types import Arrival, Plan, Purpose, Stored, Verdict

WAITING: Final = 64
"""Requests kept for later at most: a prompt waits in memory only, and not for long. When they are
so many, whose are the most gives up its newest for one whose are fewer."""
SURFACE: Final = "chat.completions"
_DROPPED: Final = frozenset({"stream", "stream_options", "model", "n"})
_ATTRIBUTES: Final = HEADER.encode()


@dataclass(frozen=True, slots=True)
class Job:
    """One request to ask again: whose, what, what grading chose for it, and of which models."""

    key: str
    tenant: str
    model: str
    chose: Chosen
    pair: tuple[str, str]
    headers: Headers
    body: Mapping[str, object]
    surface: Surface
    view: PromptView


@dataclass(slots=True)
class ShadowLane:
    """One per process; belongs to its event loop.

    `draw` gives a number from 0 to 1, `new_id` a request id. `begin` names what walks a request
    through the twelve steps. Without a `store` outcomes only feed the standing audit.
    """

    live: Live
    graders: Graders
    draw: Callable[[], float]
    new_id: Callable[[], str]
    store: OutcomeStore | None = None
    sandbox: Sandbox = field(default_factory=Sandbox)
    _run: Callable[[Arrival], Awaitable[None]] | None = None
    _waiting: deque[Job] = field(default_factory=deque)
    _task: asyncio.Task[None] | None = None
    _writing: asyncio.Lock = field(default_factory=asyncio.Lock)

    def begin(self, run: Callable[[Arrival], Awaitable[None]]) -> None:
        """Take up work, with the pipeline that everything else goes through."""
        self._run = run

    def restore(
        self,
        store: OutcomeStore,
        others: Sequence[OutcomeStore] = (),
        gone: Sequence[OutcomeStore] = (),
    ) -> None:
        """Keep outcomes in a store, and know again what is in all: an alarm outlives a restart.

        Args:
            others: the stores of this router's other processes.
            gone: those of processes that it had when it had more, or fewer.

        What can't be written is noted, and written with the next outcome: a full disk is no reason
        not to serve.

        Raises:
            OutcomesUnreadable, OSError: a store can't be read.
        """
        self.store = store
        rest = [one for one in others if one.path != store.path]
        # What is gone comes first: its alarms are removed once they stand in another's file.
        models, stores = self.live.snapshot.policy.models, (*gone, store, *rest)
        for outcome in merge(*(one.read() for one in stores), key=attrgetter("at")):
            model = models.get(outcome.model)
            if model is not None:
                self.graders.observe(model, outcome.shadow, outcome.at, quiet=True)
        for one in stores:
            self.graders.resume(models, one.read_alarms())
        try:
            store.mend()
            if any(self.graders.alarms()) or store.alarms.exists():
                store.keep_alarms(self.graders.alarms())
            for one in gone:
                one.alarms.unlink(missing_ok=True)
        except OSError as error:
            self._unwritten(error)

    def offer(self, plan: Plan, ended: Ended) -> None:
        """Look at a request that was answered; now and then keep it to ask again."""
        verdict = plan.ranked.filtered.graded.verdict
        if verdict is None or ended.status != "ok":
            return
        admitted = plan.admitted
        model = admitted.snapshot.policy.models[admitted.asked.model]
        tenant = admitted.authenticated.principal.tenant
        if ended.usage is not None and not ended.estimated:
            self.graders.answered(model.name, tenant, ended.usage[1])
        if plan.arrival.purpose is not Purpose.INTERACTIVE or self._run is None:
            return
        consent = admitted.snapshot.policy.tenants[tenant].shadow
        rate = min(consent, model.grading.explore)
        if rate <= 0.0 or not explores(rate, self.draw()):
            return
        job = _job(plan, verdict, model)
        if job is None:
            self._count(model.name, "unfit")
            return
        self._keep_for_later(job)
        if self._task is None or self._task.done():
            self._task = asyncio.get_running_loop().create_task(self._work())

    def _keep_for_later(self, job: Job) -> None:
        """Put it behind all that wait; one is left out where that makes too many."""
        self._waiting.append(job)
        if len(self._waiting) > WAITING:
            held = Counter(one.tenant for one in self._waiting)
            most = max(held.values())
            # The newest of those who have the most: of equals it is whoever came last.
            place = max(n for n, one in enumerate(self._waiting) if held[one.tenant] == most)
            self._count(self._waiting[place].model, "full")
            del self._waiting[place]

    async def idle(self) -> None:
        """Wait until nothing is left to ask."""
        while self._task is not None and not self._task.done():
            await asyncio.wait([self._task])

    async def close(self) -> None:
        """Drop what waits, and stop."""
        self._waiting.clear()
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)

    # ----------------------------------------------------------------------------------

    async def _work(self) -> None:
        while self._waiting and not self.live.draining:
            job = self._waiting.popleft()
            try:
                result = await self._look(job)
            except NoSandbox as error:
                self.live.notes["shadow"] = str(error)
                result = "unjudged"
            except Exception as error:  # noqa: BLE001 - it may cost no client anything; shown
                self.live.notes["shadow"] = type(error).__name__
                result = "failed"
            self._count(job.model, result)

    async def _look(self, job: Job) -> str:
        """Ask both tiers and have them judged; a word for what came of it."""
        began = self._agreed(job)
        if began is None:
            return "withdrawn"
        small = await self._tier(job, min(began.tiers))
        large = await self._tier(job, began.highest) if small is not None else None
        if small is None or large is None:
            return "unanswered"
        pair = Pair(job.view.question, small, large, wanted_of(job.body))
        rated = self.live.snapshot.difficulty.get(job.model)
        references = {} if rated is None else rated.references
        swap = self.draw() < 0.5
        means = Means(lambda body: self._judge(job, body), swap, references, self.sandbox)
        found = await judge(began.grading.judge, pair, means)
        model = self._agreed(job)
        # What is kept is said of the pair in force: two other models may have answered.
        if model is None or _pair(self.live.snapshot.policy, model) != job.pair:
            return "withdrawn"
        if found is None:
            return "unjudged"
        await self._keep(job, model, found)
        self.live.notes.pop("shadow", None)
        return "judged"

    def _agreed(self, job: Job) -> Model | None:
        """The model, while policy wants the request asked again: asked before each time, for a
        reload may withdraw that while one waits or runs."""
        snapshot = self.live.snapshot
        model = snapshot.policy.models.get(job.model)
        tenant = snapshot.policy.tenants.get(job.tenant)
        if model is None or tenant is None or job.model not in snapshot.difficulty:
            return None
        return model if min(tenant.shadow, model.grading.explore) > 0.0 else None

    async def _keep(self, job: Job, model: Model, found: Qualities) -> None:
        kind, script = kind_of(job.view), script_of(job.view)
        shadow = Shadow(job.tenant, kind, script, job.chose, *found)
        at = self.live.stamp()
        # First what moves traffic: it must not wait for a disk, or be lost with it.
        changed = self.graders.observe(model, shadow, at)
        try:
            if self.live.siblings is not None:
                await self.live.siblings.judged(model.name, shadow, at)
        finally:
            # Also where nobody could be told, or a stop came meanwhile.
            if self.store is not None:
                await self._write(self.store, self._outcome(job, model, shadow, at), changed)

    async def heard(self, model: str, shadow: Shadow, at: float) -> None:
        """Count what another process of this router judged, as if it had been judged here."""
        found = self.live.snapshot.policy.models.get(model)
        changed = found is not None and self.graders.observe(found, shadow, at, heard=True)
        if changed and self.store is not None:
            await self._write(self.store, None, True)

    async def adopt(self, audits: Mapping[tuple[str, float], StandingAudit] | None) -> None:
        """Know what another process of this router found, and write down who is under alarm.

        Until one has told (`None`) all is answered by large.
        """
        before = tuple(self.graders.alarms())
        self.graders.adopt(audits)
        if self.store is not None and tuple(self.graders.alarms()) != before:
            await self._write(self.store, None, True)

    async def _write(self, store: OutcomeStore, outcome: Outcome | None, changed: bool) -> None:
        """Write an outcome, and who is under alarm where that changed; what fails is counted.

        One at a time: two would write one draft, and the older alarms might come last.
        """
        async with self._writing:
            try:
                if changed or "outcomes" in self.live.notes:
                    await asyncio.to_thread(store.keep_alarms, tuple(self.graders.alarms()))
                if outcome is not None:
                    await asyncio.to_thread(store.append, outcome)
            except OSError as error:
                self._unwritten(error)
            else:
                self.live.notes.pop("outcomes", None)

    def _unwritten(self, error: OSError) -> None:
        self.live.notes["outcomes"] = f"not written: {error.strerror or error}"
        self.live.metrics.count("domicile_outcomes_lost_total")

    def _outcome(self, job: Job, model: Model, shadow: Shadow, at: float) -> Outcome:
        weak, strong = job.pair
        features = features_row(extract(job.view))
        return Outcome(at, model.name, weak, strong, model.grading.judge, shadow, features)

    async def _tier(self, job: Job, tier: Tier) -> Answer | None:
        """What one tier answers; `None` when another one did, or none."""
        body = {**{k: v for k, v in job.body.items() if k not in _DROPPED}, "model": job.model}
        return await self._ask(job, body, tier)

    async def _judge(self, job: Job, body: Mapping[str, object]) -> Answer | None:
        # What the client declared in its body narrows the judge's request as it did its own.
        more = {"metadata": job.body["metadata"]} if "metadata" in job.body else {}
        judging = self.live.snapshot.policy.models.get(str(body["model"]))
        # Of a graded model the small tier would judge, and the cascade look at what it says.
        return None if judging is None else await self._ask(job, {**body, **more}, judging.highest)

    async def _ask(self, job: Job, body: Mapping[str, object], tier: Tier) -> Answer | None:
        if self._run is None or self._agreed(job) is None:
            return None
        exchange = InwardExchange(job.surface.path, job.headers, orjson.dumps(body))
        snapshot, now = self.live.snapshot, self.live.loop_time()
        arrival = Arrival(
            exchange,
            self.new_id(),
            self.live.stamp(),
            now,
            now + snapshot.config.router.limits.deadline,
            job.surface,
            Purpose.SHADOW,
            snapshot,
            Stored(job.key, job.tenant, tier),
        )
        await self._run(arrival)
        answered = exchange.answered
        if answered is None or answered.status != 200:
            return None
        ran = answered.headers.get(b"x-domicile-tier", b"").decode()
        return answer_of(answered.body) if ran == tier.label else None

    def _count(self, model: str, result: str) -> None:
        self.live.metrics.count("domicile_shadow_total", (model, result))


def _job(plan: Plan, verdict: Verdict, model: Model) -> Job | None:
    """What is needed to ask again; `None` for a call that does more than answer."""
    admitted, view = plan.admitted, plan.classified.view
    arrival = plan.arrival
    if view is None or admitted.call.movers or arrival.surface.name != SURFACE:
        return None
    declared = [(k, v) for k, v in arrival.exchange.head.headers if k.startswith(_ATTRIBUTES)]
    # Under an alarm the classifier's own choice is what is measured, or it could never end.
    small = verdict.reason == "returned" or verdict.tier < model.highest
    principal = admitted.authenticated.principal
    return Job(
        principal.key,
        principal.tenant,
        model.name,
        "small" if small else "large",
        _pair(admitted.snapshot.policy, model),
        declared,
        admitted.body,
        arrival.surface,
        view,
    )


def _pair(policy: Policy, model: Model) -> tuple[str, str]:
    """The models of the smallest and of the highest tier."""
    first = [model.tiers[tier][0] for tier in (min(model.tiers), model.highest)]
    return policy.endpoints[first[0]].model, policy.endpoints[first[1]].model
