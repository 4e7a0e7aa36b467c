"""Who said what about a request: key, tenant, app, headers, body."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final, TypeVar

from classifiers.declared import Declared, declared_in_headers, declared_in_metadata
from policies.attributes import AttributeRefused, Supplied
from router.errors import RequestError
from router.inbound.exchange import OWN, RequestHead
from router.inbound.once import twice
from router.types import Admitted, Authenticated

T = TypeVar("T")
_ATTRIBUTE: Final = b"x-domicile-attr-"
_KNOWN: Final = frozenset(OWN + name for name in (b"tier", b"session", b"priority", b"deadline"))
_RECEIPT: Final = frozenset(
    OWN + name
    for name in (b"record", b"head", b"region", b"footprint", b"endpoint", b"model", b"attempts",
                 b"policy", b"home", b"replayed")
)  # fmt: skip
"""Headers of our answers; a client that sends them back says nothing with them."""


def said_by_head(known: Authenticated) -> list[Supplied]:
    """What key, tenant, app and headers say: all there is before the body."""
    policy = known.arrival.snapshot.policy
    principal = known.principal
    said = [Supplied(name, values, "key") for name, values in principal.attributes.items()]
    tenant = policy.tenants.get(principal.tenant)
    app = policy.apps.get(principal.app) if principal.app is not None else None
    if tenant is not None:
        said += [Supplied(n, tuple(sorted(v)), "tenant") for n, v in tenant.attributes.items()]
    if app is not None:
        said += [Supplied(n, tuple(sorted(v)), "app") for n, v in app.attributes.items()]
    said += _supplied(declared_in_headers(_texts(known.arrival.exchange.head)), "header")
    return said


def said_in_body(admitted: Admitted) -> tuple[Supplied, ...]:
    """What the body's metadata says."""
    if "metadata" not in admitted.body:  # as in most
        return ()
    return tuple(_supplied(declared_in_metadata(admitted.body), "body"))


def attributes_in(head: RequestHead) -> tuple[tuple[bytes, bytes], ...]:
    """The headers that declare attributes, as they came.

    Raises:
        RequestError: another header of ours is not known, or stands twice: what is mistyped (with
            `_` for `-` too) must not pass as silence, nor what is said second, for the first
            request nor any like it.
    """
    if not head.own:
        return ()
    found, once = [], set()
    for pair in head.own:
        name = pair[0]
        if name.startswith(_ATTRIBUTE):
            found.append(pair)
        elif name in once:
            raise twice(name.decode())
        elif name in _KNOWN:
            once.add(name)
        elif name not in _RECEIPT:
            raise _unknown()
    return tuple(found)


def _unknown() -> RequestError:
    """It names the headers that are known, not the one sent."""
    known = ", ".join(one.decode() for one in sorted(_KNOWN))
    return RequestError(
        "invalid_header",
        f"a header that begins like `x-domicile-` is not known; there are {known} "
        "and x-domicile-attr-NAME",
    )


def _supplied(declared: tuple[Declared, ...], source: str) -> Iterator[Supplied]:
    for one in declared:
        yield Supplied(one.name, one.values, source)


def _texts(head: RequestHead) -> Iterator[tuple[str, str]]:
    for name, value in attributes_in(head):
        yield name.decode("latin-1"), value.decode("latin-1")


def refusing(read: Callable[[], T]) -> T:
    """What `read` gives, its refusals turned into the client's error.

    Raises:
        RequestError: `attribute_unknown` or `attribute_not_yours`.
    """
    try:
        return read()
    except AttributeRefused as error:
        raise RequestError(error.code, str(error)) from None
