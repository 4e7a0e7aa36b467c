import shutil
from pathlib import Path

import orjson
import pytest

from router.audit.bundle import ProofRefused
from router.audit.commands import (
    FINDINGS,
    OK,
    Grown,
    UsageError,
    run_prove,
    run_show,
    run_verify,
    run_verify_bundle,
)
from tests.router.audit.logbox import LogBox


@pytest.fixture
async def filled(box: LogBox) -> LogBox:
    receipts = await box.refill(3)
    await box.refill(2, "us-1")
    lines = [orjson.dumps(receipt.to_json()) for receipt in receipts]
    (box.root / "receipts.jsonl").write_bytes(b"\n".join(lines) + b"\n")
    (box.root / "receipt.json").write_bytes(lines[0])
    (box.root / "public.vkey").write_text(box.key.vkey("anything"))
    return box


def test_verify_reads_checkpoints_receipts_and_keys(filled: LogBox) -> None:
    checkpoint = filled.folder / "eu-1" / "checkpoint"
    result = run_verify(
        filled.folder,
        [checkpoint, filled.root / "receipt.json"],
        [filled.root / "public.vkey"],
        [filled.root / "receipts.jsonl"],
    )
    assert result.exit_code == OK
    told = result.to_json()
    assert told["status"] == ["intact", "consistent, unanchored"]
    assert told["findings"] == []
    assert orjson.dumps(told)


def test_findings_name_their_place(filled: LogBox) -> None:
    segment = filled.folder / "eu-1" / "segments" / f"{0:020d}.jsonl"
    lines = segment.read_bytes().split(b"\n")
    lines[5] = lines[5].replace(b'"t":1', b'"t":2')
    segment.write_bytes(b"\n".join(lines))
    result = run_verify(filled.folder)
    assert result.exit_code == FINDINGS
    first = orjson.loads(orjson.dumps(result.to_json()))["findings"][0]
    assert first["log"] == "eu-1"
    assert (first["segment"], first["line"], first["index"]) == (segment.name, 6, 5)
    assert str(result.verdict.all_findings[0]).startswith("altered: eu-1/segments/")


def test_a_folder_whose_logs_are_all_gone_is_a_finding_not_a_usage_error(filled: LogBox) -> None:
    for log in ("eu-1", "us-1"):
        shutil.rmtree(filled.folder / log)
    faults = [finding.fault for finding in run_verify(filled.folder).verdict.all_findings]
    assert faults == ["missing_log", "missing_log"]


def test_what_cannot_be_read_is_named(filled: LogBox) -> None:
    bad, folder = filled.root / "bad", filled.folder
    for content in (None, b"\xff", b"nonsense\n"):
        if content is not None:
            bad.write_bytes(content)
        with pytest.raises(UsageError, match="bad"):
            run_verify(folder, [bad])
        with pytest.raises(UsageError, match="bad"):
            run_verify(folder, public_keys=[bad])
        with pytest.raises(UsageError, match="bad"):
            run_verify(folder, receipts=[bad])
    with pytest.raises(UsageError, match=r"log\.dir"):
        run_verify(filled.root / "nowhere")


def test_show_filters(filled: LogBox) -> None:
    everything = list(run_show(filled.folder))
    assert [shown.place.log for shown in everything] == sorted(s.place.log for s in everything)
    one = list(run_show(filled.folder, log="eu-1", request_id="r0"))
    assert [shown.kind for shown in one] == ["decision", "outcome"]
    assert {shown.kind for shown in run_show(filled.folder, kind="heartbeat")} == {"heartbeat"}
    with pytest.raises(UsageError, match="eu-1, us-1"):
        list(run_show(filled.folder, log="eu-9"))
    with pytest.raises(UsageError, match="holds no log"):
        list(run_show(Path(filled.root / "nowhere")))


def test_prove_and_verify_a_bundle(filled: LogBox) -> None:
    bundle = filled.root / "bundle.json"
    for checkpoint in (None, filled.folder / "eu-1" / "checkpoint"):
        bundle.write_bytes(run_prove(filled.folder, "r1", checkpoint).to_json())
        shown = run_verify_bundle(bundle, [filled.root / "public.vkey"])
        assert not isinstance(shown, Grown)
        assert [one.kind for one in shown] == ["decision", "outcome"]
    with pytest.raises(UsageError, match="`r99` is no request"):
        run_prove(filled.folder, "r99")
    with pytest.raises(UsageError, match="yet"):
        run_prove(filled.folder, "r2", filled.root / "receipt.json")
    bundle.write_bytes(bundle.read_bytes().replace(b"score", b"scone", 1))
    with pytest.raises(ProofRefused):
        run_verify_bundle(bundle, [filled.root / "public.vkey"])
