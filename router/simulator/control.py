"""A port from which a running simulation can be broken, healed and read. Tests and demos only.

`GET /fleet`, `GET /seen`, `POST /fail?REPLICA` with a fault as JSON, `POST /kill?REPLICA`, and so
for `freeze`, `thaw`, `heal`. With a Bedrock stub also `GET /bedrock/calls`, `GET /bedrock/trail`,
`POST /bedrock/fail`, `POST /bedrock/heal`.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Protocol

from router.simulator import vllm_api
from router.simulator.bedrock import BedrockStub
from router.simulator.faults import Fault
from router.simulator.record import Hit
from router.simulator.replica import Replica
from router.simulator.wire import Listener, Reply, Request


class Broken(Protocol):
    """What is controlled: a fleet of replicas."""

    def __getitem__(self, name: str) -> Replica:
        """A replica by name, or KeyError."""

    def describe(self) -> list[dict[str, object]]:
        """The state of every replica."""

    @property
    def seen(self) -> Sequence[Hit]:
        """Every generation request."""


class Control:
    """The control port of a fleet and, if there is one, a Bedrock stub."""

    def __init__(self, fleet: Broken, bedrock: BedrockStub | None = None) -> None:
        self._fleet, self._bedrock = fleet, bedrock
        self.listener = Listener(self._answer)

    async def _answer(self, request: Request, reply: Reply) -> None:
        try:
            result = await self._carry_out(request)
            await reply.answer(200, vllm_api.dumps(result), "application/json")
        except (KeyError, ValueError) as error:
            body = vllm_api.dumps({"error": str(error.args[0])})
            await reply.answer(400, body, "application/json")

    async def _carry_out(self, request: Request) -> object:
        match request.method, request.path.strip("/").split("/"):
            case "GET", ["fleet"]:
                return self._fleet.describe()
            case "GET", ["seen"]:
                return [hit.row() for hit in self._fleet.seen]
            case _, ["bedrock", verb] if self._bedrock is not None:
                return _bedrock(self._bedrock, verb, request)
            case "POST", [verb]:
                await _break(self._fleet[request.query], verb, request)
                return self._fleet.describe()
            case _:
                raise ValueError(
                    f"no such control `{request.method} {request.path}`; there are `GET /fleet`, "
                    "`GET /seen`, `POST /VERB?REPLICA` with kill, freeze, thaw, heal and fail"
                )


async def _break(replica: Replica, verb: str, request: Request) -> None:
    simple: Mapping[str, Callable[[], None]] = {
        "kill": replica.kill, "freeze": replica.freeze, "thaw": replica.thaw,
    }  # fmt: skip
    if verb == "fail":
        replica.fail(Fault.parse(_json(request.body)))
    elif verb == "heal":
        await replica.heal()
    elif verb in simple:
        simple[verb]()
    else:
        raise ValueError(f"no such control `{verb}`; there are fail, heal, {', '.join(simple)}")


def _json(body: bytes) -> object:
    try:
        return json.loads(body)
    except ValueError as error:
        raise ValueError(f"the body is no JSON: {error}") from None


def _bedrock(stub: BedrockStub, verb: str, request: Request) -> object:
    match request.method, verb:
        case "GET", "calls":
            return [call.row() for call in stub.calls]
        case "GET", "trail":
            return stub.trail
        case "POST", "fail":
            stub.fail(Fault.parse(_json(request.body)))
        case "POST", "heal":
            stub.faults.clear()
        case _:
            raise ValueError(f"no such control `{request.method} bedrock/{verb}`")
    return [fault.kind.value for fault in stub.faults.armed]
