"""What `check` looks at: everything `serve` reads, without opening, writing or sending anything.
A reload looks at the same, but for what only a start reads (`starting`).

Each part is read by itself, so that one fault doesn't hide another:
1. `domicile.yaml`: without it there is nothing further to look at;
2. variables named `DOMICILE_…` that nobody reads: they would look as if they worked;
3. the policy files; 4. the keys; 5. the log's signing key, and authorities of its exports;
6. all of it together, as `serve` loads it;
7. lint over what was loaded, with the places of everything the router writes to, and the ends of
   certificates;
8. proofs of every `assert` and `ensure`, with the places of this router and its peers;
9. the cases that the configuration names.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final

from pydantic import BaseModel

from policies.findings import DAY, Finding, Severity
from policies.lint import lint
from policies.loader import Loaded
from policies.loader import load as load_policy
from policies.obligations import RecordRetention
from regions.document import Document, DocumentErrors, Mark, validate
from regions.places import PlaceError
from router.audit.errors import AuditError
from router.auth import Principal
from router.config import VARIABLE, Config, ConfigError, expand
from router.settings import bounded
from router.settings.authorities import authorities, ending
from router.settings.loading import keys_in, load_snapshot, log_settings, read_files
from router.settings.starting import unread_replicas, unusable
from router.snapshot import Snapshot
from router.surfaces.chat import ChatCompletions

if TYPE_CHECKING:
    from policies.prove import Proofs

_OURS: Final = re.compile(r"DOMICILE_[A-Z0-9_]+")
# Read by the development tools and tests, never by the program.
_DEVELOPMENT: Final = re.compile(r"DOMICILE_(AUDIT|DEV|E2E|MINISTACK|MISSING)(_|$)")
_REFERENCE: Final = re.compile(r"\benv:(\w+)")
_ENDS: Final = (".yaml", ".yml")
_TIMES: Final = ("first_token", "answer", "idle")
_FAULTS: Final = (ConfigError, DocumentErrors, PlaceError, AuditError, OSError, ValueError)


@dataclass(frozen=True, slots=True)
class Setting:
    """One setting in force: `source` is `file:line:column`, or `default`."""

    name: str
    value: str
    source: str


@dataclass(frozen=True, slots=True)
class Checked:
    """All that is wrong; the snapshot when it could be loaded.

    `findings` are lint's, errors first; its errors are among the `problems` too.
    """

    problems: tuple[str, ...]
    settings: tuple[Setting, ...] = ()
    snapshot: Snapshot | None = None
    findings: tuple[Finding, ...] = ()


class Proven:
    """Proofs by the policy's digest, so that what didn't change isn't proven again. The solver is
    imported when there is something to prove."""

    __slots__ = ("_proofs",)

    def __init__(self) -> None:
        self._proofs: Proofs | None = None

    def findings(self, loaded: Loaded, places: Sequence[str], now: float) -> Iterator[Finding]:
        """What is wrong with the `assert`s and `ensure`s of a policy."""
        if not loaded.policy.statements and not loaded.policy.ensures:
            return
        from policies.prove import Proofs, findings

        if self._proofs is None:
            self._proofs = Proofs()
        yield from findings(self._proofs.of(loaded, now, places))


def check(
    path: Path,
    environment: Mapping[str, str],
    now: float,
    proven: Proven | None = None,
    *,
    start: bool = False,
) -> Checked:
    """Check a configuration file and everything it names.

    Args:
        environment: for `env:` references.
        now: seconds since the epoch.
        proven: what was proven before.
        start: with what only a start reads.
    """
    base = path.parent
    try:
        document = Document.parse(bounded.read(path), str(path))
        config = validate(document, Config)
    except DocumentErrors as errors:
        return Checked(tuple(map(str, errors.errors)))
    except OSError as error:
        return Checked((f"can't read `{path}`: {error.strerror}",))
    found = tuple(_settings(document, config))
    problems = [*unread_variables(environment, path), *_of_parts(document, config, base)]
    problems += unusable(document, config, environment, base) if start else ()
    if problems:
        return Checked(tuple(dict.fromkeys(problems)), found)
    together: list[Snapshot] = []
    problems += _tried(lambda: together.append(load_snapshot(path, environment, now)))
    if not together:
        return Checked(tuple(problems), found)
    judged = _judged(together[0], found, base, now, proven or Proven())
    more = unread_replicas(together[0], base) if start else ()
    return replace(judged, findings=(*judged.findings, *more, *_roots(environment)))


def _judged(
    snapshot: Snapshot, settings: tuple[Setting, ...], base: Path, now: float, proven: Proven
) -> Checked:
    """7 to 9."""
    loaded = Loaded(snapshot.policy, snapshot.catalog)
    router = snapshot.config.router
    places = (router.region, *(peer.region for peer in router.peers))
    findings: list[Finding] = [*_immutable(snapshot.config), *_kept_locally(snapshot)]
    findings += [*_unread(snapshot.config, base), *_in_vain(snapshot, settings)]
    given = stores(snapshot.config), 30 * DAY, _paying(snapshot)
    problems = list(_tried(lambda: findings.extend(lint(loaded, now, *given))))
    problems += _tried(lambda: findings.extend(proven.findings(loaded, places, now)))
    problems += _tried(lambda: findings.extend(ends(snapshot, snapshot.trust, base, now)))
    problems += _tried(lambda: findings.extend(_tested(loaded, snapshot.config, base)))
    problems += [one.problem for one in findings if one.severity is Severity.ERROR]
    return Checked(tuple(problems), settings, snapshot, tuple(findings))


def _paying(snapshot: Snapshot) -> set[str]:
    """7. Tenants with a key that has a budget in dollars, for lint."""
    held = [one for one in snapshot.keys.holders if isinstance(one, Principal)]
    return {one.tenant for one in held if one.limits.dollars is not None}


def _unread(config: Config, base: Path) -> Iterator[Finding]:
    """7. Documents that a pattern misses by the end of their names: their rules don't apply."""
    policies = config.policies
    patterns = (*policies.baseline, *policies.rules, *policies.cases)
    read = {(base / config.keys.file).resolve()}
    for one in patterns:
        with suppress(ConfigError):  # it finds nothing, and that is told where it is read
            read.update(path.resolve() for path in expand((one,), base))
    for pattern in (Path(one) for one in patterns if "*" in Path(one).name):
        folder = base / pattern.parent
        for found in sorted(folder.iterdir()) if folder.is_dir() else ():
            near = fnmatchcase(found.stem.lower(), pattern.stem.lower()) and found.name[0] != "."
            if near and found.suffix.lower() in _ENDS and found.resolve() not in read:
                message = f"`{found}` is read by nobody: `{pattern}` does not find it; rename it"
                yield Finding(Severity.WARNING, "file_unread", message)


