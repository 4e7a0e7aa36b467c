"""Files → one checked `Snapshot`, or every reason why there is none.

1. `domicile.yaml`;
2. baseline and rule files, their signatures first when compliance keys are configured, over the
   authorities that they name too;
3. keys;
4. the provider of each endpoint kind in use, imported here and not on a request's path;
5. where each endpoint is, with its credential and what its TLS trusts;
6. what the parts must agree on: the router's own region and peers, obligations, tenants;
7. the snapshot's content and digest, for the log.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType
from typing import Final

import orjson

from policies.gathered import PolicyFile
from policies.loader import load as load_policy
from policies.model import Policy
from policies.signatures import ComplianceKey, require_signed
from regions.boundaries import boundary
from regions.catalog import package_data
from regions.document import Document
from regions.document import Path as DocumentPath
from regions.places import PlaceError
from router import obligations
from router.audit.settings import LogSettings
from router.auth import EVERY, KeyRing, Principal, load_keys
from router.capacity.priority import unread
from router.config import Config, ConfigError, PoliciesSection, expand, load, named_file
from router.decisions.classifying import mistakes
from router.narrowing.accepted import Accepted, overlaid, read_accepted
from router.providers.base import Provider
from router.providers.registry import PROVIDERS
from router.providers.registry import load as load_provider
from router.settings.authorities import place_of, printed, tls_of
from router.settings.salting import salts_of
from router.settings.secrets import resolve
from router.settings.signing import require_same, signed_files
from router.settings.targets import secrets_of, targets_of
from router.snapshot import Snapshot
from router.storage.kms import kms_authority
from router.tiers.difficulty import rate
from router.transport.messages import Tls

FORMAT: Final = 1
_NOTHING: Final[Mapping[str, str]] = MappingProxyType({})


def load_snapshot(path: Path, environment: Mapping[str, str], now: float) -> Snapshot:
    """The snapshot that a configuration file describes.

    Args:
        path: the configuration file; every other path is relative to its folder.
        environment: for `env:` references; nothing else is read from it.
        now: seconds since the epoch.

    Raises:
        ConfigError, DocumentErrors: what is wrong, with places.
    """
    base = path.parent
    config = load(path)
    baseline = read_files(config.policies.baseline, base)
    rules = read_files(config.policies.rules, base)
    authority = compliance_keys(config.policies, base)
    signing = signed_files(baseline, base) if authority else []
    signed = _signed(config.policies, authority, signing, baseline, base)
    loaded = load_policy(baseline, rules)
    accepted = _accepted(config.policies, authority, baseline, base)
    catalog = overlaid(loaded.catalog, accepted)
    keys = keys_in(base / config.keys.file)
    providers = _providers(loaded.policy)
    trust = _trust(loaded.policy, base, baseline)
    if authority:
        require_same(signing, loaded.policy.endpoints, trust)
    targets = targets_of(loaded.policy, providers, environment, base, trust)
    _agree(path, config, loaded.policy, keys, baseline)
    difficulty = rate(loaded.policy, base)
    data, facts = catalog_data()
    signed = {**signed, **_trusted(trust)}
    content = _content(config, catalog.digest, data, baseline, rules, accepted, keys, signed)
    return Snapshot(
        hashlib.sha256(content).hexdigest(),
        content,
        config,
        loaded.policy,
        catalog,
        keys,
        providers,
        targets,
        now,
        accepted=accepted.known,
        attached={data: facts},
        difficulty=difficulty,
        trust=trust,
        salts=salts_of(config, keys, environment, base),
        secrets=secrets_of(loaded.policy, environment, base),
    )


def catalog_data() -> tuple[str, bytes]:
    """The package's facts as one JSON object (file name → text), and its SHA-256 in hex.

    Stored beside the log, so that a decision can be made again after an upgrade.
    """
    files = {name: content.decode() for name, content in package_data()}
    text = orjson.dumps(files, option=orjson.OPT_SORT_KEYS)
    return hashlib.sha256(text).hexdigest(), text


def log_settings(
    config: Config, base: Path, environment: Mapping[str, str] = _NOTHING
) -> LogSettings:
    """Where this process's log goes; paths are relative to `base`.

    Raises:
        ConfigError: credentials for KMS that can't be used.
    """
    scheme, _, name = config.log.signing_key.partition(":")
    in_kms = scheme == "kms"
    key = kms_authority(name, config.log.kms, environment, base) if in_kms else base / name
    settings = LogSettings(
        base / config.log.dir,
        config.router.id,
        key,
        durability="replicated" if config.log.durability == "replicated" else "local",
        key_period=config.log.key_period,
    )
    seal = config.log.seal
    if seal is None:
        return settings
    return replace(settings, segment_bytes=seal.size, segment_seconds=seal.every)


def read_files(patterns: Sequence[str], base: Path) -> list[PolicyFile]:
    """The files behind paths and globs, by the names that messages show.

    Raises:
        ConfigError: a pattern without a file, or a file that can't be read.
    """
    found = []
    for path in expand(tuple(patterns), base):
        shown = path.relative_to(base) if path.is_relative_to(base) else path
        found.append(PolicyFile(str(shown), named_file(path, "the policy file ")))
    return found


def _signed(
    section: PoliciesSection,
    authority: Sequence[ComplianceKey],
    signing: Sequence[PolicyFile],
    baseline: Sequence[PolicyFile],
    base: Path,
) -> Mapping[str, object]:
    """2. With compliance keys configured, an unsigned baseline does not load. Who signed, and whose
    signatures were needed, for the snapshot."""
    signers: tuple[str, ...] = ()
    if authority:
        try:
            signatures = baseline_signatures(baseline, base)
            signers = require_signed(signing, signatures, authority, section.signatures)
        except ValueError as error:
            raise ConfigError(str(error)) from None
    keys = [one.text for one in authority]
    return {
        "signed_by": list(signers),
        "compliance": {"keys": keys, "needed": section.signatures},
    }


def _trusted(trust: Mapping[str, Tls]) -> Mapping[str, object]:
    """Whom TLS trusts at which endpoint and what it is shown there, for the snapshot; no keys."""
    return {"trust": {name: printed(tls) for name, tls in trust.items()}} if trust else {}


def compliance_keys(section: PoliciesSection, base: Path) -> list[ComplianceKey]:
    """The keys that must have signed what can widen.

    Raises:
        ConfigError: a reference that leads nowhere, or to no key.
    """
    try:
        return [ComplianceKey.read(resolve(one, {}, base)) for one in section.signed_by]
    except ValueError as error:
        raise ConfigError(str(error)) from None


def baseline_signatures(baseline: Sequence[PolicyFile], base: Path) -> list[bytes]:
    """The contents of the `.sig` files beside the baseline."""
    return [text for file in baseline for text in _beside(base / file.name)]


def _accepted(
    section: PoliciesSection,
    authority: Sequence[ComplianceKey],
    baseline: Sequence[PolicyFile],
    base: Path,
) -> Accepted:
    """2. What the compliance team accepted of drift, signed as the baseline is."""
    try:
        return read_accepted(baseline, base, authority, section.signatures)
    except ValueError as error:
        raise ConfigError(str(error)) from None


def _beside(path: Path) -> list[bytes]:
    """The detached signatures in a baseline file's folder: every `*.sig`."""
    return [named_file(one, "the signature ") for one in sorted(path.parent.glob("*.sig"))]


