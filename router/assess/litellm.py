"""A LiteLLM proxy's `config.yaml`: its deployments, its fallbacks, and what else sees prompts."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from router.assess.marked import Marked, read_marked
from router.config import ConfigError
from router.settings import bounded

_FALLBACKS = ("fallbacks", "context_window_fallbacks", "content_policy_fallbacks")
_SINKS = ("success_callback", "failure_callback", "callbacks", "audit_log_callbacks")
_REFERENCE = "os.environ/"
EVERY_GROUP = "*"


@dataclass(frozen=True, slots=True)
class Deployment:
    """One entry of `model_list`.

    Attributes:
        group: `model_name`; several deployments of one group share its traffic.
        line: of the entry; `params` are its `litellm_params`, those of a named credential too.
        unresolved: parameters that refer to an environment variable nobody gave: its name.
        stated: what `model_info.domicile` says of the deployment, as `{sku: Standard}`.
    """

    group: str
    line: int
    params: Mapping[str, str] = field(default_factory=dict)
    unresolved: Mapping[str, str] = field(default_factory=dict)
    stated: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Fallback:
    """When a call to `group` fails, `targets` are tried; `group` may be `EVERY_GROUP`."""

    kind: str
    group: str
    targets: tuple[str, ...]
    line: int


@dataclass(frozen=True, slots=True)
class Bystander:
    """Something else that is sent prompts: a `guardrail`, or a `callback` that logs them."""

    kind: str
    name: str
    line: int


@dataclass(frozen=True, slots=True)
class LiteLLM:
    """What a configuration says of where prompts go."""

    file: str
    deployments: tuple[Deployment, ...]
    fallbacks: tuple[Fallback, ...]
    bystanders: tuple[Bystander, ...]
    aliases: Mapping[str, str]
    environment: Mapping[str, str]
    not_read: tuple[str, ...] = ()


def read(path: Path, environment: Mapping[str, str]) -> LiteLLM:
    """Read one file and those it includes.

    Args:
        environment: values of the variables that `os.environ/NAME` refers to; the machine's
            own are not read, since the proxy runs elsewhere.

    Raises:
        ConfigError: a file that can't be read.
    """
    roots = list(_roots(path, {path.resolve()}))
    # What the file sets replaces what the proxy was started with.
    environment = {**environment, **{k: v for _, root in roots for k, v in _variables(root)}}
    credentials = {n: values for _, root in roots for n, values in _credentials(root)}
    deployments = [
        _deployment(entry, credentials, environment)
        for _, root in roots
        for entry in _list(root, "model_list")
    ]
    per_deployment = [
        found
        for _, root in roots
        for entry in _list(root, "model_list")
        for found in _own_fallbacks(entry)
    ]
    return LiteLLM(
        str(path),
        tuple(deployments),
        (*(f for _, root in roots for f in _fallbacks(root)), *per_deployment),
        tuple(b for _, root in roots for b in _bystanders(root)),
        {a: target for _, root in roots for a, target in _aliases(root)},
        environment,
        tuple(_not_read(roots)),
    )


def _roots(path: Path, seen: set[Path]) -> Iterator[tuple[str, Marked]]:
    try:
        root = read_marked(bounded.read(path), str(path))
    except OSError as error:
        raise ConfigError(f"can't read `{path}`: {error.strerror}") from None
    yield str(path), root
    for name in _list(root, "include"):
        other = (path.parent / (name.text or "")).resolve()
        if other not in seen:
            seen.add(other)
            yield from _roots(other, seen)


def _not_read(roots: list[tuple[str, Marked]]) -> Iterator[str]:
    """Places a proxy may take further deployments from, which no file shows."""
    for _, root in roots:
        if root.text_at("general_settings", "store_model_in_db") in ("true", "True"):
            yield "deployments stored in the proxy's database (`store_model_in_db: true`)"


def _variables(root: Marked) -> Iterator[tuple[str, str]]:
    """`environment_variables`, which the proxy puts into its own environment."""
    found = root.at("environment_variables")
    for name, value in found.pairs if found is not None else ():
        if value.text is not None and not value.text.startswith(_REFERENCE):
            yield name, value.text


def _list(root: Marked, *path: str) -> tuple[Marked, ...]:
    found = root.at(*path)
    return found.entries if found is not None else ()


def _credentials(root: Marked) -> Iterator[tuple[str, dict[str, Marked]]]:
    for entry in _list(root, "credential_list"):
        values = entry.at("credential_values")
        name = entry.text_at("credential_name")
        if name is not None and values is not None:
            yield name, dict(values.pairs)


def _deployment(
    entry: Marked, credentials: Mapping[str, Mapping[str, Marked]], environment: Mapping[str, str]
) -> Deployment:
    own = entry.at("litellm_params")
    name = entry.text_at("litellm_params", "litellm_credential_name")
    given = dict(credentials.get(name or "", {}))
    given.update(_first(own) if own is not None else {})
    params: dict[str, str] = {}
    unresolved: dict[str, str] = {}
    for key, text in _flat(given):
        if not text.startswith(_REFERENCE):
            params[key] = text
        elif (value := environment.get(text.removeprefix(_REFERENCE))) is not None:
            params[key] = value
        else:
            unresolved[key] = text.removeprefix(_REFERENCE)
    stated = entry.at("model_info", "domicile")
    facts = {k: v.text for k, v in stated.pairs if v.text is not None} if stated else {}
    group = entry.text_at("model_name") or params.get("model", "?")
    return Deployment(group, entry.line, params, unresolved, facts)


def _first(mapping: Marked) -> dict[str, Marked]:
    """A mapping's own keys before those it merges in."""
    found: dict[str, Marked] = {}
    for key, value in mapping.pairs:
        found.setdefault(key, value)
    return found


