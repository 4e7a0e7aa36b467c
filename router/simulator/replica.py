"""One simulated vLLM replica: a port, an engine in time, armed faults and a record of every hit."""

from __future__ import annotations

import asyncio
import json
import ssl
import time
from collections import Counter
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import aclosing
from dataclasses import dataclass, field, replace

from router.simulator import text, vllm_api
from router.simulator.blocks import block_hashes
from router.simulator.delivery import Response, deliver, misanswer, plain
from router.simulator.faults import Fault, FaultBook, Kind
from router.simulator.gauges import Gauges
from router.simulator.pacing import Pacer
from router.simulator.record import Hit, credential_digest
from router.simulator.surfaces import SURFACES, Generation, Serving, Surface
from router.simulator.timing import Engine, EngineSpec, Job, Progress
from router.simulator.transfer import Bank, Connector, asked_in, telling
from router.simulator.vllm_api import ApiError
from router.simulator.wire import Listener, Reply, Request

_VERSION = "0.32.0"


@dataclass(frozen=True, slots=True)
class ReplicaSpec:
    """What to simulate. `region` and `seed` default to the replica's name and the fleet's seed.

    `speed` is engine seconds per second; `keep_bodies` puts headers and bodies into the record;
    `api_key`, if set, is required as a bearer token; `created` fixes the time in answers, so that
    equal calls get equal bytes; `transfers` lets it keep caches of prompts for others of its fleet,
    and fetch theirs.
    """

    models: tuple[str, ...] = ("tiny",)
    engine: EngineSpec = field(default_factory=EngineSpec)
    speed: float = 1.0
    region: str = ""
    seed: int | None = None
    host: str = "127.0.0.1"
    port: int = 0
    keep_bodies: bool = False
    api_key: str = ""
    metrics: bool = True
    created: int | None = None
    transfers: bool = False