def keys_in(path: Path) -> KeyRing:
    """The keys of `keys.file`.

    Raises:
        ConfigError: it can't be read, or holds no list of keys.
    """
    try:
        return load_keys(named_file(path, "the keys file (`keys.file`) "), path.name)
    except ValueError as error:
        raise ConfigError(str(error)) from None


def _providers(policy: Policy) -> dict[str, Provider]:
    """4."""
    kinds = {endpoint.kind for endpoint in policy.endpoints.values()}
    for kind in sorted(kinds - set(PROVIDERS)):
        one = next(e for e in policy.endpoints.values() if e.kind == kind)
        known = ", ".join(sorted(PROVIDERS))
        raise ConfigError(f"{one.shown}: kind `{kind}` can't be spoken to; known: {known}")
    return {kind: load_provider(kind) for kind in sorted(kinds)}


def _trust(policy: Policy, base: Path, baseline: Sequence[PolicyFile]) -> dict[str, Tls]:
    """5. Of the endpoints that say something of their TLS."""
    found = {name: tls_of(one, base, baseline) for name, one in policy.endpoints.items()}
    return {name: tls for name, tls in found.items() if tls is not None}


def _agree(
    path: Path, config: Config, policy: Policy, keys: KeyRing, baseline: Sequence[PolicyFile]
) -> None:
    """6."""
    for where, region in _own_places(config):
        try:
            policy.atlas.region(region)
        except PlaceError as error:
            what = ".".join(str(part) for part in where)
            mark = Document.parse(named_file(path), str(path)).mark(where)
            raise ConfigError(f"{mark}: `{what}`: {error}") from None
    for mistake in mistakes(policy):
        raise ConfigError(mistake)
    _agree_on_classes(config, policy, keys, baseline)
    kept = None
    if config.log.seal is not None:
        kept = (config.log.seal.retain, config.log.seal.retain)
    obligations.check(policy, kept)
    for holder in keys.holders:
        if isinstance(holder, Principal):
            _known(f"{keys.places[holder.key]}: key `{holder.key}`", holder, policy)