def _flat(given: Mapping[str, Marked]) -> Iterator[tuple[str, str]]:
    """Scalars by name, those one level down as `outer.inner`."""
    for key, value in given.items():
        if value.text is not None:
            yield key, value.text
        for inner, below in value.pairs:
            if below.text is not None:
                yield f"{key}.{inner}", below.text


def _fallbacks(root: Marked) -> Iterator[Fallback]:
    for section in ("router_settings", "litellm_settings"):
        for kind in _FALLBACKS:
            for entry in _list(root, section, kind):
                yield from _by_group(kind, entry)
        for entry in _list(root, section, "default_fallbacks"):
            yield Fallback("default_fallbacks", EVERY_GROUP, _targets((entry,)), entry.line)


def _by_group(kind: str, entry: Marked) -> Iterator[Fallback]:
    for group, targets in entry.pairs:
        yield Fallback(kind, group, _targets(targets.entries), entry.line)


def _own_fallbacks(entry: Marked) -> Iterator[Fallback]:
    group = entry.text_at("model_name")
    found = entry.at("litellm_params", "fallbacks")
    if group is not None and found is not None:
        yield Fallback("litellm_params.fallbacks", group, _targets(found.entries), found.line)


def _targets(entries: tuple[Marked, ...]) -> tuple[str, ...]:
    """Names of groups; a target may also be a mapping that names its `model`."""
    return tuple(entry.text or entry.text_at("model") or "?" for entry in entries)


def _aliases(root: Marked) -> Iterator[tuple[str, str]]:
    found = root.at("router_settings", "model_group_alias")
    for alias, target in found.pairs if found is not None else ():
        yield alias, target.text or target.text_at("model") or "?"


def _bystanders(root: Marked) -> Iterator[Bystander]:
    for entry in _list(root, "guardrails"):
        name = entry.text_at("litellm_params", "guardrail") or entry.text_at("guardrail_name")
        yield Bystander("guardrail", name or "?", entry.line)
    for kind in _SINKS:
        found = root.at("litellm_settings", kind)
        for entry in (found.entries or (found,)) if found is not None else ():
            if entry.text is not None:
                yield Bystander("callback", entry.text, entry.line)
