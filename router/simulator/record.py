"""What a simulated service saw: one `Hit` per request, without the prompt unless asked for."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass

from router.simulator.wire import Headers


@dataclass(slots=True, eq=False)
class Hit:
    """One request. `at` is monotonic, `wall` Unix seconds, both of its first byte.

    `outcome`: `open` while it runs, then `answered`, `status:429` and the like, the name of the cut
    (`reset`, `close`, `hang`), `gone` if the client left, `killed` if the replica was. `host` is
    the Host header, `credential` the digest of the key it carried. `transfer`: whether the cache of
    its prompt was `kept` for another server, `fetched` from one, or `lost` on the way.
    """

    at: float
    wall: float
    replica: str
    region: str
    method: str
    path: str
    request_id: str
    host: str = ""
    credential: str = ""
    model: str = ""
    stream: bool = False
    faults: tuple[str, ...] = ()
    transfer: str = ""
    status: int = 0
    tokens: int = 0
    outcome: str = "open"
    ended: float | None = None
    headers: Headers = ()
    body: bytes = b""

    def row(self) -> dict[str, object]:
        """The hit as JSON, without headers and body."""
        names = (
            "at", "wall", "replica", "region", "method", "path", "request_id", "host",
            "credential", "model", "stream",
            "faults", "transfer", "status", "tokens", "outcome", "ended",
        )  # fmt: skip
        return {name: getattr(self, name) for name in names}


def credential_digest(key: str) -> str:
    """Sixteen hex digits that tell two keys apart without keeping either; empty for no key."""
    return hashlib.blake2b(key.encode(), digest_size=8).hexdigest() if key else ""
