"""What an operator looks at and changes in one process, whoever asks: the admin listener of a lone
router, or the supervisor of several workers. Whatever changes something says what was done."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict
from itertools import islice
from operator import itemgetter
from typing import Annotated, Final

from pydantic import BaseModel, Field

from router.audit.erasing import erase, remains
from router.audit.errors import AuditError
from router.audit.layout import Folder
from router.audit.openings import Scope
from router.errors import RequestError
from router.live import Files, Live
from router.narrowing.quarantine import NotQuarantined
from router.narrowing.veto_file import MAX_REASON, Imposed
from router.settings.authorities import printed
from router.settings.config_types import Strict
from router.watch.start import Watches

GROUPS_SHOWN: Final = 200
"""Groups of one model that the status lists."""


class BurstStatus(BaseModel):
    """What counts of a burst budget: `spent` of `limit` `of` dollars or tokens in `seconds`."""

    endpoint: str
    of: str
    limit: float
    spent: float
    seconds: float


class EndpointStatus(BaseModel):
    """One endpoint's replicas, as they stand."""

    endpoint: str
    kind: str
    replicas: dict[str, str]
    tokens: int


class FilesStatus(BaseModel):
    """The files on disk against those that serve: digests, and why the newest don't serve."""

    on_disk: str
    active: str
    looked_at: float
    refused: str


class QuarantineAsked(Strict):
    """What to take out (`endpoint`, `place`, `operator`, `key`), or with `lift` to let in again."""

    what: str
    name: str
    reason: str
    lift: bool = False


class AcceptanceAsked(Strict):
    """An endpoint that drifted, and why that is in order."""

    endpoint: str
    reason: Annotated[str, Field(min_length=1, max_length=MAX_REASON)]


class EraseAsked(Strict):
    """What to erase of what opens the log: all that fits everything given. `before`: epoch s."""

    tenant: Annotated[str | None, Field(pattern=r"^[A-Za-z0-9._-]{1,128}$")] = None
    request: Annotated[str | None, Field(pattern=r"^[A-Za-z0-9._:-]{1,128}$")] = None
    before: Annotated[float | None, Field(ge=0, lt=1 << 32)] = None


class ErasedTold(BaseModel):
    """What was erased, and what is left."""

    keys: int
    openings: int
    remains: list[str]


class Quarantined(BaseModel):
    """Everything that is quarantined now."""

    quarantined: list[Imposed]


class AnchorStatus(BaseModel):
    """One anchor: the size it holds, since how many seconds, and why it last failed."""

    name: str
    state: str
    size: int
    age: float | None
    reason: str


class GradingStatus(BaseModel):
    """What grading costs one group of requests, as judged in the shadow lane.

    `loss` with its 95 % bounds is the mean regret against always asking the large tier; `small`
    and `large` are the qualities if one tier had answered all; `returned`: large answers now.
    """

    model: str
    group: str
    judged: int
    loss: float
    low: float
    high: float
    small: float
    large: float
    returned: bool


class Status(BaseModel):
    """What this process runs with."""

    router: str
    region: str
    snapshot: str
    policy: str
    catalog: str
    catalog_date: str
    loaded_at: float
    files: FilesStatus
    quarantined: list[Imposed]
    drifted: list[str]
    keys: int
    log: str
    log_size: int
    checkpoint: str | None
    anchors: list[AnchorStatus]
    open_requests: int
    degraded: list[str]
    endpoints: list[EndpointStatus]
    trust: dict[str, dict[str, str | list[str]]] = {}
    bursts: list[BurstStatus] = []
    grading: list[GradingStatus] = []


async def quarantined(watches: Watches, asked: QuarantineAsked, by: str) -> tuple[Imposed, ...]:
    """Narrow at once, also for requests in flight, or lift it; gives everything quarantined.

    Raises:
        RequestError: nothing is called so, or log and file can't take it.
    """
    book = watches.quarantine
    act = book.lift if asked.lift else book.impose
    try:
        await act(asked.what, asked.name, asked.reason, by)
    except NotQuarantined as error:
        raise RequestError("invalid_request", str(error)) from None
    except AuditError as error:
        message = f"{error}; a veto asked for stands in this process, a lift was not done"
        raise RequestError("log_unavailable", message, retry_after=5.0) from None
    return book.imposed


