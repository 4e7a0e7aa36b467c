"""`domicile audit reconcile`: its answers, exit codes, and what it quarantines."""

from __future__ import annotations

import asyncio
import gzip
import json
from base64 import b64encode
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import cast

import pytest
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from router.audit.disk import LocalDisk
from router.config import load
from router.narrowing.veto_file import VetoFile
from tests.rawserver import RawServer
from tests.router.audit.logbox import START
from tests.router.cli.conftest import Domicile, Ran
from tests.router.cli.test_quarantine import served
from tests.router.folders import sound
from tests.router.reconcile import planted
from tests.router.reconcile.made import (
    FINGERPRINT,
    FRA,
    LOCAL,
    SONNET,
    Traffic,
    Trail,
    logged,
    signing_key,
    stamp,
)
from tests.router.reconcile.planted import Plants
from tests.router.reconcile.test_live import Service

AT = stamp(START + 6 * 3600)


class Evidence:
    """A log, and a trail of its calls with what a test plants in it."""

    def __init__(self, root: Path, traffic: Traffic) -> None:
        self.root = root
        self.traffic = traffic
        for request in traffic.requests:
            request.attempts = request.attempts[-1:]
        der = signing_key().public_key().public_bytes(Encoding.DER, PublicFormat.PKCS1)
        listed = [{"Value": b64encode(der).decode(), "Fingerprint": FINGERPRINT}]
        (root / "keys.json").write_text(json.dumps({"PublicKeyList": listed}))

    async def write(self, *plants: Callable[[Plants], None]) -> Evidence:
        self.log = await logged(self.traffic, self.root)
        made = Plants(self.traffic, Random(1))
        for plant in plants:
            plant(made)
        Trail(self.root / "trail", planted.as_records(made.events)).write()
        return self

    @property
    def words(self) -> tuple[str | Path, ...]:
        return ("audit", "reconcile", self.log, "--cloudtrail", self.root / "trail",
                "--digest-keys", self.root / "keys.json", "--at", AT)  # fmt: skip


@pytest.fixture
def evidence(tmp_path: Path) -> Evidence:
    return Evidence(tmp_path, Traffic(1, endpoints=(SONNET, LOCAL)))


async def run(domicile: Domicile, *words: str | Path) -> Ran:
    return await asyncio.to_thread(domicile, *words)


async def test_all_confirmed(domicile: Domicile, evidence: Evidence) -> None:
    await evidence.write()
    ran = await run(domicile, *evidence.words)
    assert (ran.code, ran.err) == (0, "")
    assert "audit reconcile: confirmed" in ran.out
    assert "verified" in ran.out
    told = (await run(domicile, *evidence.words, "--json")).json
    assert (told["exit_code"], told["findings"], told["whole"]) == (0, [], True)
    assert told["trail"] == {"123456789012": ["eu-central-1", "eu-west-1"]}
    assert "digests of 123456789012: eu-central-1, eu-west-1; nothing is known of other" in ran.out
    assert "`audit verify` says whether it was changed" in ran.out


async def test_an_hour_that_nobody_signed_for_is_not_confirmed(
    domicile: Domicile, evidence: Evidence
) -> None:
    """What bypassed the router in the newest hour could be taken out with that hour's digest."""
    await evidence.write()
    for path in evidence.root.rglob("*.signature"):
        path.unlink()
    ran = await run(domicile, *evidence.words)
    assert ran.code == 4
    assert "notice: 2 digests have no signature that could be checked" in ran.out


async def test_bodies_of_bedrocks_logs_are_not_read(domicile: Domicile, tmp_path: Path) -> None:
    evidence = await Evidence(tmp_path, Traffic(1, endpoints=(LOCAL,))).write()
    body = tmp_path / "invocations/AWSLogs/1/us-east-1/2026/01/02/03/data/r_input.json.gz"
    body.parent.mkdir(parents=True)
    body.write_bytes(gzip.compress(b"no JSON, as of a picture\n"))
    ran = await run(domicile, *evidence.words, "--bedrock-logs", tmp_path / "invocations")
    assert "unreadable" not in ran.out
    astray = tmp_path / "invocations/AWSLogs/1/data/r_input.json.gz"  # of no hour: nobody's body
    astray.parent.mkdir(parents=True)
    body.rename(astray)
    ran = await run(domicile, *evidence.words, "--bedrock-logs", tmp_path / "invocations")
    assert "unreadable" in ran.out


async def test_findings_end_with_3(domicile: Domicile, evidence: Evidence) -> None:
    await evidence.write(planted.outside, planted.bypass)
    ran = await run(domicile, *evidence.words)
    assert ran.code == 3
    assert "finding: outside (cloudtrail): it ran in aws:us-east-1" in ran.out
    told = await run(domicile, *evidence.words, "--json")
    assert (told.code, told.json["kinds"]) == (3, {"bypass": 1, "outside": 1})
    period = ("--period", f"{stamp(START - 99)}/{stamp(START)}")
    assert (await run(domicile, *evidence.words, *period)).code == 4