def _in_vain(snapshot: Snapshot, settings: tuple[Setting, ...]) -> Iterator[Finding]:
    """7. What can never come to pass: an endpoint that is asked for nothing, a time that the
    deadline cuts short."""
    served, deadline = ChatCompletions.name, snapshot.config.router.limits.deadline
    for endpoint in snapshot.policy.endpoints.values():
        if served not in endpoint.surfaces:
            message = f"endpoint `{endpoint.name}` is never asked: `{served}` is all that is served"
            yield Finding(Severity.WARNING, "surface_unserved", message)
        if endpoint.self_operated and not (endpoint.urls or "replicas" in endpoint.settings):
            message = (
                f"endpoint `{endpoint.name}` is nowhere: give it a `url`, `urls` or `replicas`"
            )
            yield Finding(Severity.ERROR, "no_address", message)
    for name, value, mark in _times(snapshot, settings):
        if value > deadline:
            message = (
                f"`{name}` of {value:g} s is never reached: `router.limits.deadline` ends a "
                f"request after {deadline:g} s"
            )
            yield Finding(Severity.WARNING, "time_cut_short", message, mark)


def _times(
    snapshot: Snapshot, settings: tuple[Setting, ...]
) -> Iterator[tuple[str, float, Mark | None]]:
    """The times that somebody wrote, in seconds."""
    limits = snapshot.config.router.limits
    written = {one.name for one in settings if one.source != "default"}
    for name in _TIMES:
        if (whole := f"router.limits.{name}") in written:
            yield whole, getattr(limits, name), None
        for model in snapshot.policy.models.values():
            own: float | None = getattr(model, name)
            if own is not None:
                yield f"models.{model.name}.timeouts.{name}", own, model.mark


def _immutable(config: Config) -> Iterator[Finding]:
    """7. Whoever may bypass GOVERNANCE, as an account's administrators, may delete the evidence."""
    if config.log.seal is not None and config.log.seal.mode == "GOVERNANCE":
        message = (
            "`log.seal.mode: GOVERNANCE` is not immutable: a permission and a header, which the "
            "console sends by itself, delete sealed records; use COMPLIANCE"
        )
        yield Finding(Severity.WARNING, "seal_not_immutable", message)


def _kept_locally(snapshot: Snapshot) -> Iterator[Finding]:
    """7. A lock ends by itself, but nothing deletes what it locked, nor, without `local`, the log's
    own segments."""
    log = snapshot.config.log
    if log.seal is None:
        return  # refused when it was loaded
    for rule in snapshot.policy.rules:
        bound = [one for one in rule.obligations if isinstance(one, RecordRetention)]
        if any(one.most is not None for one in bound):
            here = (
                f"segments in `{log.dir}` that `sealed.jsonl` names (or set `log.seal.local`) and "
            )
            message = (
                f"rule `{rule.name}`: its `record_retention` has a `max`, and the router deletes "
                f"nothing that is sealed: delete {'' if log.seal.local else here}objects in "
                f"`{log.seal.s3}` when their lock ends (as by a lifecycle rule), before then"
            )
            yield Finding(Severity.WARNING, "records_kept_locally", message, rule.mark)


