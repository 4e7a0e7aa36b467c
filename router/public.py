"""Everything the public listener answers beside inference: models, health, records, home.

FastAPI serves these, and documents the inference routes too; those themselves are answered
in front of it, against `Exchange`.
"""

from __future__ import annotations

from importlib.metadata import version
from typing import Annotated

from fastapi import Depends, FastAPI, Query, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse, Response
from pydantic import BaseModel
from starlette.exceptions import HTTPException

from policies.engine import Ask, decide
from policies.model import Policy
from router.alive import healthy
from router.auth import Home, Principal, authenticate
from router.entries.auditing import MOST, PageView, auditor, page_for, record_for
from router.entries.reading_records import RecordView
from router.entries.reporting import TYPES, Form, Reporting, run
from router.errors import RequestError
from router.inbound.every_route import once
from router.inbound.misdirection import direct
from router.live import FULL, Live
from router.surfaces import described


class ModelCard(BaseModel):
    """One model, as OpenAI's API lists it."""

    id: str
    object: str = "model"
    created: int
    owned_by: str = "domicile"


class ModelList(BaseModel):
    """All models this key may use."""

    object: str = "list"
    data: list[ModelCard]


class Ready(BaseModel):
    """Whether requests are served, and what is degraded, in a word."""

    ready: bool
    log: str
    durability: str
    policy: str
    degraded: list[str]


class Where(BaseModel):
    """Where a key's requests belong."""

    here: bool
    region: str | None
    url: str | None


def _key(request: Request) -> Principal | Home:
    live: Live = request.app.state.live
    headers = request.headers

    def header(name: bytes) -> bytes | None:
        value = headers.get(name.decode())
        return None if value is None else value.encode("latin-1")

    return authenticate(header, live.snapshot.keys, live.now())


Holder = Annotated[Principal | Home, Depends(_key)]


def build(live: Live) -> FastAPI:
    """The public application."""
    app = FastAPI(
        title="Domicile",
        description="One OpenAI-compatible endpoint; each request is processed where it may be.",
        version=version("domicile"),
        docs_url=None,
        redoc_url=None,
        openapi_url="/openapi.json",
        redirect_slashes=False,
        dependencies=[Depends(once)],
    )
    app.state.live = live
    app.add_exception_handler(RequestError, _refused)
    app.add_exception_handler(HTTPException, _http)
    app.add_exception_handler(RequestValidationError, _invalid)
    app.add_exception_handler(Exception, _internal)
    _health(app, live)
    _models(app, live)
    _records(app, live)
    _audit(app, live)
    _describe(app)
    return app


def _describe(app: FastAPI) -> None:
    """Put the inference routes into the OpenAPI document. Pages for people would load scripts
    from elsewhere, so there are none: `/openapi.json` is read by any client."""
    made = app.openapi()
    made["paths"] = {**described.paths(), **made["paths"]}
    made.setdefault("components", {})["securitySchemes"] = dict(described.SECURITY)


def _health(app: FastAPI, live: Live) -> None:
    @app.get("/healthz", tags=["health"])
    async def healthz() -> JSONResponse:
        """200 while this process can serve, now or later; 503 when only a new one can."""
        return healthy(live)

    @app.get("/readyz", tags=["health"], response_model=Ready)
    async def readyz() -> JSONResponse:
        """200 while requests are served; 503 at the start, or when the log can't be written. It
        says what is degraded, the status on the admin listener says why."""
        health = live.log.health
        ready = live.ready()
        failed = health.state == "failed"
        log = f"{health.state}: {live.ended() or health.reason}".removesuffix(": ")
        body = Ready(
            ready=ready,
            log=f"full: {FULL}" if live.is_full() and not failed else log,
            durability=health.durability,
            policy=live.snapshot.policy.digest,
            degraded=live.outwardly(),
        )
        return JSONResponse(body.model_dump(), 200 if ready else 503)


def _models(app: FastAPI, live: Live) -> None:
    @app.get("/v1/models", tags=["models"])
    async def models(holder: Holder) -> ModelList:
        """The models this key may use."""
        allowed = _allowed_models(live.snapshot.policy, _here(holder))
        created = int(live.snapshot.loaded_at)
        return ModelList(data=[ModelCard(id=name, created=created) for name in allowed])

    @app.get("/v1/models/{name:path}", tags=["models"])
    async def model(name: str, holder: Holder) -> ModelCard:
        """One model."""
        if name not in _allowed_models(live.snapshot.policy, _here(holder)):
            raise RequestError("model_not_found", "no such model; see `GET /v1/models`")
        return ModelCard(id=name, created=int(live.snapshot.loaded_at))


