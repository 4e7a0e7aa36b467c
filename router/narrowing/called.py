"""What an endpoint or a key is whatever it is named: what is called where and as whom; its digest.

What was narrowed under one name stays narrowed under another one. Of an endpoint only
what a rename leaves alone counts: the model, the place it is asked at and the credential; not the
context, prices or features. What is asked at another address is another one, for nobody can tell.
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


def alone(name: str, known: Mapping[str, frozenset[str]]) -> tuple[str, ...]:
    """What only the one of this name is, of those known; nothing if there is none.

    Others that are the same beside it were not meant: they have names of their own.
    """
    others = (what for other, what in known.items() if other != name)
    return tuple(sorted(known.get(name, frozenset()).difference(*others)))


def bearing(was: Iterable[str], known: Mapping[str, frozenset[str]]) -> Iterator[str]:
    """The names of those that are any of this now."""
    sought = frozenset(was)
    return (name for name, what in known.items() if sought & what)
