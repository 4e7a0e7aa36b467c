"""What `/healthz` answers, on both listeners: whether this process is worth keeping."""

from __future__ import annotations

from fastapi.responses import JSONResponse

from router.live import Live


def healthy(live: Live | None) -> JSONResponse:
    """200 while a process can serve, now or later; 503 when only a new one can, and why.

    `live` is `None` for a process that starts others.
    """
    ended = "" if live is None else live.ended()
    return JSONResponse({"status": ended or "ok"}, 503 if ended else 200)
