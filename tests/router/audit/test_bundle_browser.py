"""The page that checks proofs, opened as a file in a real browser: what it takes and refuses."""

from __future__ import annotations

import json
import runpy
from collections import Counter
from collections.abc import Iterator
from copy import deepcopy
from pathlib import Path
from random import Random
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from router.audit.bundle import (
    ProofRefused,
    export_tenant,
    prove_growth,
    prove_request,
    verify_bundle,
)
from router.audit.certificate import Signing
from router.audit.layout import Folder, LogFolder
from router.audit.note import LIFETIME, Signer, parse_checkpoint
from tests.browser import Browser, needs_chromium
from tests.router.audit.damage import published
from tests.router.audit.logbox import START, LogBox
from tests.router.audit.services import Service

PAGE = Path(__file__).parents[3] / "docs" / "verify_bundle.html"
STRANGER = Signer("eu-1", Ed25519PrivateKey.from_private_bytes(bytes(32)))

REFUSED = (ValueError, LookupError, TypeError, AttributeError)

pytestmark = needs_chromium


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    browser = Browser(tmp_path_factory.mktemp("chromium"))
    browser.open(PAGE)
    yield browser
    browser.close()


@pytest.fixture
async def folder(box: LogBox) -> LogFolder:
    await box.refill(12)
    return Folder(box.folder).log("eu-1")


def bundle_of(folder: LogFolder, request: str = "r3") -> dict[str, Any]:
    head = parse_checkpoint(folder.checkpoint.read_text())
    value: dict[str, Any] = json.loads(prove_request(folder, request, head).to_json())
    return value


def verdict(page: Browser, proof: object, key: str) -> str:
    """What the page's own check says, without its inputs."""
    text = proof if isinstance(proof, str) else json.dumps(proof)
    asked = f"check({json.dumps(text)}, {json.dumps(key)})"
    told = page.run(f"{asked}.then((good) => good.said, (bad) => 'Not proved: ' + bad.message)")
    assert isinstance(told, str)
    return told


def test_files_are_chosen_and_entries_shown(
    page: Browser, folder: LogFolder, box: LogBox, tmp_path: Path
) -> None:
    page.open(PAGE)
    proof, key, other = tmp_path / "proof.json", tmp_path / "log.vkey", tmp_path / "other.vkey"
    proof.write_text(json.dumps(bundle_of(folder)))
    key.write_text(box.key.vkey("eu-1"))
    other.write_text(STRANGER.public.vkey("eu-1"))
    page.choose("#bundle", proof)
    assert page.run("document.getElementById('verdict').className") == ""
    page.choose("#key", key)
    page.wait("document.getElementById('verdict').className === 'proved'")
    assert "2 entries of log eu-1" in page.run("document.getElementById('verdict').textContent")
    shown = page.run("[...document.querySelectorAll('pre')].map((one) => one.textContent)")
    assert [json.loads(one).get("tenant") for one in shown] == ["b", None]
    assert json.loads(shown[0])["plan"] == ["fra-small", "fra-large"]
    page.choose("#key", other)
    page.wait("document.getElementById('verdict').className === 'refused'")
    assert "not signed by this key" in page.run("document.getElementById('verdict').textContent")
    assert page.run("document.querySelectorAll('pre').length") == 0
    assert page.asked() == [PAGE.as_uri()], "it asks nobody anything"
    assert page.complaints() == []


