"""A Bedrock stub with the true wire format. Its record of calls is the residency oracle.

One port stands for every AWS host: the region is that of the Host header (or, when called by
address, of the signature). Signatures are verified; a wrong one gets AWS's 403. Where a call
through a profile "ran" is drawn from its destinations by the seed, and told only to CloudTrail, as
in truth: no response names a region.
"""

from __future__ import annotations

import asyncio
import json
import re
import ssl
import time
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import aclosing
from dataclasses import dataclass, field, fields
from urllib.parse import unquote

from router.simulator import bedrock_frames, bedrock_sigv4, cloudtrail, text
from router.simulator.bedrock_control import ControlPlane
from router.simulator.bedrock_runtime import Invocation, Operation, guardrail_answer, invocation
from router.simulator.bedrock_sigv4 import BadSignature, Secret
from router.simulator.bedrock_world import STATUSES, BedrockError, BedrockWorld
from router.simulator.delivery import Response, deliver, misanswer, plain
from router.simulator.faults import Drawn, Fault, FaultBook, Kind
from router.simulator.pacing import Pacer
from router.simulator.timing import Engine, EngineSpec, Job
from router.simulator.vllm_api import JsonMap, dumps
from router.simulator.wire import Headers, Listener, Reply, Request, Started

TEST_KEY = "AKIDSIMULATED0000001"
TEST_SECRET = Secret("simulated-secret-key")
_HOST = re.compile(
    r"(?P<service>bedrock(-runtime)?)(-fips)?\.(?P<region>[a-z0-9-]+)\."
    r"(amazonaws\.com(\.cn)?|amazonaws\.eu|api\.aws)(:\d+)?"
)


@dataclass(slots=True, eq=False)
class BedrockCall:
    """One call as it came. `region` is of the host, `signed_region` of the signature.

    `credential` is `sigv4`, `bearer` or `none`; `target` the decoded id or ARN in the path, `path`
    as sent. `actual` is where it ran, which no answer tells. `at` is monotonic, `wall` Unix time.
    """

    at: float
    wall: float
    host: str
    region: str
    method: str
    path: str
    request_id: str
    credential: str = "none"
    key_id: str = ""
    signed_region: str = ""
    signed_service: str = ""
    op: str = ""
    target: str = ""
    profile: str = ""
    guardrail: str = ""
    guardrail_version: str = ""
    guardrail_profile: str = ""
    project: str = ""
    stream: bool = False
    status: int = 0
    error: str = ""
    actual: str = ""
    faults: tuple[str, ...] = ()
    outcome: str = "open"
    ended: float | None = None
    headers: Headers = ()
    body: bytes = b""

    def row(self) -> dict[str, object]:
        """The call as JSON, without headers and body."""
        names = [each.name for each in fields(self) if each.name not in {"headers", "body"}]
        return {name: getattr(self, name) for name in names}


@dataclass(frozen=True, slots=True)
class BedrockSpec:
    """What to simulate. `bearers` are accepted API keys; `denied` regions answer 403."""

    world: BedrockWorld
    secrets: Mapping[str, Secret] = field(default_factory=lambda: {TEST_KEY: TEST_SECRET})
    bearers: frozenset[str] = frozenset()
    denied: frozenset[str] = frozenset()
    engine: EngineSpec = field(default_factory=EngineSpec)
    speed: float = 1.0
    seed: int = 0
    port: int = 0
    keep_bodies: bool = False


