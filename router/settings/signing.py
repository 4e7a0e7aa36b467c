"""What compliance keys sign: the baseline files, and the authorities that these name (`ca:`).

Whoever is trusted to prove an endpoint's name can be sent its prompts, so what a file of
authorities holds can widen as much as the line that names it. Of such a file the certificates
count, as they do for TLS. Certificates that the router shows are not signed: they widen nothing,
and are renewed often.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from policies.gathered import PolicyFile
from regions.document import Document
from regions.model import Endpoint
from router.config import ConfigError
from router.settings.authorities import authorities
from router.transport.messages import Tls


def signed_files(baseline: Sequence[PolicyFile], base: Path) -> list[PolicyFile]:
    """The files whose names and contents are signed.

    Raises:
        ConfigError: authorities that can't be read. DocumentErrors: a baseline file is no YAML.
    """
    names = sorted({name for file in baseline for name in _named(file)})
    found = [PolicyFile(name, authorities(base / name).encode()) for name in names]
    return [*baseline, *found]


def _named(file: PolicyFile) -> Iterator[str]:
    """The files of authorities that a baseline file names, as far as it is one."""
    tree = Document.parse(file.content, file.name).tree
    endpoints = tree.get("endpoints") if isinstance(tree, dict) else None
    for one in endpoints.values() if isinstance(endpoints, dict) else ():
        said = one.get("ca") if isinstance(one, dict) else None
        if isinstance(said, str) and said.startswith("file:"):
            yield said.removeprefix("file:")


def require_same(
    signed: Sequence[PolicyFile], endpoints: Mapping[str, Endpoint], trust: Mapping[str, Tls]
) -> None:
    """Refuse authorities that are others than those that were signed: they were read twice.

    Raises:
        ConfigError: a file changed between.
    """
    contents = {file.name: file.content for file in signed}
    for name, tls in trust.items():
        path = endpoints[name].settings.get("ca", "").removeprefix("file:")
        if tls.ca is not None and contents.get(path) != tls.ca.encode():
            raise ConfigError(f"endpoint `{name}`: `{path}` changed while it was read; try again")
