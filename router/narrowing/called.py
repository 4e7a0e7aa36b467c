"""What an endpoint is whatever it is named: what is called where, and as whom.

What was narrowed under one name stays narrowed under another one. Only what a rename leaves alone
counts: the model, the place it is asked at and the credential; not the context, prices or features.
A server that is asked at another address is another one, for nobody can tell.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from regions.model import Endpoint


def called(endpoint: Endpoint) -> frozenset[str]:
    """One word for each place it is called at."""
    at = [url.rstrip("/") for url in endpoint.urls]
    at += filter(None, [endpoint.settings.get("replicas")])
    what = f"{endpoint.provider} {endpoint.source} {endpoint.model} {endpoint.credentials}"
    return frozenset(f"{what} {one}".rstrip() for one in at or [""])


def alone(name: str, endpoints: Mapping[str, Endpoint]) -> tuple[str, ...]:
    """What only the endpoint of this name calls; nothing if there is none.

    Others that call the same beside it were not meant: they have names of their own.
    """
    if name not in endpoints:
        return ()
    others = (called(one) for other, one in endpoints.items() if other != name)
    return tuple(sorted(called(endpoints[name]).difference(*others)))


def bearing(was: Iterable[str], endpoints: Mapping[str, Endpoint]) -> Iterator[str]:
    """The names of the endpoints that call any of this now."""
    known = frozenset(was)
    return (name for name, one in endpoints.items() if known & called(one))
