import os
import shutil
from pathlib import Path
from random import Random

import orjson
import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

from router.audit.disk import LocalDisk
from router.audit.entry import Entry
from router.audit.layout import Folder
from router.audit.note import Signer, load_signer, parse_checkpoint
from router.audit.receipt import Receipt, parse_receipt
from router.audit.roster import RosterLine, append_roster, read_roster
from router.audit.tree import leaf_hash
from router.audit.verdict import Verdict
from router.audit.verify import verify
from tests.router.audit.damage import Gallery, caught, damaged, lived, published
from tests.router.audit.logbox import LogBox

FAULTS = int(os.environ.get("DOMICILE_AUDIT_FAULTS", "500"))
CLEAN = int(os.environ.get("DOMICILE_AUDIT_CLEAN", "40"))


@pytest.fixture
async def gallery(tmp_path: Path) -> Gallery:
    return await Gallery.of(tmp_path)


def faults_of(verdict: Verdict) -> list[str]:
    return [finding.fault for finding in verdict.all_findings]


def notices(verdict: Verdict, words: str) -> list[str]:
    return [one for log in verdict.logs for one in log.notices if words in one]


def test_clean_logs_are_intact_up_to_any_anchor(gallery: Gallery) -> None:
    key = gallery.box.key
    for text in gallery.heads:
        head = parse_checkpoint(text)
        verdict = verify(gallery.box.folder, against=[head], public_keys=[key])
        assert verdict.ok
        tail = gallery.size - head.size
        assert verdict.logs[0].statuses == ([f"unanchored tail: {tail}"] if tail else ["intact"])
    for receipt in gallery.receipts:
        assert verify(gallery.box.folder, against=[receipt], public_keys=[key]).ok
    assert verify(gallery.box.folder, public_keys=[key]).statuses == ["consistent, unanchored"]


def test_every_single_fault_below_an_anchor_is_found_and_placed(gallery: Gallery) -> None:
    seen = damaged(gallery, Random(20261129), FAULTS)
    assert len({name for name, covered in seen if covered}) == 12
    assert sum(count for (_, covered), count in seen.items() if covered) > FAULTS / 3


@pytest.mark.parametrize("seed", range(CLEAN))
async def test_clean_logs_raise_no_alarm(tmp_path: Path, seed: int) -> None:
    verdict = await lived(tmp_path, seed)
    assert verdict.ok, verdict.all_findings
    assert not notices(verdict, "are not in `checkpoints.jsonl`"), "a crash loses the last one only"


@pytest.mark.parametrize("seed", range(8))
async def test_a_key_holder_is_caught_by_whoever_holds_something(tmp_path: Path, seed: int) -> None:
    await caught(tmp_path, seed)


def forged(gallery: Gallery) -> Path:
    """The folder, to be written by whoever holds the signing key."""
    return gallery.box.copy(gallery.box.root / "forged")


def resign(gallery: Gallery, folder: Path, log: str) -> None:
    """Make the folder consistent again with the true key: heads, hashes and roster."""
    from router.audit.scan import scan
    from router.audit.structure import Structure

    signer = load_signer(gallery.box.key_file, log)
    logs = Folder(folder)
    where = logs.log(log)
    found = scan(where, range(10_000), Structure(logs))
    for part in found.parts:
        leaves = found.leaves[part.start * 32 : (part.start + part.count) * 32]
        part.segment.leaves.write_bytes(leaves)
    texts = []
    for text in where.checkpoints.read_bytes().splitlines():
        size = parse_checkpoint(orjson.loads(text)["checkpoint"]).size
        if size in found.roots:
            texts.append(signer.checkpoint(size, found.roots[size]).text)
    where.checkpoint.write_text(texts[-1])
    where.checkpoints.write_bytes(
        b"".join(orjson.dumps({"checkpoint": text}) + b"\n" for text in texts)
    )
    lines, _ = read_roster(logs)
    logs.roster.unlink()
    for line in lines:
        own = line.log == log
        size = min(line.size, found.size) if own else line.size
        append_roster(
            logs, LocalDisk(), load_signer(gallery.box.key_file, line.log),
            "start" if line.event == "start" else "stop",
            size, found.roots[size] if own else line.root, line.time / 1e6,
        )  # fmt: skip


def rewrite(folder: Path) -> int:
    """Change one score; returns the index of the line."""
    for segment in Folder(folder).log("eu-1").segments():
        lines = segment.path.read_bytes().split(b"\n")
        for at, line in enumerate(lines):
            if b'"score":17' in line:
                lines[at] = line.replace(b'"score":17', b'"score":71')
                segment.path.write_bytes(b"\n".join(lines))
                return segment.first + at
    raise AssertionError("no line to rewrite")


