"""The admin listener: metrics, status, quarantine. It binds to its own address, never the public
one. Looking needs no key; whatever changes something does (see `router.narrowing.operator`)."""

from __future__ import annotations

from typing import Annotated

from fastapi import Depends, FastAPI, Header, Request
from fastapi.responses import JSONResponse, Response

from router.alive import healthy
from router.errors import RequestError
from router.exposition import rendered
from router.inbound.every_route import once
from router.live import Live
from router.metrics import ALL
from router.narrowing.operating import (
    AcceptanceAsked,
    EraseAsked,
    ErasedTold,
    FilesStatus,
    QuarantineAsked,
    Quarantined,
    Status,
    accepted,
    erased,
    files_status,
    quarantined,
    status,
)
from router.narrowing.operator import operator
from router.watch.start import Watches

TEXT = "text/plain; version=0.0.4"


def build(live: Live, watches: Watches | None = None) -> FastAPI:
    """The admin application; without `watches` nothing can be changed through it."""
    app = application(live)
    if watches is not None:
        _quarantine(app, live, watches)

    @app.get("/metrics")
    async def metrics() -> Response:
        """The Prometheus text exposition."""
        live.refresh_gauges()
        return Response(rendered(live.metrics.read(), ALL), media_type=TEXT)

    @app.get("/status")
    async def shown() -> Status:
        """Versions, log, endpoints."""
        return status(live, watches)

    return app


def application(live: Live | None = None) -> FastAPI:
    """An admin application that answers `/healthz`, and errors in the shape of all others.

    `live` is that of a process which serves by itself.
    """
    app = FastAPI(
        title="Domicile admin", docs_url=None, redoc_url=None, dependencies=[Depends(once)]
    )
    app.add_exception_handler(RequestError, _refused)

    @app.get("/healthz")
    async def healthz() -> JSONResponse:
        """200 while this process can serve, now or later; 503 when only a new one can."""
        return healthy(live)

    return app


def _quarantine(app: FastAPI, live: Live, watches: Watches) -> None:
    @app.post("/quarantine")
    async def quarantine(
        asked: QuarantineAsked, authorization: Annotated[str, Header()] = ""
    ) -> Quarantined:
        """Narrow at once, also for requests in flight; or lift it."""
        by = operator(authorization, live, watches.token)
        return Quarantined(quarantined=list(await quarantined(watches, asked, by)))

    @app.post("/drift/accept")
    async def accept(
        asked: AcceptanceAsked, authorization: Annotated[str, Header()] = ""
    ) -> dict[str, str]:
        """End a drift's alarm, where no compliance keys are configured."""
        await accepted(watches, asked, operator(authorization, live, watches.token))
        return {"accepted": asked.endpoint}

    @app.post("/erase")
    async def erase(asked: EraseAsked, authorization: Annotated[str, Header()] = "") -> ErasedTold:
        """Erase what opens the log, once the log says so."""
        return await erased(live, asked, operator(authorization, live, watches.token))

    @app.post("/reload")
    async def reload(authorization: Annotated[str, Header()] = "") -> FilesStatus:
        """Look at the files now, as SIGHUP does; `refused` says why they don't serve, if so."""
        operator(authorization, live, watches.token)
        if watches.reloader is not None:
            await watches.reloader.look(now=True)
        return files_status(live.files)


async def _refused(request: Request, error: Exception) -> JSONResponse:
    if not isinstance(error, RequestError):
        raise error
    return JSONResponse(error.body(), error.status, headers=dict(error.headers))