def tampered(good: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    """A proof with one field changed, every field in turn."""
    for name, value in (("format", "domicile-bundle/2"), ("log", "eu-2"), ("lines", [])):
        yield name, {**good, name: value}
    text: str = good["checkpoint"]
    for number in range(len(text.splitlines())):
        lines = text.splitlines(keepends=True)
        if lines[number].strip():
            at = len(lines[number]) // 2
            spoilt = "A" if lines[number][at] != "A" else "B"
            lines[number] = lines[number][:at] + spoilt + lines[number][at + 1 :]
            yield f"checkpoint line {number}", {**good, "checkpoint": "".join(lines)}
    for at in range(len(good["lines"])):
        yield from _of_line(good, at)


def _of_line(good: dict[str, Any], at: int) -> Iterator[tuple[str, dict[str, Any]]]:
    one = good["lines"][at]
    line = json.loads(one["line"])
    changes: dict[str, object] = {
        "index": one["index"] + 1, "negative": -1, "path": [*one["path"], "00" * 32],
        "short": one["path"][:-1], "step": ["ff" * 32, *one["path"][1:]],
        "other": one["path"][::-1], "space": one["line"] + " ",
    }  # fmt: skip
    for field in line:
        other = line[field] + 1 if isinstance(line[field], int) else f"{line[field]}x"
        changes[field] = json.dumps({**line, field: other}, separators=(",", ":"))
    for name, value in changes.items():
        spoilt = deepcopy(good)
        field = {"negative": "index", "short": "path", "step": "path", "other": "path"}.get(name)
        field = field or (name if name in ("index", "path") else "line")
        spoilt["lines"][at][field] = value
        yield f"line {at}: {name}", spoilt


def test_every_changed_field_is_refused(page: Browser, folder: LogFolder, box: LogBox) -> None:
    good, key = bundle_of(folder), box.key.vkey("eu-1")
    assert verdict(page, good, key).startswith("Proved: 2 entries of log eu-1")
    body, _, signatures = good["checkpoint"].rpartition("\n\n")  # one signature: none can stand in
    good["checkpoint"] = f"{body}\n\n{signatures.splitlines()[-1]}\n"
    assert verdict(page, good, key).startswith("Proved: 2 entries of log eu-1")
    tried = list(tampered(good))
    assert len(tried) > 40
    for name, spoilt in tried:
        with pytest.raises(ProofRefused):
            verify_bundle(json.dumps(spoilt).encode(), [box.key])
        assert verdict(page, spoilt, key).startswith("Not proved: "), name
    without = {**good, "lines": [one for one in good["lines"] if '"intern"' not in one["line"]]}
    assert "interned value" in verdict(page, without, key)


def test_flipped_bits_are_judged_as_we_do(page: Browser, folder: LogFolder, box: LogBox) -> None:
    good, key, random = json.dumps(bundle_of(folder)), box.key.vkey("eu-1"), Random(3)
    accepted = 0
    for _ in range(150):
        raw = bytearray(good.encode())
        raw[random.randrange(len(raw))] ^= 1 << random.randrange(7)
        try:
            verify_bundle(bytes(raw), [box.key])
            accepted += 1  # hexadecimal in upper case, or a name that nobody reads
        except ProofRefused:
            assert verdict(page, raw.decode("utf-8", "replace"), key).startswith("Not proved: ")
    assert accepted < 30


def changed(random: Random, good: dict[str, Any]) -> dict[str, Any]:
    """A proof with one thing wrong, or nothing that counts."""
    value = deepcopy(good)
    one, other = (random.choice(value["lines"]) for _ in range(2))
    notes = value["checkpoint"].split("\n")
    at = random.randrange(4, len(notes) - 1)
    wild: list[object] = [None, True, -1, 1.0, 2**53, "", [], {}, {"@": 0}]
    match random.randrange(9):
        case 0:
            value[random.choice([*value, "__proto__", "more"])] = random.choice(wild)
        case 1:
            one[random.choice(list(one))] = random.choice(wild)
        case 2:
            one["line"] = spoilt(random, one["line"])
        case 3 if one["path"]:
            step = random.randrange(len(one["path"]))
            one["path"][step] = spoilt(random, one["path"][step])
        case 4:
            notes[at] = spoilt(random, notes[at])
        case 5:
            del notes[at]
        case 6:
            notes.insert(at, random.choice(notes))
        case 7:
            name = random.choice(["line", "path", "index"])
            one[name], other[name] = other[name], one[name]
        case _:
            value["lines"].append({**one, random.choice(["line", "path"]): other["line"]})
    changed_note = "\n".join(notes)
    return value if changed_note == good["checkpoint"] else {**value, "checkpoint": changed_note}


def spoilt(random: Random, text: str) -> str:
    at, new = random.randrange(len(text)), random.choice("0aAF=+- \n\t\u00a0é\\")
    return text[:at] + random.choice(["", new, new + text[at]]) + text[at + 1 :]


def test_three_verifiers_agree(page: Browser, folder: LogFolder, box: LogBox) -> None:
    """A checkpoint signed twice over is good while one way to the key is whole."""
    good, key, random = bundle_of(folder), box.key.vkey("eu-1"), Random(11)
    assert good["checkpoint"].count("\n— eu-1 ") == 3, "by the key, for a day, by the day's"
    alone = runpy.run_path(str(PAGE.with_suffix(".py")))
    counted: Counter[bool] = Counter()
    for _ in range(400):
        data = json.dumps(changed(random, good))
        try:
            ours = [one.body for one in verify_bundle(data.encode(), [box.key])]
        except ProofRefused:
            ours = []
        try:
            theirs = [one["b"] for one in alone["verify"](json.loads(data), alone["read_key"](key))]
        except REFUSED:
            theirs = []
        assert theirs == ours, data
        assert verdict(page, data, key).startswith("Proved: ") == bool(ours), data
        counted[bool(ours)] += 1
    assert min(counted.values()) > 40, "both happen"


def test_certificates_of_a_day_and_both_kinds_of_key(page: Browser, folder: LogFolder) -> None:
    """A key of P-256, as KMS has it, over one of Ed25519 that signs for a day."""
    service, head = Service(), parse_checkpoint(folder.checkpoint.read_text())
    public = service.key.public_key()
    pem = public.public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo).decode()

    def signed(at: float) -> str:
        signer = Signing("eu-1", service, Random(5).randbytes, at).signer
        return (
            prove_request(folder, "r3", signer.checkpoint(head.size, head.root)).to_json().decode()
        )

    for at, said in ((START, "Proved: "), (START - 2 * LIFETIME, "Not proved: the key had ended")):
        for key in (pem, service.public().vkey("eu-1")):
            assert verdict(page, signed(at), key).startswith(said)
    altered = service.public().vkey("eu-1").replace("+", "+0", 1)
    for wrong in ("", "x", pem.replace("M", "N", 1), pem.replace("PUBLIC", "PRIVATE"), altered):
        assert verdict(page, signed(START), wrong).startswith("Not proved: ")


