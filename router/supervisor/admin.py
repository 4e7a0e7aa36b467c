"""The admin listener of a supervisor: what all workers count, how each stands, and one word to all.

A change is confirmed by every worker that serves, or the answer says who did not. Narrowing is done
wherever it can be; a worker that is away takes it from its siblings' state files when it is back.
Lifting asks for all of them: nothing may be in force in one process and lifted in another.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Annotated, TypeVar

from fastapi import FastAPI, Header
from fastapi.responses import Response
from pydantic import BaseModel

from router.admin import TEXT, application
from router.capacity.quotas import exactness
from router.errors import RequestError
from router.narrowing.operating import (
    AcceptanceAsked,
    EraseAsked,
    ErasedTold,
    FilesStatus,
    QuarantineAsked,
    Quarantined,
    Status,
    files_status,
)
from router.narrowing.operator import operator
from router.narrowing.veto_file import Imposed
from router.settings.reload import Reloader
from router.supervisor.channel import Gone
from router.supervisor.crew import Crew
from router.supervisor.merged import merged
from router.supervisor.orders import Accept, Erase, Narrow, StatusAsked
from router.supervisor.slot import Slot

T = TypeVar("T")


class WorkerStatus(BaseModel):
    """One worker: its process, and its own status while it serves."""

    worker: int
    pid: int | None
    state: str
    log: str
    restarts: int
    reason: str
    status: Status | None


class WholeStatus(BaseModel):
    """What a supervisor and its workers run with; `limits` says how exact limits are.

    `snapshot` is what all are to serve: a worker that has not put it in force yet is named in
    `degraded`, and its own `status` says what it serves meanwhile.
    """

    router: str
    region: str
    ready: bool
    snapshot: str
    policy: str
    catalog: str
    loaded_at: float
    files: FilesStatus
    quarantined: list[Imposed]
    limits: str
    open_requests: int
    degraded: list[str]
    workers: list[WorkerStatus]


def build(crew: Crew, reloader: Reloader, token: str) -> FastAPI:
    """The admin application of a supervisor."""
    app = application()
    _changes(app, crew, reloader, token)

    @app.get("/metrics")
    async def metrics() -> Response:
        """The Prometheus text exposition, of all workers together."""
        await crew.hear()
        _count(crew)
        workers = {slot.number: slot.read for slot in crew.slots}
        return Response(merged(workers, crew.before, crew.metrics.read()), media_type=TEXT)

    @app.get("/status")
    async def status() -> WholeStatus:
        """Versions, files, and every worker."""
        return await whole_status(crew)

    return app


def _changes(app: FastAPI, crew: Crew, reloader: Reloader, token: str) -> None:
    @app.post("/quarantine")
    async def quarantine(
        asked: QuarantineAsked, authorization: Annotated[str, Header()] = ""
    ) -> Quarantined:
        """Narrow in every worker at once, or lift it in all."""
        by = operator(authorization, crew, token)
        if asked.lift:
            _complete(crew)
        return Quarantined(quarantined=list(await narrowed(crew, Narrow(asked, by))))

    @app.post("/drift/accept")
    async def accept(
        asked: AcceptanceAsked, authorization: Annotated[str, Header()] = ""
    ) -> dict[str, str]:
        """End a drift's alarm in every worker that found it."""
        by = operator(authorization, crew, token)
        _complete(crew)
        _confirmed(await crew.every(Accept(asked, by), bool))
        return {"accepted": asked.endpoint}

    @app.post("/erase")
    async def erase(asked: EraseAsked, authorization: Annotated[str, Header()] = "") -> ErasedTold:
        """Erase what opens the log of every worker."""
        by = operator(authorization, crew, token)
        _complete(crew)
        logs = tuple(slot.log for slot in crew.slots)
        done = _confirmed(await crew.every(Erase(asked, by, logs), ErasedTold))
        return ErasedTold(
            keys=sum(one.keys for one in done),
            openings=sum(one.openings for one in done),
            remains=list(dict.fromkeys(text for one in done for text in one.remains)),
        )

    @app.post("/reload")
    async def reload(authorization: Annotated[str, Header()] = "") -> FilesStatus:
        """Look at the files now, as SIGHUP does; answers when every worker serves what is sound."""
        operator(authorization, crew, token)
        await reloader.look(now=True)
        return files_status(crew.files)


