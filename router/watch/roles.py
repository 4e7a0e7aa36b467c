"""Who gives out the keys of the machine's or container's role (see `router.watch.renewal`).

1. A container's own endpoint, when the platform names one in the environment: ECS by
   `AWS_CONTAINER_CREDENTIALS_RELATIVE_URI`, EKS pod identity by `…_FULL_URI` with a token file.
   botocore asks it, and only where such an endpoint may be: a loopback or link-local address, or
   one with TLS.
2. Else the instance's metadata service, version 2 only.

Nothing else is looked at: no access keys in the environment, no `~/.aws`, no proxies. botocore's
calls block: call `fetch` in a thread.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

from botocore.exceptions import BotoCoreError
from botocore.httpsession import URLLib3Session
from botocore.utils import ContainerMetadataFetcher, InstanceMetadataFetcher

from router.providers.base import AwsKeys
from router.watch.renewal import Fetched, NoRole

IMDS: Final = "http://169.254.169.254/"
RELATIVE: Final = "AWS_CONTAINER_CREDENTIALS_RELATIVE_URI"
FULL: Final = "AWS_CONTAINER_CREDENTIALS_FULL_URI"
TOKEN: Final = "AWS_CONTAINER_AUTHORIZATION_TOKEN"
TOKEN_FILE: Final = "AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE"
TIMEOUT: Final = 2.0


class _Imds(InstanceMetadataFetcher):  # type: ignore[misc]
    """Version 2, without a proxy, and with the time of expiry as it was told."""

    def __init__(self, url: str) -> None:
        super().__init__(
            timeout=TIMEOUT,
            base_url=url,
            env={},
            config={"ec2_metadata_v1_disabled": "true", "ec2_metadata_service_endpoint": url},
        )
        self._session = URLLib3Session(timeout=TIMEOUT)

    def _evaluate_expiration(self, credentials: dict[str, str]) -> None:
        # botocore would prolong keys that are about to end, by the machine's clock.
        return


def fetch(environment: Mapping[str, str], imds: str = IMDS) -> Fetched:
    """Ask the container's endpoint if there is one, else the metadata service. Blocks.

    Raises:
        NoRole: neither gave whole keys.
    """
    if RELATIVE in environment or FULL in environment:
        return _container(environment)
    try:
        found = _Imds(imds).retrieve_iam_role_credentials()
    except (BotoCoreError, ValueError) as error:
        raise NoRole(f"the metadata service: {type(error).__name__}") from error
    if not found:
        raise NoRole("the metadata service gives no keys: has this machine a role?")
    names = ("access_key", "secret_key", "token", "expiry_time")
    return _fetched("the metadata service", *(found.get(name) for name in names))


def _container(environment: Mapping[str, str]) -> Fetched:
    fetcher = ContainerMetadataFetcher(URLLib3Session(timeout=TIMEOUT), sleep=lambda _: None)
    uri = environment.get(FULL) or ""
    if RELATIVE in environment:
        uri = fetcher.full_url(environment[RELATIVE])
    try:
        found = fetcher.retrieve_full_uri(uri, headers=_authorization(environment))
    except (BotoCoreError, ValueError, OSError) as error:
        raise NoRole(f"the container's endpoint: {type(error).__name__}") from error
    names = ("AccessKeyId", "SecretAccessKey", "Token", "Expiration")
    given = found if isinstance(found, dict) else {}
    return _fetched("the container's endpoint", *(given.get(name) for name in names))


def _authorization(environment: Mapping[str, str]) -> dict[str, str] | None:
    token = environment.get(TOKEN)
    if TOKEN_FILE in environment:
        token = Path(environment[TOKEN_FILE]).read_text()
    if token is None:
        return None
    if "\r" in token or "\n" in token:
        raise ValueError("the token of the container's endpoint holds a line end")
    return {"Authorization": token}


def _fetched(who: str, *given: Any) -> Fetched:
    if len(given) != 4 or not all(isinstance(one, str) and one for one in given):
        raise NoRole(f"{who} gives no whole keys")
    access, secret, token, expires = given
    try:
        at = datetime.fromisoformat(expires)
        keys = AwsKeys(access, secret, token)
    except ValueError as error:
        raise NoRole(f"{who} gives keys that can't be used") from error
    return Fetched(keys, (at if at.tzinfo else at.replace(tzinfo=UTC)).timestamp())
