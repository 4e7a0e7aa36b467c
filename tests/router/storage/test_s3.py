"""A client goes to the region's own endpoint, whatever the machine's environment says."""

from __future__ import annotations

from typing import Any, cast

import pytest

from router.config import ConfigError
from router.providers.base import AwsKeys
from router.storage.s3 import s3_client


def meta(client: object) -> Any:
    return cast(Any, client).meta


def test_the_environment_sends_it_nowhere_else(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_ENDPOINT_URL_S3", "https://elsewhere.example")
    monkeypatch.setenv("HTTPS_PROXY", "http://proxy.example:3128")
    client = s3_client("aws:eu-west-1", AwsKeys("a", "b"))
    assert meta(client).region_name == "eu-west-1"
    assert meta(client).endpoint_url == "https://s3.eu-west-1.amazonaws.com"
    assert meta(client).config.proxies == {}
    session = cast(Any, client)._endpoint.http_session
    assert session._proxy_config.proxy_url_for("https://s3.eu-west-1.amazonaws.com") is None


def test_another_endpoint_is_taken_from_the_configuration_only() -> None:
    client = s3_client("aws:eu-west-1", AwsKeys("a", "b"), "http://127.0.0.1:1")
    assert meta(client).endpoint_url == "http://127.0.0.1:1"


@pytest.mark.parametrize("region", ["self:fra1", "azure:swedencentral", "eu-west-1", "aws:"])
def test_only_aws_regions_have_s3(region: str) -> None:
    with pytest.raises(ConfigError, match="has no S3"):
        s3_client(region)