def ends(snapshot: Snapshot, names: Iterable[str], base: Path, now: float) -> Iterator[Finding]:
    """7. What ends of the certificates that these endpoints' TLS needs."""
    if snapshot.trust:
        baseline = read_files(snapshot.config.policies.baseline, base)
        yield from ending(snapshot.trust, names, baseline, now)


def _roots(environment: Mapping[str, str]) -> Iterator[Finding]:
    """7. OpenSSL says nothing of a file of authorities that isn't there: nothing is trusted then,
    but what the system's folder holds."""
    if "SSL_CERT_FILE" not in environment:
        return
    try:
        authorities(Path(environment["SSL_CERT_FILE"]))
    except ConfigError as error:
        message = f"environment variable `SSL_CERT_FILE`: {error}"
        yield Finding(Severity.WARNING, "roots_missing", message)


def _tested(loaded: Loaded, config: Config, base: Path) -> Iterator[Finding]:
    """9. Each case stands for itself: its time and its router are in its file."""
    files = read_files(config.policies.cases, base)
    if not files:
        return
    from policies.cases import Suite, run
    from policies.tested import findings

    yield from findings([run(loaded, Suite.parse(file.content, file.name)) for file in files])


def stores(config: Config) -> Mapping[str, str]:
    """What the router writes to → the region it lies in. Local files lie where the router does."""
    found = {"log": config.router.region}
    for name, section in (("log.anchor", config.log.anchor), ("log.seal", config.log.seal)):
        if section is not None and section.region is not None:
            found[name] = section.region
    for one in config.log.exports:
        if one.region is not None:
            found[f"log.exports {one.name}"] = one.region
    if config.state is not None:
        found["state"] = config.state.region
    return found


def _of_parts(document: Document, config: Config, base: Path) -> Iterator[str]:
    """3 to 5."""
    policies = config.policies
    missing: list[str] = []
    for name in ("baseline", "rules", "cases"):
        where = f"{document.mark(('policies', name))}: `policies.{name}`: "
        missing += _tried(partial(expand, getattr(policies, name), base), where)
    yield from missing or _tried(
        lambda: load_policy(read_files(policies.baseline, base), read_files(policies.rules, base))
    )
    where = f"{document.mark(('keys', 'file'))}: "
    yield from _tried(lambda: keys_in(base / config.keys.file), where)
    where = f"{document.mark(('log', 'signing_key'))}: "
    yield from _tried(lambda: _signer(config, base), where)
    for one in config.log.exports:
        if one.ca is not None:
            yield from _tried(partial(authorities, base / one.ca))


def _signer(config: Config, base: Path) -> None:
    authority = log_settings(config, base).authority
    if authority.strength != "file":
        return  # a key service is asked at the start, not here
    try:
        authority.public()
    except AuditError as error:
        path = base / config.log.signing_key.partition(":")[2]
        if path.exists():
            raise
        made = f"`openssl genpkey -algorithm ed25519 -out {path}` makes one"
        raise ConfigError(f"{error}; {made}") from None


def _tried(part: Callable[[], object], where: str = "") -> Iterator[str]:
    """What is wrong with a part; `where` stands before what names no place of its own."""
    try:
        part()
    except DocumentErrors as errors:
        yield from map(str, errors.errors)
    except _FAULTS as error:
        yield f"{where}{error}"


def unread_variables(environment: Mapping[str, str], path: Path) -> Iterator[str]:
    """2. A variable of ours that neither the program nor a file in the folder reads."""
    for name in sorted(environment):
        if not _OURS.fullmatch(name) or name == VARIABLE or _DEVELOPMENT.match(name):
            continue
        if name not in _references(path):
            yield (
                f"environment variable `{name}` is read nowhere; the one variable there is, is "
                f"`{VARIABLE}`: unset it, or name it as `env:{name}` where a secret stands"
            )


def _references(path: Path) -> frozenset[str]:
    files = [path, *path.parent.rglob("*.yaml")]
    texts = (file.read_text("utf-8", "replace") for file in files if file.is_file())
    return frozenset(name for text in texts for name in _REFERENCE.findall(text))


def _settings(
    document: Document, model: BaseModel, path: tuple[str, ...] = ()
) -> Iterator[Setting]:
    for name in type(model).model_fields:
        value, here = getattr(model, name), (*path, name)
        if isinstance(value, BaseModel):
            yield from _settings(document, value, here)
        else:
            source = str(document.key_mark(here)) if document.holds(here) else "default"
            yield Setting(".".join(here), _text(value), source)


def _text(value: object) -> str:
    if isinstance(value, tuple):
        return ", ".join(map(_text, value)) or "-"
    return "-" if value is None else str(value)
