"""One AWS call, made of what the endpoint says and nothing else: host, path and signature.

No session, no credential chain, no environment variable and no `~/.aws` file has a say: keys are
given, the region is the endpoint's, the time is the caller's. botocore only computes the signature.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from importlib import import_module
from urllib.parse import quote, urlsplit

from router.providers.base import Bearer, Credential, Misconfigured
from router.transport.messages import Headers

# Source: botocore's partitions.json; a test compares every region it knows.
_SUFFIXES: Mapping[str, str] = {
    "cn-": "amazonaws.com.cn",
    "us-iso-": "c2s.ic.gov",
    "us-isob-": "sc2s.sgov.gov",
    "eu-isoe-": "cloud.adc-e.uk",
    "us-isof-": "csp.hci.ic.gov",
    "eusc-": "amazonaws.eu",
}
_REGION = re.compile(r"[a-z]{2,4}(?:-[a-z]+){1,2}-\d{1,2}")
_LOOPBACK = re.compile(r"localhost|127(?:\.\d{1,3}){3}|::1")
_PRIVATE = re.compile(r"vpce-[0-9a-z-]+\.")


def region_of(source: str | None) -> str:
    """The AWS region of an endpoint's `source`: `eu-central-1` or `aws:eu-central-1`.

    Raises:
        Misconfigured: it is no region.
    """
    if not source:
        raise Misconfigured("it has no `source`; write the AWS region to call, as eu-west-1")
    region = source.rpartition(":")[2]
    if not _REGION.fullmatch(region):
        raise Misconfigured(f"`{source}` is no aws region; give the endpoint a `source`")
    return region


def dns_suffix(region: str) -> str:
    """The domain that a region's services live under."""
    return next((v for k, v in _SUFFIXES.items() if region.startswith(k)), "amazonaws.com")


def base_url(service: str, region: str, url: str) -> str:
    """The base URL to call: the service's public host, or the endpoint's own `url` if it has one.

    An own URL must name service and region in its host, as a VPC endpoint's does, or be a
    loopback address: the host decides where the call is processed, and the footprint was
    computed from the region.

    Raises:
        Misconfigured: the URL's host is another service's or region's.
    """
    public = f"{service}.{region}.{dns_suffix(region)}"
    if not url:
        return f"https://{public}"
    parts = urlsplit(url)
    host = parts.hostname or ""
    if _LOOPBACK.fullmatch(host):
        return url.rstrip("/")
    bare = _PRIVATE.sub("", host, count=1)
    private = f"{service}.{region}.vpce.{dns_suffix(region)}"
    fips = f"{service}-fips.{region}.{dns_suffix(region)}"
    if parts.scheme != "https" or bare not in (public, private, fips):
        raise Misconfigured(
            f"`{host}` is no https host of {service} in {region}; leave the url out"
        )
    return url.rstrip("/")


def label(value: str) -> str:
    """One path segment as AWS's SDKs write it: all but letters, digits and `-._~` is encoded."""
    return quote(value, safe="-._~")


def load_signing() -> None:
    """Load what signs, while nothing waits for it: a tenth of a second."""
    import_module("router.providers.sigv4")


def signed(
    credential: Credential | None,
    service: str,
    region: str,
    method: str,
    url: str,
    headers: Mapping[str, str],
    body: bytes,
    now: float,
) -> Headers:
    """All headers of a call, signed for `service` in `region` at `now`, or with a bearer token.

    Raises:
        Misconfigured: there is no credential.
    """
    if credential is None:
        raise Misconfigured("the endpoint has no credential; name one in its `credentials`")
    if isinstance(credential, Bearer):
        sent = {**headers, "authorization": f"Bearer {credential.token}"}
        return _raw(sent)
    from router.providers.sigv4 import Scope  # botocore, only where something is signed

    made = Scope(credential, service, region).sign(method, url, dict(headers), body, now)
    return _raw(made)


def _raw(headers: Mapping[str, str]) -> Headers:
    return tuple((k.lower().encode("ascii"), v.encode("ascii")) for k, v in headers.items())