def test_an_ed25519_key_as_pem_and_a_tenants_export(
    page: Browser, folder: LogFolder, box: LogBox
) -> None:
    head = parse_checkpoint(folder.checkpoint.read_text())
    export = export_tenant(folder, "a", head).to_json().decode()
    public = Ed25519PrivateKey.from_private_bytes(bytes(32)).public_key()
    pem = public.public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo).decode()
    assert verdict(page, export, box.key.vkey("eu-1")).startswith("Proved: 12 entries")
    assert "not signed by this key" in verdict(page, export, pem)


def test_growth_is_checked_too(page: Browser, folder: LogFolder, box: LogBox) -> None:
    key = box.key.vkey("eu-1")
    heads = published(box.folder)
    proof: dict[str, Any] = {}
    for old in heads:
        proof = json.loads(prove_growth(folder, old, heads[-1]))
        assert f"of {heads[-1].size} lines begins" in verdict(page, proof, key)
        steps = proof["proof"]
        for spoilt in ([*steps, "00" * 32], steps[:-1] or ["00" * 32], ["ff" * 32, *steps[1:]]):
            assert verdict(page, {**proof, "proof": spoilt}, key).startswith("Not proved: ")
    back = {**proof, "old": proof["new"], "new": heads[0].text}
    assert "older checkpoint is the larger" in verdict(page, back, key)
    other = STRANGER.checkpoint(heads[0].size, bytes(32)).text
    assert "not signed" in verdict(page, {**proof, "old": other}, key)
