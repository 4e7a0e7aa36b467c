from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from urllib.parse import quote

import pytest
from botocore.auth import SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials

from router.simulator.bedrock_sigv4 import BadSignature, Secret, scope, verify
from router.simulator.wire import Request

HOST = "bedrock-runtime.eu-central-1.amazonaws.com"
SECRETS = {"AKID": Secret("secret"), "ASIA": Secret("other", "session")}
ARN = "arn:aws:bedrock:eu-west-1:1:application-inference-profile/abc"


def now() -> float:
    return datetime.now(UTC).timestamp()


def signed(
    target: str = "/model/m/converse", body: bytes = b"{}", key: str = "AKID", region: str = "x-1"
) -> Request:
    """A request signed by botocore, as it would arrive."""
    secret = SECRETS[key]
    credentials = Credentials(key, secret.secret_key, secret.session_token or None)
    made = AWSRequest("POST", f"https://{HOST}{target}", {"X-Other": "a  b"}, body)
    SigV4Auth(credentials, "bedrock", region).add_auth(made)
    headers = [("host", HOST), *((name.lower(), value) for name, value in made.headers.items())]
    return Request("POST", target, tuple(headers), body, 0.0)


def changed(request: Request, name: str, value: str) -> Request:
    headers = [(key, value if key == name else old) for key, old in request.headers]
    return replace(request, headers=tuple(headers))


@pytest.mark.parametrize(
    "target",
    [
        "/model/plain/converse",
        "/model/a.b-v1%3A0/converse",
        "/model/a.b-v1:0/invoke",  # unencoded, as one client sends it
        f"/model/{quote(ARN, safe='')}/converse",
        f"/model/{quote(ARN, safe=':')}/converse",
        "/inference-profiles?maxResults=5&type=APPLICATION&a=b%20c&empty=",
        "/",
    ],
)
@pytest.mark.parametrize("key", ["AKID", "ASIA"])
def test_what_botocore_signs_verifies_for_every_form(target: str, key: str) -> None:
    found = verify(signed(target, key=key), SECRETS, now())
    assert (found.key_id, found.region, found.service) == (key, "x-1", "bedrock")


def test_any_change_breaks_it() -> None:
    request = signed()
    for other in (
        replace(request, method="PUT"),
        replace(request, target="/model/n/converse"),
        replace(request, target="/model/m/converse?a=b"),
        replace(request, body=b"[]"),
        changed(request, "host", "bedrock-runtime.us-east-1.amazonaws.com"),
        changed(request, "x-other", "c"),
        changed(
            request, "authorization",
            (request.header("authorization") or "").replace("x-1", "x-2"),
        ),
    ):  # fmt: skip
        with pytest.raises(BadSignature) as caught:
            verify(other, SECRETS, now())
        assert caught.value.code == "InvalidSignatureException"


def test_header_spaces_do_not_matter() -> None:
    assert verify(changed(signed(), "x-other", " a b "), SECRETS, now()).key_id


def test_missing_unknown_and_old_signatures_have_their_own_codes() -> None:
    request = signed()
    cases = [
        (replace(request, headers=(("host", HOST),)), 0.0, "MissingAuthenticationTokenException"),
        (changed(request, "authorization", "Bearer x"), 0.0, "MissingAuthenticationTokenException"),
        (request, 301.0, "InvalidSignatureException"),
        (request, -301.0, "InvalidSignatureException"),
        (changed(request, "x-amz-date", "yesterday"), 0.0, "IncompleteSignatureException"),
        (changed(signed(key="ASIA"), "x-amz-security-token", "t"), 0.0,
         "UnrecognizedClientException"),
    ]  # fmt: skip
    for broken, later, code in cases:
        with pytest.raises(BadSignature) as caught:
            verify(broken, SECRETS, now() + later)
        assert caught.value.code == code
    with pytest.raises(BadSignature, match="security token"):
        verify(request, {}, now())


def test_an_unsigned_aws_header_is_refused() -> None:
    request = signed()
    more = replace(request, headers=(*request.headers, ("x-amzn-bedrock-trace", "ENABLED")))
    assert verify(more, SECRETS, now()).key_id  # x-amzn- is not x-amz-
    sneaked = replace(request, headers=(*request.headers, ("x-amz-target", "other")))
    with pytest.raises(BadSignature, match="must be signed"):
        verify(sneaked, SECRETS, now())


def test_the_scope_is_read_without_believing_it() -> None:
    found = scope(changed(signed(), "x-other", "forged"))
    assert found is not None
    assert found.key_id == "AKID"
    assert scope(Request("GET", "/", (), b"", 0.0)) is None
