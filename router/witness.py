"""The witness as a web application: `POST /add-checkpoint`, plain ASGI without a framework.

Run it somewhere the router's operator can't reach. It never reads more than a request may have.
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, MutableMapping

from router.audit.anchors.witness import Answer, Witness

Message = MutableMapping[str, object]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
Application = Callable[[Mapping[str, object], Receive, Send], Awaitable[None]]

MAX_BODY = 64 << 10


def witness_app(witness: Witness) -> Application:
    """An ASGI application that answers for one witness, one request at a time."""
    turn = asyncio.Lock()

    async def application(scope: Mapping[str, object], receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await _lifespan(receive, send)
        elif scope["type"] == "http":
            await _answer(send, await _judge(witness, turn, scope, receive))

    return application


async def _judge(
    witness: Witness, turn: asyncio.Lock, scope: Mapping[str, object], receive: Receive
) -> Answer:
    if scope["path"] != "/add-checkpoint":
        return Answer(404, "post to /add-checkpoint\n")
    if scope["method"] != "POST":
        return Answer(405, "use POST\n")
    body = await _body(receive)
    if body is None:
        return Answer(413, f"a request has at most {MAX_BODY} bytes\n")
    try:
        async with turn:
            return await asyncio.to_thread(witness.add_checkpoint, body)
    except OSError:
        return Answer(503, "the checkpoint can't be stored now\n")


async def _body(receive: Receive) -> bytes | None:
    """The whole body; None when it is too long or the client left."""
    body = b""
    while True:
        message = await receive()
        part = message.get("body", b"")
        body += part if isinstance(part, bytes) else b""
        if message["type"] != "http.request" or len(body) > MAX_BODY:
            return None
        if not message.get("more_body"):
            return body


async def _answer(send: Send, answer: Answer) -> None:
    kind = b"text/x.tlog.size" if answer.status == 409 else b"text/plain; charset=utf-8"
    headers = [(b"content-type", kind)]
    await send({"type": "http.response.start", "status": answer.status, "headers": headers})
    await send({"type": "http.response.body", "body": answer.body.encode()})


async def _lifespan(receive: Receive, send: Send) -> None:
    while True:
        message = await receive()
        if message["type"] == "lifespan.startup":
            await send({"type": "lifespan.startup.complete"})
        else:
            await send({"type": "lifespan.shutdown.complete"})
            return