async def accepted(watches: Watches, asked: AcceptanceAsked, by: str) -> None:
    """End a drift's alarm, where no compliance keys are configured.

    Raises:
        RequestError: nothing drifted there, or the log can't take it.
    """
    try:
        await watches.drift.accept(asked.endpoint, asked.reason, by)
    except AuditError as error:
        raise RequestError("log_unavailable", str(error), retry_after=5.0) from None
    except ValueError as error:
        raise RequestError("invalid_request", str(error)) from None


async def erased(live: Live, asked: EraseAsked, by: str, logs: Sequence[str] = ()) -> ErasedTold:
    """Erase what opens the log, once the log says so; `logs`: where siblings do the same.

    Raises:
        RequestError: the log can't take it, or what opens it can't be written.
    """
    scope = Scope(asked.tenant, asked.request, asked.before)
    try:
        done = await erase(live.log, scope, by, live.stamp())
    except (AuditError, OSError) as error:
        raise RequestError("log_unavailable", str(error), retry_after=5.0) from None
    left = remains(done, scope, Folder(live.log.folder.path.parent), {live.log_name, *logs})
    return ErasedTold(keys=done.keys, openings=done.openings, remains=list(left))


def files_status(files: Files) -> FilesStatus:
    """The files on disk against those that serve."""
    return FilesStatus(
        on_disk=files.on_disk,
        active=files.active,
        looked_at=files.looked_at,
        refused=files.refused,
    )


def status(live: Live, watches: Watches | None) -> Status:
    """Versions, log, endpoints, as they stand."""
    snapshot, head = live.snapshot, live.log.head
    return Status(
        router=snapshot.config.router.id,
        region=snapshot.region,
        snapshot=snapshot.digest,
        policy=snapshot.policy.digest,
        catalog=snapshot.catalog.digest,
        catalog_date=snapshot.catalog.date.isoformat(),
        loaded_at=snapshot.loaded_at,
        files=files_status(live.files),
        quarantined=[] if watches is None else list(watches.quarantine.imposed),
        drifted=sorted(snapshot.drifted),
        keys=len(snapshot.keys),
        log=live.log.health.state,
        log_size=0 if head is None else head.size,
        checkpoint=None if head is None else head.text,
        anchors=[AnchorStatus(**asdict(one)) for one in live.anchored()],
        open_requests=live.concurrency.total,
        degraded=live.degraded(),
        endpoints=[_endpoint(live, name) for name in sorted(snapshot.targets)],
        trust={name: printed(tls) for name, tls in sorted(snapshot.trust.items())},
        bursts=[
            BurstStatus(**one._asdict()) for one in live.bursts.stands(snapshot.policy.endpoints)
        ],
        grading=list(_grading(live)),
    )


def _grading(live: Live) -> Iterator[GradingStatus]:
    for (model, _), audit in sorted(live.audits.items(), key=itemgetter(0)):
        for group, found in islice(audit.estimates(), GROUPS_SHOWN):
            yield GradingStatus(
                model=model, group=group, judged=found.n, loss=round(found.loss, 4),
                low=round(found.low, 4), high=round(found.high, 4), small=round(found.small, 4),
                large=round(found.large, 4), returned=audit.returned(group),
            )  # fmt: skip


def _endpoint(live: Live, name: str) -> EndpointStatus:
    now = live.loop_time()
    replicas = live.snapshot.replicas(name)
    return EndpointStatus(
        endpoint=name,
        kind=live.snapshot.policy.endpoints[name].kind,
        replicas={key: live.health.standing(key, now).name.lower() for key in replicas},
        tokens=sum(live.inflight.tokens(key) for key in replicas),
    )
