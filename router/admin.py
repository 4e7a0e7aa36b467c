"""The admin listener: metrics and status. It binds to its own address, never the public one."""

from __future__ import annotations

from fastapi import FastAPI
from fastapi.responses import Response
from pydantic import BaseModel

from router.live import Live


class EndpointStatus(BaseModel):
    """One endpoint's replicas, as they stand."""

    endpoint: str
    kind: str
    replicas: dict[str, str]
    tokens: int


class Status(BaseModel):
    """What this process runs with."""

    router: str
    region: str
    snapshot: str
    policy: str
    catalog: str
    catalog_date: str
    loaded_at: float
    keys: int
    log: str
    log_size: int
    checkpoint: str | None
    open_requests: int
    degraded: list[str]
    endpoints: list[EndpointStatus]


def build(live: Live) -> FastAPI:
    """The admin application."""
    app = FastAPI(title="Domicile admin", docs_url=None, redoc_url=None)

    @app.get("/metrics")
    async def metrics() -> Response:
        """The Prometheus text exposition."""
        live.refresh_gauges()
        return Response(live.metrics.render(), media_type="text/plain; version=0.0.4")

    @app.get("/status")
    async def status() -> Status:
        """Versions, log, endpoints."""
        return _status(live)

    @app.get("/healthz")
    async def healthz() -> dict[str, str]:
        """The process runs."""
        return {"status": "ok"}

    return app


def _status(live: Live) -> Status:
    snapshot, head = live.snapshot, live.log.head
    return Status(
        router=snapshot.config.router.id,
        region=snapshot.region,
        snapshot=snapshot.digest,
        policy=snapshot.policy.digest,
        catalog=snapshot.catalog.digest,
        catalog_date=snapshot.catalog.date.isoformat(),
        loaded_at=snapshot.loaded_at,
        keys=len(snapshot.keys),
        log=live.log.health.state,
        log_size=0 if head is None else head.size,
        checkpoint=None if head is None else head.text,
        open_requests=live.concurrency.total,
        degraded=live.degraded(),
        endpoints=[_endpoint(live, name) for name in sorted(snapshot.targets)],
    )


def _endpoint(live: Live, name: str) -> EndpointStatus:
    now = live.loop_time()
    replicas = live.snapshot.replicas(name)
    return EndpointStatus(
        endpoint=name,
        kind=live.snapshot.policy.endpoints[name].kind,
        replicas={key: live.health.standing(key, now).name.lower() for key in replicas},
        tokens=sum(live.inflight.tokens(key) for key in replicas),
    )