async def test_what_can_t_be_seen_ends_with_4(domicile: Domicile, tmp_path: Path) -> None:
    evidence = await Evidence(tmp_path, Traffic(1, endpoints=(LOCAL, FRA))).write()
    ran = await run(domicile, *evidence.words)
    assert ran.code == 4
    assert "none given" in ran.out
    lines = [
        json.dumps({"time": stamp(one.at), "path": "/v1/completions", "x_request_id": request.id})
        for request in evidence.traffic.requests
        for one in request.attempts
        if one.made is FRA
    ]
    (tmp_path / "fra.log").write_text("\n".join(lines))
    both = (*evidence.words, "--vllm-logs", f"fra={tmp_path / 'fra.log'}")
    assert (await run(domicile, *both)).code == 0
    (tmp_path / "fra.log").write_text("\n".join([*lines, lines[0]]))
    again = await run(domicile, *both, "--json")
    assert (again.code, again.json["kinds"]) == (3, {"reused": 1})


async def test_a_running_router_is_told(
    domicile: Domicile, evidence: Evidence, tmp_path: Path
) -> None:
    await evidence.write(planted.outside)
    house = tmp_path / "house"
    house.mkdir()
    async with served(house) as (world, admin):
        words = (*evidence.words, "--quarantine", "--config", house / "domicile.yaml")
        ran = await run(domicile, *words, "--admin", admin)
        # This router has no endpoint of that name: refused, and not silently.
        assert ran.code == 1
        assert "there is no endpoint `sonnet-eu` here" in ran.err
        assert world.watches.quarantine.imposed == ()


async def test_without_a_router_its_veto_file_is_written(
    domicile: Domicile, evidence: Evidence, tmp_path: Path
) -> None:
    await evidence.write(planted.outside, planted.drifted)
    house = tmp_path / "house"
    house.mkdir()
    sound(house)
    words = (*evidence.words, "--quarantine", "--config", house / "domicile.yaml")
    ran = await run(domicile, *words)
    assert ran.code == 3
    assert "endpoint `sonnet-eu` is quarantined from the router's next start" in ran.err
    config = load(house / "domicile.yaml")
    imposed = VetoFile.open(house / config.log.dir, config.router.id, LocalDisk()).state.imposed
    assert {one.name for one in imposed} == {"sonnet-eu", "nova"}
    assert all(one.reason.startswith("reconcile: it ran in aws:") for one in imposed)


@pytest.mark.parametrize(
    ("words", "told"),
    [
        ((), "give one of --cloudtrail"),
        (("--cloudtrail", "gone"), "does not exist"),
        (("--vllm-logs", "fra=gone"), "`gone` is not there"),
        (("--azure", ".", "--period", "2026"), "write it as"),
        (("--azure", ".", "--period", "x/y"), "write a time as"),
        (("--azure", ".", "--period", "2026-12-01/2026-11-01"), "it ends before it has begun"),
        (("--azure", ".", "--grace", "soon"), "needs a number and a unit"),
        (("--azure", ".", "--digest-keys", "keys.json"), "list-public-keys"),
    ],
)
async def test_usage(
    domicile: Domicile,
    evidence: Evidence,
    monkeypatch: pytest.MonkeyPatch,
    words: tuple[str, ...],
    told: str,
) -> None:
    await evidence.write()
    monkeypatch.chdir(evidence.root)
    (evidence.root / "keys.json").write_text("{}")
    ran = await run(domicile, "audit", "reconcile", evidence.log, *words)
    assert ran.code == 2
    assert told in ran.err


async def test_fleets_are_all_named_or_none(domicile: Domicile, evidence: Evidence) -> None:
    await evidence.write()
    keys = evidence.root / "keys.json"
    words = ("--vllm-logs", f"fra={keys}", "--vllm-logs", evidence.root / "trail")
    ran = await run(domicile, "audit", "reconcile", evidence.log, *words)
    assert (ran.code, "of every" in ran.err) == (2, True)


async def test_a_sample_of_cloudtrail_itself(
    domicile: Domicile, evidence: Evidence, tmp_path: Path
) -> None:
    await evidence.write(planted.drifted)
    files = sorted((evidence.root / "trail").rglob("*_CloudTrail_*.json.gz"))
    held = [json.loads(gzip.decompress(path.read_bytes()))["Records"] for path in files]
    events = [one for records in held for one in records]
    service = Service(sorted(events, key=lambda one: str(one["eventTime"]), reverse=True), 50)
    keys = {"aws_access_key_id": "AKID", "aws_secret_access_key": "very-secret"}
    (tmp_path / "aws.json").write_text(json.dumps(keys))
    async with RawServer(service) as server:
        url = f"http://127.0.0.1:{server.port}"
        words = ("audit", "reconcile", evidence.log, "--at", AT, "--live-sample", "2",
                 "--credentials", f"file:{tmp_path / 'aws.json'}", "--lookup-url", url)  # fmt: skip
        ran = await run(domicile, *words, "--json")
        both = await run(domicile, *words, "--cloudtrail", evidence.root / "trail")
    assert ran.code in (3, 4), ran.err
    (covered,) = cast("list[dict[str, object]]", ran.json["coverage"])
    assert covered["attempts"] == covered["by_id"] == 2
    assert service.asked
    assert (both.code, "takes the place of" in both.err) == (2, True)
