"""Endpoint credentials by reference: a bearer token, or AWS keys. Values stay out of `repr`.

What a reference leads to may be a bare token; a JSON object or an INI section with AWS keys
(`aws_access_key_id`, `aws_secret_access_key`, optional `aws_session_token`). `instance-role`
names the role of the machine or container; its keys change by the hour and are looked up by
`router.watch.roles`, never on the path of a request.
"""

from __future__ import annotations

import configparser
import json
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final

from regions.document import PLACEHOLDER
from router.config import ConfigError
from router.providers.base import AwsKeys, Bearer, Credential
from router.settings.secrets import resolve

INSTANCE_ROLE: Final = "instance-role"
_UNFILLED: Final = re.compile(rf"{PLACEHOLDER}|^<.*>$|^os\.environ/")
_NAMES: Final = ("aws_access_key_id", "aws_secret_access_key", "aws_session_token")


def credential(
    whose: str, reference: str | None, environment: Mapping[str, str], base: Path
) -> Credential | None:
    """The credential behind a reference; `None` for none and for a role.

    Args:
        whose: what errors begin with, as "baseline/main.yaml:9:3: endpoint `fra`".

    Raises:
        ConfigError: the reference leads nowhere, or to something that is no credential.
    """
    if reference is None or reference == INSTANCE_ROLE:
        return None
    try:
        return _parsed(resolve(reference, environment, base).decode("utf-8", "replace"))
    except ConfigError as error:
        raise ConfigError(f"{whose}: {error}") from None


def _parsed(text: str) -> Credential:
    if _UNFILLED.search(text):
        raise ConfigError(
            "its credential is a template that nobody filled in; what "
            "writes the secret left its placeholder there"
        )
    if text.startswith("{"):
        return _keys(_json(text))
    if text.startswith("["):
        return _keys(_ini(text))
    token = text.strip()
    if len(token) > 1 and token[0] == token[-1] and token[0] in "\"'`":
        raise ConfigError(
            "its credential stands in quotes, which would be sent; what "
            "reads an environment file may keep them: take them out"
        )
    return _made(lambda: Bearer(token))


def _json(text: str) -> Mapping[str, str]:
    try:
        found: object = json.loads(text)
    except json.JSONDecodeError:
        raise ConfigError("its credential is broken JSON") from None
    if not isinstance(found, dict):
        return {}
    return {k: v for k, v in found.items() if isinstance(k, str) and isinstance(v, str)}


def _ini(text: str) -> Mapping[str, str]:
    parser = configparser.ConfigParser(interpolation=None)
    try:
        parser.read_string(text)
    except configparser.Error:
        raise ConfigError("its credential is a broken INI file") from None
    sections = parser.sections()
    if len(sections) != 1:
        raise ConfigError(
            "its credential file must hold one section, not "
            f"{len(sections)}: nothing here picks a profile"
        )
    return dict(parser[sections[0]])


def _keys(found: Mapping[str, str]) -> Credential:
    access, secret, token = (found.get(name) for name in _NAMES)
    if not access or not secret:
        raise ConfigError(f"its credential needs {_NAMES[0]} and {_NAMES[1]}")
    return _made(lambda: AwsKeys(access, secret, token))


def _made(make: Callable[[], Credential]) -> Credential:
    """A credential that can travel in a header; the message shows none of it."""
    try:
        return make()
    except ValueError as error:
        raise ConfigError(str(error)) from None
