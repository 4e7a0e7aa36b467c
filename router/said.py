"""Who said what about a request: key, tenant, app, headers, body."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TypeVar

from classifiers.declared import Declared, declared_in_headers, declared_in_metadata
from policies.attributes import AttributeRefused, Supplied
from router.errors import RequestError
from router.types import Admitted, Authenticated

T = TypeVar("T")


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
    headers = known.arrival.exchange.head.headers
    said += _supplied(declared_in_headers(_texts(headers)), "header")
    return said


def said_in_body(admitted: Admitted) -> list[Supplied]:
    """What the body's metadata says."""
    return list(_supplied(declared_in_metadata(admitted.body), "body"))


def _supplied(declared: tuple[Declared, ...], source: str) -> Iterator[Supplied]:
    for one in declared:
        yield Supplied(one.name, one.values, source)


def _texts(headers: object) -> Iterator[tuple[str, str]]:
    if isinstance(headers, list | tuple):
        for name, value in headers:
            if name.startswith(b"x-domicile-attr-"):
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
