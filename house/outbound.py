"""Only `router/transport` opens outbound connections.

1. client libraries are imported there and nowhere else, but for the parts listed with their reason
2. who needs only a library's value classes (`INERT`) may import it and use nothing else of it
3. nobody else calls `open_connection`, `create_connection` or `connect_ex`, by whatever import
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from house.tree import Finding, Source, Tree

TRANSPORT = "router.transport"
# library -> the packages that may import it beside the transport, and for what
ALLOWED: dict[str, tuple[str, ...]] = {
    "socket": (  # they listen
        "router.inbound.backlog",
        "router.server",
        "router.simulator",
        "router.supervisor",
    ),
    "boto3": ("router.watch", "router.storage", "router.audit", "router.cli"),  # AWS's own stores
    "redis": ("router.state",),
    "dns": (),
    "httpx": (),
    "aiohttp": (),
    "requests": (),
    "http.client": (),
    "urllib.request": (),
    "urllib3": (),
    "websockets": (),
    "openai": ("router.simulator",),  # the demo's applications
    "anthropic": ("router.simulator",),
    "smtplib": (),
    "ftplib": (),
    "telnetlib": (),
    "xmlrpc.client": (),
}
# library -> what of it opens nothing: litellm's functions read an answer from an `httpx.Response`
INERT = {"httpx": frozenset({"Response", "Request", "Headers"})}
_CALLS = frozenset(
    {
        "open_connection",
        "open_unix_connection",
        "create_connection",
        "create_unix_connection",
        "connect_ex",
        "sock_connect",
    }
)
_CALLERS = (TRANSPORT, "router.simulator")


def findings(tree: Tree) -> Iterator[Finding]:
    """Every outbound connection opened, or client imported, by someone who may not."""
    for source in tree.sources:
        yield from imports(source)
        yield from calls(source)


def imports(source: Source) -> Iterator[Finding]:
    """Client libraries imported in the wrong place, at whatever depth of the file."""
    inert = {name for name in INERT if uses_inert_parts_only(source.tree, name)}
    for line, name in imported(source.tree):
        for library, allowed in ALLOWED.items():
            allowed_here = name in inert or _may(source.module, (TRANSPORT, *allowed))
            if _is_in(name, library) and not allowed_here:
                text = f"imports `{name}`; only {TRANSPORT} opens outbound connections"
                yield Finding(str(source.path), line, text)


def calls(source: Source) -> Iterator[Finding]:
    """Calls that open a connection without importing a client library."""
    if _may(source.module, _CALLERS):
        return
    for node in ast.walk(source.tree):
        if isinstance(node, ast.Call):
            name = getattr(node.func, "attr", getattr(node.func, "id", ""))
            if name in _CALLS:
                text = f"calls `{name}`; only {TRANSPORT} opens outbound connections"
                yield Finding(str(source.path), node.lineno, text)


def uses_inert_parts_only(tree: ast.Module, library: str) -> bool:
    """Whether each mention of `library` by its own name is `library.X` with an inert X."""
    names = [n for n in ast.walk(tree) if isinstance(n, ast.Name) and n.id == library]
    parts = [
        node
        for node in ast.walk(tree)
        if isinstance(node, ast.Attribute)
        and isinstance(node.value, ast.Name)
        and node.value.id == library
        and node.attr in INERT[library]
    ]
    renamed = any(
        node.name == library and node.asname
        for node in ast.walk(tree)
        if isinstance(node, ast.alias)
    )
    return 0 < len(names) == len(parts) and not renamed


def imported(tree: ast.Module) -> Iterator[tuple[int, str]]:
    """Full names of everything imported: `from a import b` gives `a.b`."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from ((node.lineno, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield from ((node.lineno, f"{node.module}.{alias.name}") for alias in node.names)


def _is_in(name: str, package: str) -> bool:
    return name == package or name.startswith(package + ".")


def _may(module: str, allowed: tuple[str, ...]) -> bool:
    return any(_is_in(module, package) for package in allowed)
