"""What a simulated service saw: one `Hit` per request, without the prompt unless asked for."""

from __future__ import annotations

from dataclasses import dataclass

from router.simulator.wire import Headers


@dataclass(slots=True, eq=False)
class Hit:
    """One request. `at` is monotonic, `wall` Unix seconds, both of its first byte.

    `outcome`: `open` while it runs, then `answered`, `status:429` and the like, the name of the cut
    (`reset`, `close`, `hang`), `gone` if the client left, `killed` if the replica was.
    """

    at: float
    wall: float
    replica: str
    region: str
    method: str
    path: str
    request_id: str
    model: str = ""
    stream: bool = False
    faults: tuple[str, ...] = ()
    status: int = 0
    tokens: int = 0
    outcome: str = "open"
    ended: float | None = None
    headers: Headers = ()
    body: bytes = b""

    def row(self) -> dict[str, object]:
        """The hit as JSON, without headers and body."""
        names = (
            "at", "wall", "replica", "region", "method", "path", "request_id", "model", "stream",
            "faults", "status", "tokens", "outcome", "ended",
        )  # fmt: skip
        return {name: getattr(self, name) for name in names}
