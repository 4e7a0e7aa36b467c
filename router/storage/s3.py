"""boto3 clients for the router's own stores, anchors and sealed segments, and for its key.

The endpoint is the region's public one, or the one configured. No proxy, endpoint variable or
profile of the machine has a say in where they go.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from router.config import ConfigError
from router.providers.base import AwsKeys

if TYPE_CHECKING:
    from router.audit.anchors.s3 import S3Client  # botocore, which takes long to load

CONNECT = 5.0
READ = 15.0


def s3_client(region: str, keys: AwsKeys | None = None, endpoint: str | None = None) -> S3Client:
    """A client of one region, `aws:eu-west-1`; without keys AWS's default chain is asked.

    Blocks for some 100 ms: call it in a thread.

    Raises:
        ConfigError: the region is no AWS region.
    """
    provider, _, code = region.partition(":")
    if provider not in ("aws", "aws-eusc") or not code:
        raise ConfigError(f"`{region}` has no S3; name a region as `aws:eu-central-1`")
    return cast("S3Client", aws_client("s3", code, keys, endpoint))


def aws_client(service: str, code: str, keys: AwsKeys | None, endpoint: str | None) -> object:
    """A client of one service in the region with a code, as `eu-west-1`. Blocks for some 100 ms."""
    import boto3
    from botocore.config import Config

    made: object = boto3.client(
        service,
        region_name=code,
        endpoint_url=endpoint,
        **({} if keys is None else _given(keys)),
        config=Config(
            connect_timeout=CONNECT,
            read_timeout=READ,
            proxies={},
            ignore_configured_endpoint_urls=True,
            retries={"max_attempts": 2, "mode": "standard"},
            s3={"addressing_style": "virtual" if endpoint is None else "path"},
        ),
    )
    return made


def _given(keys: AwsKeys) -> dict[str, str | None]:
    return {
        "aws_access_key_id": keys.access_key,
        "aws_secret_access_key": keys.secret_key,
        "aws_session_token": keys.session_token,
    }
