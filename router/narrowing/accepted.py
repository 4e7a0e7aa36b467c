"""Accepted drift: what a profile's members are now, said and signed by the compliance team.

Files `accepted-drift/*.yaml` in the folder of a baseline file:

    version: 1
    accepted:
      - profile: eu.anthropic.claude-sonnet-4-6
        source: eu-central-1
        members: eu-central-1 eu-north-1 eu-west-1
        checked_on: 2026-12-01
        because: "AWS support case, new region"

The members replace the catalog's for that profile and source region, and footprints follow: what
leaves a boundary then is refused. With compliance keys configured each file needs their
signatures, in `.sig` files of the same folder. A narrower footprint lets more through, so this is
part of the baseline.
"""

from __future__ import annotations

import base64
import binascii
import datetime as dt
import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Final

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from pydantic import Field

from policies.gathered import PolicyFile
from policies.signatures import ComplianceKey, NotSigned
from regions.catalog import Catalog
from regions.document import Document, validate
from regions.facts import BedrockFacts, Profile, Words
from router.config import ConfigError, named_file
from router.settings.config_types import Strict

FOLDER: Final = "accepted-drift"
PREFIX: Final = b"domicile accepted drift v1\n"
_REGION: Final = r"^(aws:)?[a-z]{2,4}(-[a-z]+){1,2}-\d{1,2}$"


class AcceptedRow(Strict):
    """One profile as seen from one source region."""

    profile: Annotated[str, Field(pattern=r"^[a-z-]+\.[A-Za-z0-9._:-]+$")]
    source: Annotated[str, Field(pattern=_REGION)]
    members: Annotated[Words, Field(min_length=1)]
    checked_on: dt.date
    because: Annotated[str, Field(min_length=1)]


class AcceptedFile(Strict):
    """One file."""

    version: Annotated[str, Field(pattern=r"^1$")]
    accepted: tuple[AcceptedRow, ...]


@dataclass(frozen=True, slots=True)
class Accepted:
    """All of it: the files as read, and the members by (profile, source region)."""

    files: tuple[PolicyFile, ...] = ()
    members: Mapping[tuple[str, str], AcceptedRow] | None = None

    @property
    def known(self) -> frozenset[tuple[str, str]]:
        """The profiles, each with its source region, that something is accepted of."""
        return frozenset(self.members or ())


def message(file: PolicyFile) -> bytes:
    """What is signed: the file's base name and SHA-256."""
    digest = hashlib.sha256(file.content).hexdigest()
    return PREFIX + f"{digest}  {Path(file.name).name}\n".encode()


def sign(file: PolicyFile, key: Ed25519PrivateKey) -> bytes:
    """The content of a `.sig` file."""
    return base64.b64encode(key.sign(message(file))) + b"\n"


def read_accepted(
    baseline: Sequence[PolicyFile], base: Path, keys: Sequence[ComplianceKey], needed: int
) -> Accepted:
    """What is accepted in the folders of the baseline files.

    Raises:
        DocumentErrors: a file that can't be read. ConfigError: one profile accepted twice.
        NotSigned: fewer signatures than needed.
    """
    folders = dict.fromkeys((base / file.name).parent / FOLDER for file in baseline)
    files: list[PolicyFile] = []
    for folder in folders:
        signatures = [named_file(path, "the signature ") for path in sorted(folder.glob("*.sig"))]
        for path in sorted(folder.glob("*.yaml")):
            file = PolicyFile(f"{FOLDER}/{path.name}", named_file(path))
            if keys:
                _require_signed(file, signatures, keys, needed)
            files.append(file)
    return said_in(files)


def said_in(files: Sequence[PolicyFile]) -> Accepted:
    """What files that were checked before say: signatures are not looked at again.

    Raises:
        DocumentErrors, ConfigError: as `read_accepted`.
    """
    return Accepted(tuple(files), _members(files))


def _require_signed(
    file: PolicyFile, signatures: Sequence[bytes], keys: Sequence[ComplianceKey], needed: int
) -> None:
    text = message(file)
    signed = {key.id for key in keys for one in signatures if _verifies(key, one, text)}
    if len(signed) < needed:
        raise NotSigned(
            f"`{file.name}` needs {needed} signatures of the compliance keys and has "
            f"{len(signed)}; sign it as it is now with `domicile regions accept`"
        )


def _verifies(key: ComplianceKey, signature: bytes, text: bytes) -> bool:
    try:
        key.key.verify(base64.b64decode(signature.strip(), validate=True), text)
    except (InvalidSignature, binascii.Error):
        return False
    return True


def _members(files: Iterable[PolicyFile]) -> dict[tuple[str, str], AcceptedRow]:
    found: dict[tuple[str, str], AcceptedRow] = {}
    for file in files:
        document = Document.parse(file.content, file.name)
        for row in validate(document, AcceptedFile).accepted:
            key = (row.profile, row.source.removeprefix("aws:"))
            if key in found or row.profile.startswith("global."):
                what = "runs anywhere" if key not in found else "is accepted twice"
                raise ConfigError(f"{file.name}: `{row.profile}` from `{key[1]}` {what}")
            found[key] = row
    return found


def overlaid(catalog: Catalog, accepted: Accepted) -> Catalog:
    """The catalog with accepted members in the place of its own; a digest of its own."""
    if not accepted.members:
        return catalog
    seed = hashlib.sha256(catalog.digest.encode())
    for file in accepted.files:
        seed.update(message(file))
    facts = _with_members(catalog.bedrock, accepted.members)
    return replace(catalog, bedrock=facts, digest=seed.hexdigest())


def _with_members(
    facts: BedrockFacts, members: Mapping[tuple[str, str], AcceptedRow]
) -> BedrockFacts:
    profiles = dict(facts.profiles)
    prefixes = set(facts.prefixes)
    for (name, source), row in members.items():
        known = profiles.get(name)
        routes = dict(known.routes) if known is not None else {}
        routes[source] = tuple(member.removeprefix("aws:") for member in row.members)
        said = f"accepted drift, checked on {row.checked_on.isoformat()}: {row.because}"
        profiles[name] = Profile(name, routes, said)
        prefixes.add(name.partition(".")[0])
    return replace(facts, profiles=profiles, prefixes=frozenset(prefixes))
