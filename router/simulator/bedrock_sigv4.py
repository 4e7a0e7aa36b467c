"""Verifies AWS Signature Version 4 as a service does, from the request alone.

Written from the specification with hashlib, not with botocore, so that a signer built on botocore
is checked by something else. For services other than S3 the canonical URI is the path as sent,
encoded once more: `/model/a%3A0/converse` signs as `/model/a%253A0/converse`.
"""

from __future__ import annotations

import hashlib
import hmac
import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from urllib.parse import parse_qsl, quote

from router.simulator.wire import Request

_AUTHORIZATION = re.compile(
    r"AWS4-HMAC-SHA256 Credential=(?P<key>[^/,\s]+)/(?P<date>\d{8})/(?P<region>[^/,\s]+)"
    r"/(?P<service>[^/,\s]+)/aws4_request,\s*SignedHeaders=(?P<headers>[^,\s]+),"
    r"\s*Signature=(?P<signature>[0-9a-f]{64})"
)
_MAX_SKEW = 300.0


@dataclass(frozen=True, slots=True)
class Secret:
    """The secret of one access key, and the session token that must come with it."""

    secret_key: str
    session_token: str = ""


@dataclass(frozen=True, slots=True)
class Scope:
    """What a request says about its signature, before it is believed."""

    key_id: str
    date: str
    region: str
    service: str
    signed_headers: tuple[str, ...]
    signature: str


class BadSignature(Exception):
    """The signature is missing, malformed, too old or wrong; `code` is AWS's error type."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code


def scope(request: Request) -> Scope | None:
    """The scope in the authorization header; None if it is not a SigV4 one."""
    found = _AUTHORIZATION.fullmatch(request.header("authorization") or "")
    if found is None:
        return None
    names = tuple(found["headers"].split(";"))
    return Scope(
        found["key"], found["date"], found["region"], found["service"], names, found["signature"]
    )


def verify(request: Request, secrets: Mapping[str, Secret], now: float) -> Scope:
    """The scope of a request whose signature is right, or `BadSignature`; `now` in Unix seconds."""
    # 1. There is one.
    claimed = scope(request)
    if claimed is None:
        raise BadSignature("MissingAuthenticationTokenException", "Missing Authentication Token")
    # 2. The key is known, with its session token.
    secret = secrets.get(claimed.key_id)
    if secret is None or (request.header("x-amz-security-token") or "") != secret.session_token:
        raise BadSignature(
            "UnrecognizedClientException", "The security token included in the request is invalid."
        )
    # 3. It was made now, for this date.
    stamp = request.header("x-amz-date") or ""
    _check_time(stamp, claimed, now)
    # 4. It covers the host and every x-amz header.
    covered = {name for name, _ in request.headers if name == "host" or name.startswith("x-amz-")}
    if not covered <= set(claimed.signed_headers):
        raise BadSignature("InvalidSignatureException", "a header that must be signed is not")
    # 5. It is right.
    key = _signing_key(secret.secret_key, claimed)
    text = string_to_sign(stamp, claimed, canonical_request(request, claimed.signed_headers))
    expected = hmac.new(key, text.encode(), hashlib.sha256).hexdigest()
    if not hmac.compare_digest(expected, claimed.signature):
        raise BadSignature(
            "InvalidSignatureException",
            "The request signature we calculated does not match the signature you provided. Check "
            "your AWS Secret Access Key and signing method.",
        )
    return claimed


def _check_time(stamp: str, claimed: Scope, now: float) -> None:
    try:
        signed = datetime.strptime(stamp, "%Y%m%dT%H%M%SZ").replace(tzinfo=UTC).timestamp()
    except ValueError as error:
        raise BadSignature("IncompleteSignatureException", "x-amz-date is not a date") from error
    if abs(signed - now) > _MAX_SKEW or not stamp.startswith(claimed.date):
        raise BadSignature("InvalidSignatureException", f"Signature expired: {stamp}")


def canonical_request(request: Request, signed_headers: tuple[str, ...]) -> str:
    """The canonical request of the specification, newlines and all."""
    values: dict[str, list[str]] = {}
    for name, value in request.headers:
        values.setdefault(name, []).append(" ".join(value.split()))
    headers = "".join(f"{name}:{','.join(values.get(name, []))}\n" for name in signed_headers)
    pairs = parse_qsl(request.query, keep_blank_values=True)
    query = "&".join(sorted(f"{quote(k, safe='-_.~')}={quote(v, safe='-_.~')}" for k, v in pairs))
    payload = hashlib.sha256(request.body).hexdigest()
    if request.header("x-amz-content-sha256") == "UNSIGNED-PAYLOAD":
        payload = "UNSIGNED-PAYLOAD"
    path = quote(_without_dots(request.path), safe="/-_.~")
    return "\n".join([request.method, path, query, headers, ";".join(signed_headers), payload])


def _without_dots(path: str) -> str:
    kept: list[str] = []
    for part in path.split("/"):
        if part == "..":
            del kept[-1:]
        elif part not in {"", "."}:
            kept.append(part)
    end = "/" if path.endswith("/") and kept else ""
    return "/" + "/".join(kept) + end


def string_to_sign(stamp: str, claimed: Scope, canonical: str) -> str:
    """The string to sign of the specification."""
    where = f"{claimed.date}/{claimed.region}/{claimed.service}/aws4_request"
    digest = hashlib.sha256(canonical.encode()).hexdigest()
    return f"AWS4-HMAC-SHA256\n{stamp}\n{where}\n{digest}"


def _signing_key(secret: str, claimed: Scope) -> bytes:
    key = f"AWS4{secret}".encode()
    for part in (claimed.date, claimed.region, claimed.service, "aws4_request"):
        key = hmac.new(key, part.encode(), hashlib.sha256).digest()
    return key