def _records(app: FastAPI, live: Live) -> None:
    @app.get("/domicile/v1/where", tags=["residency"])
    async def where(holder: Holder) -> Where:
        """Where this key's requests belong, so that a client finds home first."""
        if isinstance(holder, Home):
            return Where(here=False, region=holder.region, url=holder.url)
        decision = decide(live.snapshot.policy, Ask(holder.tenant, holder.app), live.now())
        elsewhere = direct(decision.common.process, live.snapshot)
        if elsewhere is None:
            return Where(here=True, region=live.snapshot.region, url=None)
        return Where(here=False, region=elsewhere.region, url=elsewhere.url)

    @app.get("/domicile/v1/records/{log}/{index}", tags=["residency"])
    async def record(log: str, index: int, holder: Holder) -> RecordView:
        """The caller's own entry in the region log, with its proof of inclusion."""
        principal = _here(holder)
        if log not in live.logs:
            raise RequestError("not_found", "no such record of yours in this log")
        if live.siblings is None or log == live.log_name:
            return await record_for(live, index, principal)
        return await live.siblings.record(log, index, principal.key)


def _audit(app: FastAPI, live: Live) -> None:
    @app.get("/domicile/v1/audit/entries", tags=["audit"])
    async def entries(
        holder: Holder,
        after: Annotated[int, Query(ge=-1)] = -1,
        limit: Annotated[int, Query(ge=1, le=MOST)] = 100,
        log: str | None = None,
    ) -> PageView:
        """What an auditor's key may see of a region log, by default the first, oldest first."""
        wanted = live.logs[0] if log is None else log
        if wanted not in live.logs:
            known = ", ".join(live.logs)
            raise RequestError("not_found", f"there is no such log; there are: {known}")
        if live.siblings is None or wanted == live.log_name:
            return await page_for(live, after, limit, holder)
        return await live.siblings.page(wanted, after, limit, _here(holder).key)

    reporting = Reporting(live, run)

    @app.get("/domicile/v1/audit/report", tags=["audit"])
    async def report(
        holder: Holder,
        period: Annotated[str, Query(max_length=80)],
        time_zone: Annotated[str, Query(max_length=64)] = "UTC",
        form: Form = "json",
    ) -> Response:
        """Where a period's requests were processed, for an auditor's key; all logs here."""
        who = auditor(_here(holder), live.snapshot.policy)
        made = await reporting.report(who, period, time_zone, form)
        return Response(made, media_type=TYPES[form], headers=_STILL)


def _here(holder: Principal | Home) -> Principal:
    if isinstance(holder, Home):
        raise RequestError(
            "misdirected",
            f"this key belongs to the router in `{holder.region}`",
            headers={"location": holder.url},
        )
    return holder


def _allowed_models(policy: Policy, principal: Principal) -> list[str]:
    tenant = policy.tenants.get(principal.tenant)
    if tenant is None:
        return []
    return sorted(n for n in policy.models if tenant.models is None or n in tenant.models)


async def _refused(request: Request, error: Exception) -> JSONResponse:
    if not isinstance(error, RequestError):
        raise error
    return JSONResponse(error.body(), error.status, headers=dict(error.headers))


async def _http(request: Request, error: Exception) -> JSONResponse:
    if not isinstance(error, HTTPException):
        raise error
    code = _HTTP_CODES.get(error.status_code, "invalid_request")
    said = _HTTP_SAID.get(error.status_code, str(error.detail).lower())
    told = RequestError(code, said, status=error.status_code)
    return JSONResponse(told.body(), error.status_code, headers=dict(error.headers or {}))


async def _invalid(request: Request, error: Exception) -> JSONResponse:
    if not isinstance(error, RequestValidationError):
        raise error
    first = error.errors()[0]
    where = ".".join(str(part) for part in first["loc"])
    why = "is missing" if first["type"] == "missing" else f"can't be read: {first['msg'].lower()}"
    return JSONResponse(RequestError("invalid_request", f"`{where}` {why}").body(), 400)


async def _internal(request: Request, error: Exception) -> JSONResponse:
    told = RequestError("internal", "something went wrong here")
    return JSONResponse(told.body(), told.status)


_STILL = {
    "content-security-policy": "sandbox; default-src 'none'; style-src 'unsafe-inline'",
    "x-content-type-options": "nosniff",
    "cache-control": "no-store",
}
_HTTP_CODES = {404: "not_found", 405: "method_not_allowed"}
_HTTP_SAID = {
    404: "nothing is served at this path; chats are `POST /v1/chat/completions`, and "
    "`GET /openapi.json` lists the rest",
    405: "this path is served, but not with this method; `GET /openapi.json` lists them",
}
