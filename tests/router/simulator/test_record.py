from __future__ import annotations

import json

from router.simulator.record import Hit, credential_digest


def test_a_row_is_json_without_headers_and_body() -> None:
    hit = Hit(1.0, 2.0, "self:fra1/a", "self:fra1", "POST", "/v1/chat/completions", "r-1")
    hit.headers, hit.body = (("authorization", "secret"),), b"secret"
    row = json.loads(json.dumps(hit.row()))
    assert row == {
        "at": 1.0, "wall": 2.0, "replica": "self:fra1/a", "region": "self:fra1",
        "method": "POST", "path": "/v1/chat/completions", "request_id": "r-1", "host": "",
        "credential": "", "model": "",
        "stream": False, "faults": [], "transfer": "", "status": 0, "tokens": 0, "outcome": "open",
        "ended": None,
    }  # fmt: skip


def test_credentials_are_told_apart_and_not_kept() -> None:
    digests = [credential_digest(key) for key in ("sk-a", "sk-b", "sk-a")]
    assert digests[0] == digests[2] != digests[1]
    assert "sk-a" not in digests[0]
    assert credential_digest("") == ""