async def narrowed(crew: Crew, asked: Narrow) -> tuple[Imposed, ...]:
    """Everything quarantined anywhere, once every worker that runs has confirmed.

    Raises:
        RequestError: it is nothing to be quarantined, or some did not confirm; says which.
    """
    chosen = await crew.begun()
    stopping = [slot for slot in crew.slots if slot.state == "stopping"]
    done = await crew.every(asked, tuple, chosen + stopping)
    # One that read what its siblings had been told before they were told this.
    late = [s for s in crew.slots if s not in chosen and s.state in ("starting", "serving")]
    done += [(slot, Gone("it is starting")) for slot in late]
    found: dict[tuple[str, str], Imposed] = {}
    for imposed in _confirmed(done, lenient=asked.asked.lift):
        found.update({(one.what, one.name): one for one in imposed})
    return tuple(found.values())


def _complete(crew: Crew) -> None:
    away = [slot.number for slot in crew.slots if slot.state != "serving"]
    if away:
        told = f"workers {', '.join(map(str, away))} don't run now, so it can't be done in all"
        raise RequestError("log_unavailable", f"{told}; try again", retry_after=5.0)


def _confirmed(told: Sequence[tuple[Slot, T | Exception]], lenient: bool = True) -> list[T]:
    """The answers. What some did, and others say is nothing to do there, is done: if `lenient`.
    What narrows is to be done by all."""
    done = [one for _, one in told if not isinstance(one, Exception)]
    failed = [(slot, one) for slot, one in told if isinstance(one, Exception)]
    real = [(s, e) for s, e in failed if not (lenient and done and _is_nothing(e))]
    if not real and told:
        return done
    if real and len(real) == len(told) and isinstance(real[0][1], RequestError):
        raise real[0][1]
    words = "; ".join(f"worker {slot.number}: {error}" for slot, error in real)
    message = f"not confirmed by all: {words or 'no worker serves'}; ask again"
    raise RequestError("log_unavailable", message, retry_after=5.0)


def _is_nothing(error: Exception) -> bool:
    return isinstance(error, RequestError) and error.code == "invalid_request"


async def whole_status(crew: Crew) -> WholeStatus:
    """How everything stands."""
    told = {slot.number: one for slot, one in await crew.every(StatusAsked(), Status)}
    known = {n: one for n, one in told.items() if isinstance(one, Status)}
    imposed = {(i.what, i.name): i for one in known.values() for i in one.quarantined}
    snapshot, whole = crew.snapshot, crew.whole()
    return WholeStatus(
        router=snapshot.config.router.id,
        region=snapshot.region,
        ready=whole.ready,
        snapshot=snapshot.digest,
        policy=snapshot.policy.digest,
        catalog=snapshot.catalog.digest,
        loaded_at=snapshot.loaded_at,
        files=files_status(crew.files),
        quarantined=list(imposed.values()),
        limits=exactness(snapshot.config, len(crew.slots)),
        open_requests=sum(one.open_requests for one in known.values()),
        degraded=[*whole.troubles, *_switching(crew, known)],
        workers=[_worker(slot, known.get(slot.number)) for slot in crew.slots],
    )


def _switching(crew: Crew, known: Mapping[int, Status]) -> Iterator[str]:
    for number, one in sorted(known.items()):
        if one.files.active != crew.files.active:
            yield f"worker {number} still serves snapshot {one.snapshot}"


def _worker(slot: Slot, status: Status | None) -> WorkerStatus:
    return WorkerStatus(
        worker=slot.number,
        pid=slot.pid,
        state=slot.state,
        log=slot.log,
        restarts=max(0, slot.starts - 1),
        reason=slot.reason,
        status=status,
    )


def _count(crew: Crew) -> None:
    for state in ("starting", "serving", "stopping", "down"):
        count = sum(1 for slot in crew.slots if slot.state == state)
        crew.metrics.set("domicile_workers", count, (state,))