def test_a_key_holder_who_rewrites_is_caught_by_any_anchor_or_receipt(gallery: Gallery) -> None:
    folder, key = forged(gallery), gallery.box.key
    single = Folder(folder)
    for segment in single.log("eu-1").segments()[1:]:  # one segment: no peaks to recompute
        segment.path.unlink()
        segment.leaves.unlink()
    size = single.log("eu-1").segments()[0].path.read_bytes().count(b"\n")
    index = rewrite(folder)
    resign(gallery, folder, "eu-1")
    drop_roster_references(folder, gallery)
    heads = [parse_checkpoint(text) for text in gallery.heads]
    for anchor in heads:
        verdict = verify(folder, against=[anchor], public_keys=[key])
        assert {"contradicted", "truncated"} & set(faults_of(verdict)) or anchor.size <= index
    own = next(one for one in gallery.receipts if one.index == index)
    assert "altered" in faults_of(verify(folder, against=[own], public_keys=[key]))
    gone = next(one for one in gallery.receipts if one.index >= size)
    assert "truncated" in faults_of(verify(folder, against=[gone], public_keys=[key]))


def drop_roster_references(folder: Path, gallery: Gallery) -> None:
    """Entries name the roster they saw: without a consistent rewrite that alone betrays it."""
    verdict = verify(folder, public_keys=[gallery.box.key])
    assert set(faults_of(verdict)) <= {"roster", "sidecar", "malformed", "unsettled"}


async def test_without_an_anchor_a_full_rewrite_is_only_consistent(
    gallery: Gallery, tmp_path: Path
) -> None:
    """The key holder writes another history from scratch: nothing inside can tell."""
    (tmp_path / "again").mkdir()
    shutil.copy(gallery.box.key_file, tmp_path / "again" / "log.key")
    other = LogBox(tmp_path / "again", seed=2, segment_bytes=3000)
    await other.refill(11)
    await other.refill(13)
    key = gallery.box.key
    assert verify(other.folder, public_keys=[key]).statuses == ["consistent, unanchored"]
    for text in gallery.heads[1:]:
        verdict = verify(other.folder, against=[parse_checkpoint(text)], public_keys=[key])
        assert not verdict.ok
    for receipt in gallery.receipts:
        verdict = verify(other.folder, against=[receipt], public_keys=[key])
        assert {"altered", "truncated"} & set(faults_of(verdict))


async def test_a_fork_is_a_split_view(gallery: Gallery, tmp_path: Path) -> None:
    fork = LogBox(tmp_path / "fork", seed=3)
    shutil.copy(gallery.box.key_file, fork.key_file)
    shutil.copytree(gallery.box.folder, fork.folder)
    fork.clock.now = gallery.box.clock.now
    key = gallery.box.key
    ours = await gallery.box.refill(3)
    theirs = await fork.refill(3)
    for folder, foreign in ((gallery.box.folder, theirs), (fork.folder, ours)):
        verdict = verify(folder, against=[*ours, *theirs], public_keys=[key])
        assert "split_view" in faults_of(verdict)
        for receipt in foreign:
            found = faults_of(verify(folder, against=[receipt], public_keys=[key]))
            assert {"altered", "truncated"} & set(found)


def test_a_dropped_log_is_missed(gallery: Gallery) -> None:
    folder, key = forged(gallery), gallery.box.key
    shutil.rmtree(folder / "us-1")
    assert faults_of(verify(folder, public_keys=[key])) == ["missing_log"]
    lines = (folder / "roster.jsonl").read_bytes().splitlines(keepends=True)
    (folder / "roster.jsonl").write_bytes(b"".join(line for line in lines if b"us-1" not in line))
    assert verify(folder, public_keys=[key]).ok  # its lines were last, nobody saw them ...
    receipt = Receipt("us-1", 3, "0" * 64, gallery.heads[0])
    held = verify(folder, against=[receipt], public_keys=[key])  # ... except who has a receipt
    assert faults_of(held) == ["missing_log"]


async def test_a_roster_cut_short_contradicts_later_logs(gallery: Gallery) -> None:
    await gallery.box.refill(1)  # eu-1 starts again and sees us-1 in the roster
    folder, key = forged(gallery), gallery.box.key
    shutil.rmtree(folder / "us-1")
    lines, _ = read_roster(Folder(folder))
    (folder / "roster.jsonl").unlink()
    for line in lines:
        if line.log != "us-1":
            append_roster(
                Folder(folder), LocalDisk(), load_signer(gallery.box.key_file, line.log),
                "start" if line.event == "start" else "stop", line.size, line.root, line.time / 1e6,
            )  # fmt: skip
    assert set(faults_of(verify(folder, public_keys=[key]))) == {"roster"}


