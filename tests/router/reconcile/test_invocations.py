from __future__ import annotations

import json
from pathlib import Path

import pytest

from router.reconcile.invocations import calls, holds_bodies
from router.reconcile.model import Call
from router.reconcile.reading import Fault

RECORD = {
    "schemaType": "ModelInvocationLog", "schemaVersion": "1.0",
    "timestamp": "2026-11-29T20:04:20Z", "accountId": "1", "region": "eu-central-1",
    "identity": {"arn": "arn:aws:sts::1:assumed-role/router/i-1"}, "requestId": "r-1",
    "operation": "Converse", "modelId": "eu.a.m", "inferenceRegion": "eu-north-1",
    "requestMetadata": {"domicile-record": "eu-1/7"},
    "input": {"inputBodyJson": {"messages": [{"content": [{"text": "canary"}]}]}},
}  # fmt: skip


def test_a_record_carries_ours(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    path.write_text(json.dumps(RECORD) + "\n" + json.dumps({"schemaType": "Other"}) + "\n{\n")
    call, fault = calls(path)
    assert isinstance(call, Call)
    assert (call.call_id, call.record, call.place) == ("r-1", "eu-1/7", "aws:eu-north-1")
    assert (call.region, call.model, call.ran) == ("aws:eu-central-1", "eu.a.m", True)
    assert "canary" not in repr(call)
    assert isinstance(fault, Fault)
    assert fault.where.number == 3


def test_less_is_less(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    told = {"schemaType": "ModelInvocationLog", "requestMetadata": "x", "identity": [],
            "errorCode": "ThrottlingException"}  # fmt: skip
    path.write_text(json.dumps(told))
    (call,) = calls(path)
    assert isinstance(call, Call)
    assert (call.record, call.principal, call.region, call.place, call.ran) == ("",) * 4 + (False,)


def test_bodies_that_a_record_names_are_no_records(tmp_path: Path) -> None:
    """Bedrock puts what is above 100 KB, and pictures, below `data/`: large, and no JSON lines."""
    folder = tmp_path / "AWSLogs/1/BedrockModelInvocationLogs/eu-central-1/2026/11/29/20"
    (folder / "data").mkdir(parents=True)
    record, body = folder / "20261129T200420123Z_a1.json", folder / "data/r-1_input.json"
    assert not holds_bodies(record, tmp_path)
    assert holds_bodies(body, tmp_path)
    assert not holds_bodies(record, record)


def test_records_in_a_folder_of_ones_own_called_data_are_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All of a copy at `exports/data/AWSLogs/…` was passed over without a word, bypasses too."""
    record = (
        tmp_path / "data/AWSLogs/1/BedrockModelInvocationLogs/eu-central-1/2026/11/29/20/a.json"
    )
    assert not holds_bodies(record, tmp_path)
    assert not holds_bodies(tmp_path / "data/a.jsonl", tmp_path)
    hour = tmp_path / "20"
    hour.mkdir()
    monkeypatch.chdir(hour)
    assert holds_bodies(Path("data/r-1_input.json"), Path())
    assert not holds_bodies(Path("a.json"), Path())
    assert not holds_bodies(Path("/a.json"), Path("/"))
