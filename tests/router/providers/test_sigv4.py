"""What signs is held against botocore's own client in `test_aws`; here: what it takes, and when."""

import subprocess
import sys

from router.providers.base import AwsKeys
from router.providers.sigv4 import Scope

KEYS = AwsKeys("AKIDEXAMPLE", "secret-example", "token-example")
URL = "https://bedrock.eu-central-1.amazonaws.com/models"


def test_time_region_and_body_are_signed() -> None:
    def signature(region: str, body: bytes, now: float) -> str:
        sent = Scope(KEYS, "bedrock", region).sign("POST", URL, {"accept": "a/b"}, body, now)
        assert sent["accept"] == "a/b"
        assert sent["X-Amz-Security-Token"] == "token-example"
        return sent["Authorization"]

    base = signature("eu-central-1", b"{}", 1_795_000_000.0)
    assert base == signature("eu-central-1", b"{}", 1_795_000_000.0)
    assert "/eu-central-1/bedrock/aws4_request" in base
    others = [
        signature("eu-west-1", b"{}", 1_795_000_000.0),
        signature("eu-central-1", b"[]", 1_795_000_000.0),
        signature("eu-central-1", b"{}", 1_795_000_001.0),
    ]
    assert base not in others


def test_a_router_without_aws_does_not_load_it() -> None:
    script = "import sys, router.server; print([n for n in sys.modules if 'botocore' in n][:3])"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, check=True)
    assert done.stdout == b"[]\n"