def test_another_key_signs_nothing_here(gallery: Gallery) -> None:
    stranger = Signer("eu-1", Ed25519PrivateKey.from_private_bytes(bytes(32)))
    folder = gallery.box.folder
    verdict = verify(folder, public_keys=[stranger.public])
    assert {"roster", "checkpoint"} <= set(faults_of(verdict))
    head = parse_checkpoint(gallery.heads[-1])
    resigned = stranger.checkpoint(head.size, head.root)
    found = faults_of(verify(folder, against=[resigned], public_keys=[gallery.box.key]))
    assert found == ["anchor"]


def test_keys_from_the_roster_are_declared_weaker(gallery: Gallery) -> None:
    verdict = verify(gallery.box.folder)
    assert verdict.ok
    assert any("pass a public key" in notice for notice in verdict.notices)


@pytest.mark.parametrize("number", range(6))
def test_each_roster_line_is_guarded(gallery: Gallery, number: int) -> None:
    roster = gallery.box.folder / "roster.jsonl"
    data = roster.read_bytes()
    lines = data.splitlines(keepends=True)
    size = b'"size":'
    roster.write_bytes(data.replace(lines[number], lines[number].replace(size, size + b"1"), 1))
    assert "roster" in faults_of(verify(gallery.box.folder, public_keys=[gallery.box.key]))


def test_a_roster_line_taken_out_breaks_the_chain(gallery: Gallery) -> None:
    roster = gallery.box.folder / "roster.jsonl"
    lines = roster.read_bytes().splitlines(keepends=True)
    roster.write_bytes(b"".join([*lines[:-2], lines[-1]]))
    findings = verify(gallery.box.folder, public_keys=[gallery.box.key]).findings
    assert [(one.fault, one.place.line) for one in findings] == [("roster", len(lines) - 1)]
    assert "follow" in findings[0].detail


async def test_a_wrong_structure_is_found_even_when_signed(box: LogBox) -> None:
    log = await box.open()
    await log.commit(Entry("decision", "r1", box.clock.now, {"plan": ["a", "b"]}), None)
    await log.record(Entry("attempt", "r1", box.clock.now + 1, {"endpoint": "c"}))
    await log.record(Entry("outcome", "r1", box.clock.now - 1, {"attempts": [{"endpoint": "d"}]}))
    await log.close()
    found = faults_of(verify(box.folder, public_keys=[box.key]))
    assert found == ["outside_plan", "out_of_order", "outside_plan"]


def test_leaf_hashes_hide_guesses(gallery: Gallery) -> None:
    """Equal entries have different leaves: their nonces differ."""
    lines = [
        line
        for segment in Folder(gallery.box.folder).log("eu-1").segments()
        for line in segment.path.read_bytes().splitlines()
    ]
    assert len({leaf_hash(line) for line in lines}) == len(lines)
    entries = [orjson.loads(line) for line in lines]
    nonces = [entry["n"] for entry in entries]
    assert len(set(nonces)) == len(nonces)


@pytest.mark.parametrize("left", [0, 1, 3])
async def test_published_checkpoints_that_are_gone_are_missed(box: LogBox, left: int) -> None:
    """Without them a running log could be altered back to its start, unseen."""
    log = await box.open()
    for _ in range(9):
        await box.request(log)
        box.clock.now += 60
        await log.tick()
    folder = box.copy(box.root / "copy")
    await log.close()
    assert verify(folder, public_keys=[box.key]).ok
    history = folder / "eu-1" / "checkpoints.jsonl"
    lines = history.read_bytes().splitlines(keepends=True)
    history.write_bytes(b"".join(lines[:left]))
    head = folder / "eu-1" / "checkpoint"
    head.write_text(orjson.loads(lines[left - 1])["checkpoint"] if left else "")
    (found,) = verify(folder, public_keys=[box.key]).all_findings
    assert found.fault == "checkpoint"
    assert found.detail.startswith("what was published after this entry is gone: ")
    history.write_bytes(b"".join(lines[:-1]))
    head.write_text(orjson.loads(lines[-2])["checkpoint"])
    assert verify(folder, public_keys=[box.key]).ok, "as a crash leaves it"


