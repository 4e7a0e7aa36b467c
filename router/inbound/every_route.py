"""What comes before every route of a FastAPI application, which inference routes are not."""

from __future__ import annotations

from starlette.requests import Request

from router.inbound.once import ONCE, refuse_repeated


async def once(request: Request) -> None:
    """Refuse what says twice whose request it is, see `refuse_repeated`.

    Raises:
        RequestError: one of `ONCE` stands twice in the head.
    """
    names = [name for name, _ in request.headers.raw]
    refuse_repeated(name for name in ONCE if names.count(name) > 1)