class BedrockStub(Started):
    """The stub on `url`. `calls` is the record, `trail` what CloudTrail would hold."""

    def __init__(
        self,
        spec: BedrockSpec,
        *,
        tls: ssl.SSLContext | None = None,
        clock: Callable[[], float] = time.monotonic,
        wall: Callable[[], float] = time.time,
    ) -> None:
        self.spec = spec
        self.faults = FaultBook(spec.seed)
        self.calls: list[BedrockCall] = []
        self.trail: list[cloudtrail.Record] = []
        self.retention: dict[str, str] = {}
        self._clock, self._wall = clock, wall
        self._control = ControlPlane(spec.world, self.retention)
        self._listener = Listener(self._answer, port=spec.port, tls=tls, clock=clock)
        self._pacer = Pacer(Engine(spec.engine, spec.seed), speed=spec.speed, clock=clock)

    @property
    def url(self) -> str:
        """Base URL, for `endpoint_url`."""
        return self._listener.url

    @property
    def port(self) -> int:
        """Its port."""
        return self._listener.port

    def fail(self, fault: Fault | Kind) -> None:
        """Arm a fault; `region` and `model` narrow it."""
        self.faults.arm(Fault(fault) if isinstance(fault, Kind) else fault)

    async def start(self) -> None:
        """Listen (again)."""
        await self._listener.start()

    def kill(self) -> None:
        """Refuse connections, for every host."""
        self._listener.stop()

    async def close(self) -> None:
        """Stop for good."""
        await self._listener.close()
        await self._pacer.close()

    async def _answer(self, request: Request, reply: Reply) -> None:
        call = self._record(request)
        with self._listener.noting(call, reply):
            call.outcome = await self._run(request, reply, call)

    def _record(self, request: Request) -> BedrockCall:
        number = text.generator(self.spec.seed, "request", str(len(self.calls))).getrandbits(128)
        host = request.header("host") or ""
        named = _HOST.fullmatch(host)
        age = self._clock() - request.began
        call = BedrockCall(
            request.began, self._wall() - age, host, named["region"] if named else "",
            request.method, request.path, cloudtrail.as_uuid(number),
        )  # fmt: skip
        authorization = request.header("authorization") or ""
        if (claimed := bedrock_sigv4.scope(request)) is not None:
            call.credential, call.key_id = "sigv4", claimed.key_id
            call.signed_region, call.signed_service = claimed.region, claimed.service
        elif authorization.startswith("Bearer "):
            call.credential = "bearer"
        if self.spec.keep_bodies:
            call.headers, call.body = request.headers, request.body
        self.calls.append(call)
        return call

    async def _run(self, request: Request, reply: Reply, call: BedrockCall) -> str:
        try:
            region = self._region(request, call)
            if region in self.spec.denied:
                raise BedrockError("AccessDeniedException", "You don't have access to the model.")
            return await self._serve(request, reply, call, region)
        except BadSignature as error:
            return await self._refuse(reply, call, BedrockError(error.code, str(error)))
        except BedrockError as error:
            return await self._refuse(reply, call, error)

    def _region(self, request: Request, call: BedrockCall) -> str:
        """The region this call is for, once its credentials are right."""
        if call.credential == "bearer":
            token = (request.header("authorization") or "").partition(" ")[2]
            if token not in self.spec.bearers:
                raise BedrockError("AccessDeniedException", "Authentication failed: bad API key.")
            return call.region
        claimed = bedrock_sigv4.verify(request, self.spec.secrets, self._wall())
        if claimed.service != "bedrock" or (call.region and claimed.region != call.region):
            raise BedrockError(
                "InvalidSignatureException", "Credential should be scoped to a valid region."
            )
        return claimed.region

    async def _serve(self, request: Request, reply: Reply, call: BedrockCall, region: str) -> str:
        document = _document(request.body)
        found = self._control.answer(request.method, request.path, request.query, document, region)
        if found is not None:
            call.op = found[0]
            await reply.answer(200, dumps(found[1]), "application/json", *self._headers(call))
            return "answered"
        operation = self._operation(request, call)
        drawn = self.faults.draw(model=call.target, region=region, path=call.path)
        call.faults = drawn.names
        if drawn.instead is not None:
            return await self._misbehave(reply, call, drawn.instead)
        if operation is Operation.APPLY_GUARDRAIL:
            body = self._apply_guardrail(call, document, region)
            return await self._deliver(reply, plain(200, dumps(body), *self._headers(call)), drawn)
        return await self._invoke(request, reply, call, (operation, document, region, drawn))

    def _operation(self, request: Request, call: BedrockCall) -> Operation:
        parts = request.path.strip("/").split("/")
        match [request.method, *parts]:
            case ["POST", "model", name, verb] if verb in Operation.verbs():
                operation = Operation.verbs()[verb]
                call.target = unquote(name)
            case ["POST", "guardrail", name, "version", version, "apply"]:
                operation = Operation.APPLY_GUARDRAIL
                call.guardrail, call.guardrail_version = unquote(name), version
            case _:
                raise BedrockError("UnknownOperationException", "Unable to determine the operation")
        call.op, call.stream = operation.value, operation.streams
        return operation

    def _apply_guardrail(self, call: BedrockCall, document: JsonMap, region: str) -> JsonMap:
        world = self.spec.world
        guardrail = world.guardrail(call.guardrail, call.guardrail_version, region)
        call.guardrail_profile = guardrail.profile
        return guardrail_answer(guardrail, document)

    async def _invoke(
        self,
        request: Request,
        reply: Reply,
        call: BedrockCall,
        asked: tuple[Operation, JsonMap, str, Drawn],
    ) -> str:
        operation, document, region, drawn = asked
        target = self.spec.world.resolve(call.target, region)
        call.profile = target.profile
        made = invocation(operation, request, document, target.model, self.spec, region)
        call.guardrail, call.guardrail_version = made.guardrail, made.guardrail_version
        call.guardrail_profile, call.project = made.guardrail_profile, made.project
        if operation is Operation.COUNT_TOKENS:
            body = dumps({"inputTokens": made.said.prompt_tokens})
            return await self._deliver(reply, plain(200, body, *self._headers(call)), drawn)
        rng = text.generator(self.spec.seed, "inference region", call.request_id)
        call.actual = rng.choice(target.destinations)
        try:
            response = await self._respond(call, made)
            return await self._deliver(reply, response, drawn)
        finally:  # it ran, whether or not the client stayed to hear it
            self._log(call, region, made)

    async def _respond(self, call: BedrockCall, made: Invocation) -> Response:
        tokens = self._tokens(call, made)
        headers = (*self._headers(call), *made.headers)
        if call.stream:
            kind = ("content-type", "application/vnd.amazon.eventstream")
            return Response(200, (kind, *headers), made.frames(tokens))
        async with aclosing(tokens):
            async for _ in tokens:
                pass
        return plain(200, dumps(made.body), *headers)

    async def _tokens(self, call: BedrockCall, made: Invocation) -> AsyncGenerator[int, None]:
        job = Job(call.request_id, max(1, made.said.prompt_tokens), made.said.tokens)
        async with aclosing(self._pacer.run(job)) as outputs:
            async for progress in outputs:
                yield progress.token

    async def _deliver(self, reply: Reply, response: Response, drawn: Drawn) -> str:
        return await deliver(reply, response, drawn, exception_frame)

    async def _misbehave(self, reply: Reply, call: BedrockCall, fault: Fault) -> str:
        if fault.kind is not Kind.STATUS:
            await misanswer(reply, fault, asyncio.sleep)
            return fault.kind.value
        kind = fault.error or _KINDS.get(fault.status, "InternalServerException")
        error = BedrockError(kind, fault.body or f"simulated {kind}")
        error.status = STATUSES.get(fault.error, fault.status)
        return await self._refuse(reply, call, error)

    async def _refuse(self, reply: Reply, call: BedrockCall, error: BedrockError) -> str:
        call.error = error.kind
        self._log(call, call.region or call.signed_region, None, str(error))
        source = "http://internal.amazon.com/coral/com.amazon.bedrock/"
        kind = ("x-amzn-errortype", f"{error.kind}:{source}")
        body = dumps({"message": str(error)})
        await reply.answer(error.status, body, "application/json", kind, *self._headers(call))
        return f"status:{error.status}"

    def _headers(self, call: BedrockCall) -> Headers:
        return (("x-amzn-requestid", call.request_id),)

    def _log(
        self, call: BedrockCall, region: str, made: Invocation | None, message: str = ""
    ) -> None:
        if call.op not in _LOGGED:
            return
        said = made.said if made is not None else None
        self.trail.extend(
            cloudtrail.records(
                cloudtrail.Invocation(
                    call.wall, call.op, region, call.target, call.request_id,
                    self.spec.world.account, call.key_id, call.host, call.stream,
                    call.actual if call.profile else "",
                    said.prompt_tokens if said else 0, said.tokens if said else 0,
                    call.error, message,
                )
            )
        )  # fmt: skip


_KINDS = {
    400: "ValidationException", 403: "AccessDeniedException", 404: "ResourceNotFoundException",
    408: "ModelTimeoutException", 424: "ModelErrorException", 429: "ThrottlingException",
    503: "ServiceUnavailableException",
}  # fmt: skip
_LOGGED = frozenset({"Converse", "ConverseStream", "InvokeModel", "InvokeModelWithResponseStream"})


def exception_frame(fault: Fault) -> bytes:
    """An in-stream exception, named by the fault's `error` or else by its status."""
    named = fault.error or _KINDS.get(fault.status, "InternalServerException")
    name = named[0].lower() + named[1:]
    payload: dict[str, object] = {"message": fault.body or f"simulated {name}"}
    if name == "modelStreamErrorException":
        payload |= {"originalStatusCode": fault.status, "originalMessage": "simulated"}
    return bedrock_frames.exception(name, payload)


def _document(body: bytes) -> JsonMap:
    if not body:
        return {}
    try:
        document = json.loads(body)
    except ValueError as error:
        raise BedrockError("SerializationException", "the body is not JSON") from error
    if not isinstance(document, dict):
        raise BedrockError("SerializationException", "the body is not a JSON object")
    return document