def _agree_on_classes(
    config: Config, policy: Policy, keys: KeyRing, baseline: Sequence[PolicyFile]
) -> None:
    if config.router.priorities is not None:
        return
    said = [
        f"{place_of(baseline, one)}: {one[0].removesuffix('s')} `{one[1]}` has a `{one[2]}`"
        for one in unread(policy)
    ]
    said += [
        f"{keys.places[holder.key]}: key `{holder.key}` has a `priority`"
        for holder in keys.holders
        if isinstance(holder, Principal) and holder.priority is not None
    ]
    if said:
        raise ConfigError(
            f"{said[0]}, but `router.priorities` is not set; write `priorities: {{}}` there"
        )


def _own_places(config: Config) -> Iterable[tuple[DocumentPath, str]]:
    yield ("router", "region"), config.router.region
    for number, peer in enumerate(config.router.peers):
        yield ("router", "peers", number, "region"), peer.region
    if config.state is not None:
        yield ("state", "region"), config.state.region


def _known(named: str, holder: Principal, policy: Policy) -> None:
    if holder.view_from:
        try:
            boundary(holder.view_from, policy.atlas)
        except PlaceError as error:
            raise ConfigError(f"{named}: view_from: {error}") from None
    if holder.tenant not in policy.tenants and holder.tenant != EVERY:
        raise ConfigError(f"{named}: tenant `{holder.tenant}` is in no baseline file")
    if holder.app is not None and holder.app not in policy.apps:
        raise ConfigError(f"{named}: app `{holder.app}` is in no baseline file")
    for name, values in holder.attributes.items():
        declared = policy.declared.get(name)
        if declared is None or not set(values) <= declared.values:
            raise ConfigError(f"{named}: attribute `{name}` has no such value")


def _content(
    config: Config,
    catalog: str,
    data: str,
    baseline: Sequence[PolicyFile],
    rules: Sequence[PolicyFile],
    accepted: Accepted,
    keys: KeyRing,
    signed: Mapping[str, object],
) -> bytes:
    """7. Everything a decision is made from, so that it can be made again; no secrets."""
    content = {
        "format": FORMAT,
        "router": {"id": config.router.id, "region": config.router.region},
        "peers": [{"region": p.region, "url": p.url} for p in config.router.peers],
        "catalog": catalog,
        "data": data,
        "baseline": {file.name: file.content.decode("utf-8", "replace") for file in baseline},
        "rules": {file.name: file.content.decode("utf-8", "replace") for file in rules},
        "accepted": {f.name: f.content.decode("utf-8", "replace") for f in accepted.files},
        **signed,
        "keys": keys.digest,
    }
    return orjson.dumps(content, option=orjson.OPT_SORT_KEYS)