def test_a_published_checkpoint_that_is_gone_is_noticed(gallery: Gallery) -> None:
    """Whoever takes some away makes the range larger that is told of a fault below them."""
    folder = forged(gallery)
    history = folder / "eu-1" / "checkpoints.jsonl"
    lines = history.read_bytes().splitlines(keepends=True)
    own = {line.size for line in read_roster(Folder(folder))[0] if line.log == "eu-1"}
    said = 0
    for at in range(len(lines) - 1):
        history.write_bytes(b"".join([*lines[:at], *lines[at + 1 :]]))
        verdict = verify(folder, public_keys=[gallery.box.key])
        assert verdict.ok, verdict.all_findings
        told = notices(verdict, "1 published checkpoints are not in `checkpoints.jsonl`")
        size = parse_checkpoint(orjson.loads(lines[at])["checkpoint"]).size
        following = parse_checkpoint(orjson.loads(lines[at + 1])["checkpoint"]).size
        assert bool(told) == (not {size, following} & own), "but the last of a process and a stop's"
        said += bool(told)
    assert said > 1
    history.unlink()
    (folder / "eu-1" / "checkpoint").unlink()
    (told_of,) = notices(verify(folder, public_keys=[gallery.box.key]), "published checkpoints")
    assert told_of.startswith(f"{said} ")


def test_checkpoints_signed_again_by_another_key_are_one_finding(gallery: Gallery) -> None:
    folder = forged(gallery)
    stranger = Signer("eu-1", Ed25519PrivateKey.from_private_bytes(bytes(32)))
    texts = [stranger.checkpoint(one.size, one.root).text for one in published(folder)]
    lines = [orjson.dumps({"checkpoint": text}) + b"\n" for text in texts]
    (folder / "eu-1" / "checkpoints.jsonl").write_bytes(b"".join(lines))
    (folder / "eu-1" / "checkpoint").write_text(texts[-1])
    (one,) = verify(folder, public_keys=[gallery.box.key]).all_findings
    detail = f"lines 1 to {len(texts)}: signed by no known key of log `eu-1`"
    assert str(one) == f"checkpoint: eu-1/checkpoints.jsonl:1: {detail}"


def test_a_receipt_that_was_made_up_accuses_itself(gallery: Gallery) -> None:
    one, other = gallery.receipts[3], gallery.receipts[7]
    mixed = Receipt(one.log, one.index, other.leaf, other.checkpoint)
    (found,) = verify(
        gallery.box.folder, against=[mixed], public_keys=[gallery.box.key]
    ).all_findings
    assert found.fault == "anchor"
    assert "its head fits" in found.detail


async def test_a_log_of_the_first_days_is_verified_and_goes_on(tmp_path: Path) -> None:
    """Written before keys were certified: its file key signed heads and roster by itself. What is
    in `logs/first.json` was left by a crash, with one request open."""
    kept = orjson.loads((Path(__file__).parent / "logs" / "first.json").read_bytes())
    key = Ed25519PrivateKey.from_private_bytes(bytes(range(32)))
    pem = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    (tmp_path / "log.key").write_bytes(pem)
    box = LogBox(tmp_path)
    for name, text in kept["files"].items():
        path = box.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        if path.parent.name == "segments":
            leaves = map(leaf_hash, text.encode().splitlines())
            path.with_suffix(".leaves").write_bytes(b"".join(leaves))
    held = [parse_receipt(orjson.dumps(one)) for one in kept["receipts"]]
    verdict = verify(box.folder, against=held, public_keys=[box.key])
    assert verdict.ok, verdict.all_findings
    assert len(Folder(box.folder).log("eu-1").segments()) > 1
    box.clock.now += 1000
    held += await box.refill(2)
    after = verify(box.folder, against=held, public_keys=[box.key])
    assert after.ok, after.all_findings
    index = held[0].index
    (segment, *_) = Folder(box.folder).log("eu-1").segments()
    lines = segment.path.read_bytes().split(b"\n")
    lines[index] = lines[index].replace(b'"score":17', b'"score":71')
    segment.path.write_bytes(b"\n".join(lines))
    found = verify(box.folder, against=held, public_keys=[box.key]).all_findings
    assert min(one.place.index for one in found if one.place.index >= 0) == index


async def test_a_log_that_begins_while_others_are_read_is_no_finding(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    box = LogBox(tmp_path)
    await box.refill(1)
    before = box.copy(tmp_path / "before")
    await box.refill(1, "us-1")

    def read(folder: Folder) -> tuple[list[RosterLine], int]:
        """The roster as it is now; then the other log begins."""
        found = read_roster(folder)
        shutil.copytree(box.folder, before, dirs_exist_ok=True)
        return found

    monkeypatch.setattr("router.audit.verify.read_roster", read)
    verdict = verify(before, public_keys=[box.key])
    assert len(verdict.logs) == 2
    assert verdict.ok, verdict.all_findings