class Replica:
    """A replica on `url`. It is up after `start`; `kill`, `freeze` and `fail` break it."""

    def __init__(
        self,
        name: str,
        spec: ReplicaSpec,
        *,
        tls: ssl.SSLContext | None = None,
        bank: Bank | None = None,
        clock: Callable[[], float] = time.monotonic,
        wall: Callable[[], float] = time.time,
    ) -> None:
        self.name, self.spec = name, spec
        self.region = spec.region or name.partition("/")[0]
        self.seed = spec.seed or 0
        self.faults = FaultBook(self.seed)
        self.seen: list[Hit] = []
        self.polled: Counter[str] = Counter()
        self._clock, self._wall = clock, wall
        self._listener = Listener(
            self._answer, host=spec.host, port=spec.port, tls=tls, clock=clock
        )
        self._engine = Engine(spec.engine, self.seed)
        self._pacer = Pacer(self._engine, speed=spec.speed, clock=clock)
        self._gauges = Gauges(self._engine, spec.models[0])
        # vLLM refuses to start with a context its KV cache cannot hold; here it is clipped.
        self._context = min(spec.engine.context, spec.engine.kv_blocks * spec.engine.block_size)
        self._bank: Bank | None = None
        if spec.transfers:
            self._bank = Bank() if bank is None else bank
        self._stale = b""
        self._jobs = 0

    @property
    def url(self) -> str:
        """Base URL, without `/v1`."""
        return self._listener.url

    @property
    def port(self) -> int:
        """The port it has (or had, while killed)."""
        return self._listener.port

    @property
    def alive(self) -> bool:
        """Accepts connections and is not frozen."""
        return self._listener.up and not self._pacer.frozen

    async def start(self) -> None:
        """Listen (again after `kill`)."""
        await self._listener.start()

    def kill(self) -> None:
        """Refuse connections and reset the open ones; the port stays taken."""
        self._listener.stop()
        if self._bank is not None:
            self._bank.forget(self.name)

    def freeze(self) -> None:
        """Stop the engine: `/health` still says 200, generations hang, metrics go stale."""
        self._stale = self._gauges.page()
        self._pacer.freeze()

    def thaw(self) -> None:
        """Let the engine run on."""
        self._pacer.thaw()

    def fail(self, fault: Fault | Kind) -> None:
        """Arm a fault (a kind alone takes its defaults)."""
        self.faults.arm(Fault(fault) if isinstance(fault, Kind) else fault)

    async def heal(self) -> None:
        """Disarm everything, thaw, and listen."""
        self.faults.clear()
        self.thaw()
        await self.start()

    async def close(self) -> None:
        """Stop for good."""
        await self._listener.close()
        await self._pacer.close()

    async def _answer(self, request: Request, reply: Reply) -> None:
        if request.method == "POST" and request.path in SURFACES:
            await self._generate(request, reply)
            return
        self.polled[request.path] += 1
        await self._serve_plain(request, reply)

    async def _serve_plain(self, request: Request, reply: Reply) -> None:
        try:
            body, kind = self._page(request)
            await reply.answer(200, body, kind)
        except ApiError as error:
            await reply.answer(error.status, error.body(), "application/json")

    def _page(self, request: Request) -> tuple[bytes, str]:
        json_type = "application/json"
        match (request.method, request.path):
            case ("GET", "/health" | "/ping"):
                return b"", json_type
            case ("GET", "/version"):
                return vllm_api.dumps({"version": _VERSION}), json_type
            case ("GET", "/load"):
                load = self._engine.load
                return vllm_api.dumps({"server_load": load.running + load.waiting}), json_type
            case ("GET", "/v1/models"):
                self._authorize(request)  # vLLM guards everything below /v1
                return self._models(), json_type
            case ("GET", "/metrics") if self.spec.metrics:
                page = self._stale if self._pacer.frozen else self._gauges.page()
                return page, "text/plain; version=1.0.0; charset=utf-8"
            case ("POST", "/tokenize"):
                return self._tokenize(request.body), json_type
            case _:
                raise ApiError(404, "Not Found", "NotFoundError")

    def _models(self) -> bytes:
        models = [
            {"id": model, "object": "model", "created": 0, "owned_by": "vllm",
             "root": self.spec.models[0], "parent": None,
             "max_model_len": self._context}
            for model in self.spec.models
        ]  # fmt: skip
        return vllm_api.dumps({"object": "list", "data": models})

    def _tokenize(self, body: bytes) -> bytes:
        try:
            document = json.loads(body)
        except ValueError as error:
            raise ApiError(400, "the body is not JSON", "BadRequestError") from error
        if isinstance(document, dict) and isinstance(document.get("prompt"), str):
            prompt = document["prompt"]
        else:
            prompt = vllm_api.parse(body, chat=True, served=self.spec.models).prompt
        tokens = text.tokenize(prompt)
        limit = self._context
        return vllm_api.dumps(
            {"count": len(tokens), "max_model_len": limit, "tokens": tokens, "token_strs": None}
        )

    async def _generate(self, request: Request, reply: Reply) -> None:
        hit = self._record(request)
        with self._listener.noting(hit, reply):
            hit.outcome = await self._run(request, reply, hit)

    def _record(self, request: Request) -> Hit:
        age = self._clock() - request.began
        hit = Hit(
            request.began, self._wall() - age, self.name, self.region, request.method,
            request.path, request.header("x-request-id") or "",
            host=request.header("host") or "", credential=credential_digest(_credential(request)),
        )  # fmt: skip
        if self.spec.keep_bodies:
            hit.headers, hit.body = request.headers, request.body
        self.seen.append(hit)
        return hit

    async def _run(self, request: Request, reply: Reply, hit: Hit) -> str:
        surface = SURFACES[request.path]
        try:
            self._authorize(request)
            created = int(self._wall()) if self.spec.created is None else self.spec.created
            serving = Serving(self.spec.models, self.seed, self._context, created)
            made = surface.open(request.body, serving)
            hit.model, hit.stream = made.call.model, made.call.stream
            drawn = self.faults.draw(model=hit.model, region=self.region, path=request.path)
            hit.faults = drawn.names
            if drawn.instead is not None:
                return await self._misbehave(reply, drawn.instead, surface)
            response = await self._respond(made, hit, asked_in(request.body))
            return await deliver(reply, response, drawn, surface.error_frame)
        except ApiError as error:
            await reply.answer(error.status, surface.error(error), "application/json")
            return f"status:{error.status}"

    def _authorize(self, request: Request) -> None:
        if self.spec.api_key and _credential(request) != self.spec.api_key:
            raise ApiError(401, "Unauthorized", "AuthenticationError")

    async def _misbehave(self, reply: Reply, fault: Fault, surface: Surface) -> str:
        if fault.kind is not Kind.STATUS:
            await misanswer(reply, fault, asyncio.sleep)
            return fault.kind.value
        more = (("retry-after", fault.retry_after),) if fault.retry_after else ()
        body = fault.body.encode() or surface.error(vllm_api.refusal(fault))
        await reply.answer(fault.status, body, "application/json", *more)
        return f"status:{fault.status}"

    async def _respond(self, made: Generation, hit: Hit, asked: Mapping[str, object]) -> Response:
        request_id = (("x-request-id", hit.request_id),) if hit.request_id else ()
        job = await self._received(self._job(made), hit, asked)
        tokens = self._tokens(made, job, hit)
        if made.call.stream:
            headers = (("content-type", "text/event-stream; charset=utf-8"), *request_id)
            return Response(200, headers, made.frames(tokens))
        async with aclosing(tokens):
            async for _ in tokens:
                pass
        return plain(200, self._kept(made, job, hit, asked), *request_id)

    @property
    def _connector(self) -> Connector | None:
        if self._bank is None:
            return None
        size = self.spec.engine.block_size
        return Connector(self._bank, self.name, ("127.0.0.1", self.port), size)

    async def _received(self, job: Job, hit: Hit, asked: Mapping[str, object]) -> Job:
        """The job, with what of its prompt another server has computed, once that is here."""
        connector = self._connector
        if connector is None:
            return job
        hit.transfer = "lost"
        now = self._clock()
        received = connector.received(asked, now)
        hit.transfer = "fetched" if received else ""
        if received:
            new = max(0, received - self._engine.cached(job))
            seconds = new / self.spec.engine.transfer_rate / self.spec.speed
            await asyncio.sleep(connector.until(asked, seconds, now) - now)
        return replace(job, received=received)

    def _kept(self, made: Generation, job: Job, hit: Hit, asked: Mapping[str, object]) -> bytes:
        """The answer's body, which says where the cache of the prompt is if it is kept."""
        connector = self._connector
        if connector is None:
            return made.body()
        params = connector.kept(asked, job.id, made.prompt_tokens, self._clock())
        hit.transfer = hit.transfer if params is None else "kept"
        return telling(made.body(), params)

    async def _tokens(self, made: Generation, job: Job, hit: Hit) -> AsyncGenerator[int, None]:
        """Token numbers as they come out of the engine; counts an abort when left early."""
        before: float | None = None
        async with aclosing(self._pacer.run(job)) as outputs:
            try:
                async for progress in outputs:
                    hit.tokens = progress.token
                    if before is not None:
                        self._gauges.interval(progress.at - before)
                    before = progress.at
                    self._count(progress, made)
                    yield progress.token
            finally:
                if hit.tokens < made.tokens:
                    self._gauges.aborted()

    def _count(self, progress: Progress, made: Generation) -> None:
        if progress.times is not None:
            reason = "length" if made.finish == "length" else "stop"
            self._gauges.finished(progress.times, made.call.max_tokens or made.tokens, reason)

    def _job(self, made: Generation) -> Job:
        self._jobs += 1
        size = self.spec.engine.block_size
        salt = f"{made.call.model}\0{made.call.salt}".encode()
        hashes = block_hashes(text.tokenize(made.call.prompt), size, salt)
        return Job(f"{made.id}-{self._jobs}", made.prompt_tokens, made.tokens, hashes)


def _credential(request: Request) -> str:
    """The key a request carries, as a bearer token or in `x-api-key`; empty if none."""
    bearer = request.header("authorization") or ""
    return bearer.removeprefix("Bearer ") or request.header("x-api-key") or ""


def seeded(spec: ReplicaSpec, seed: int) -> ReplicaSpec:
    """The spec with a seed, its own if it has one."""
    return spec if spec.seed is not None else replace(spec, seed=seed)
