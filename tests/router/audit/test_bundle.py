import subprocess
import sys
from contextlib import suppress
from pathlib import Path
from random import Random

import orjson
import pytest
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from router.audit.bundle import (
    Bundle,
    ProofRefused,
    ProvedLine,
    export_tenant,
    prove_growth,
    prove_request,
    verify_bundle,
    verify_growth,
)
from router.audit.certificate import Signing
from router.audit.entry import Entry, Interned, entry_line, intern_line, stand_in
from router.audit.layout import Folder, LogFolder
from router.audit.note import (
    LIFETIME,
    Checkpoint,
    Signer,
    load_signer,
    parse_checkpoint,
    read_private_key,
    read_public_key,
)
from router.audit.reading import NotInLog
from router.audit.tree import LeafTree, leaf_hash
from tests.router.audit.logbox import START, LogBox
from tests.router.audit.services import Service

VERIFIER = Path(__file__).parents[3] / "docs" / "verify_bundle.py"


@pytest.fixture
async def folder(tmp_path: Path) -> LogFolder:
    box = LogBox(tmp_path, segment_bytes=2500)
    await box.refill(16)
    (tmp_path / "public.vkey").write_text(box.key.vkey("eu-1"))
    return Folder(box.folder).log("eu-1")


def published(folder: LogFolder) -> list[Checkpoint]:
    lines = folder.checkpoints.read_bytes().splitlines()
    return [parse_checkpoint(orjson.loads(line)["checkpoint"]) for line in lines]


def test_a_request_is_proved_with_its_values(folder: LogFolder, box: LogBox) -> None:
    data = prove_request(folder, "r3", published(folder)[-1]).to_json()
    shown = verify_bundle(data, [box.key])
    assert [(one.kind, one.id) for one in shown] == [("decision", "r3"), ("outcome", "r3")]
    assert shown[0].body["tenant"] == "b"
    assert shown[0].body["plan"] == ["fra-small", "fra-large"]


def test_an_export_discloses_one_tenant_only(folder: LogFolder, box: LogBox) -> None:
    data = export_tenant(folder, "a", published(folder)[-1]).to_json()
    shown = verify_bundle(data, [box.key])
    assert {one.id for one in shown} == {f"r{number}" for number in range(0, 16, 2)}
    assert {one.body["tenant"] for one in shown if one.kind == "decision"} == {"a"}
    assert b'"tenant\\":\\"b' not in data
    lines = [one["line"] for one in orjson.loads(data)["lines"]]
    assert not [line for line in lines if '"tenant":"b"' in line]


async def test_an_export_finds_tenants_below_who(box: LogBox) -> None:
    log = await box.open()
    for tenant in ("a", "b"):
        await box.request(log, Interned({"who": {"tenant": tenant}}))
    await log.close()
    folder = Folder(box.folder).log("eu-1")
    shown = verify_bundle(export_tenant(folder, "b", published(folder)[-1]).to_json(), [box.key])
    assert [one.id for one in shown] == ["r1", "r1"]


def test_what_is_not_covered_or_not_there_is_not_proved(folder: LogFolder) -> None:
    first, *_, last = published(folder)
    with pytest.raises(NotInLog, match="yet"):
        prove_request(folder, "r15", first)
    with pytest.raises(NotInLog, match="no such"):
        prove_request(folder, "r99", last)


def test_a_flipped_byte_anywhere_that_matters_is_refused(folder: LogFolder, box: LogBox) -> None:
    data = orjson.dumps(orjson.loads(prove_request(folder, "r3", published(folder)[-1]).to_json()))
    truth, random = verify_bundle(data, [box.key]), Random(7)
    for _ in range(400):
        altered = bytearray(data)
        altered[random.randrange(len(data))] ^= 1 << random.randrange(8)
        with suppress(ProofRefused):
            assert verify_bundle(bytes(altered), [box.key]) == truth  # e.g. hex in upper case


@pytest.mark.parametrize(
    "change",
    [{"format": "domicile-bundle/2"}, {"log": "us-1"}, {"checkpoint": 5}, {"checkpoint": ""},
     {"lines": []}, {"lines": 5}, {"lines": [5]},
     {"lines": [{"index": "1", "line": "", "path": []}]}],
)  # fmt: skip
def test_other_forms_are_refused(folder: LogFolder, box: LogBox, change: dict[str, object]) -> None:
    bundle = orjson.loads(prove_request(folder, "r3", published(folder)[-1]).to_json())
    with pytest.raises(ProofRefused):
        verify_bundle(orjson.dumps({**bundle, **change}), [box.key])


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (b"[]", "not of the form"),
        (b"null", "not of the form"),
        (b"{}", "it has no `format`"),
        (b'{"format": "domicile-bundle/1"}', "it has no `checkpoint`"),
    ],
)
def test_what_is_no_bundle_is_told_in_words(data: bytes, said: str) -> None:
    with pytest.raises(ProofRefused, match=f"the bundle can't be read: .*{said}"):
        verify_bundle(data, [])


@pytest.mark.parametrize(
    ("change", "said"), [({"old": 1}, "not of the form"), ({"proof": None}, "not of the form")]
)
def test_what_is_no_growth_proof_is_told_in_words(
    folder: LogFolder, box: LogBox, change: dict[str, object], said: str
) -> None:
    heads = published(folder)
    proof = orjson.loads(prove_growth(folder, heads[0], heads[-1]))
    with pytest.raises(ProofRefused, match=f"the growth proof can't be read: .*{said}"):
        verify_growth(orjson.dumps({**proof, **change}), [box.key])
    del proof["old"]
    with pytest.raises(ProofRefused, match="it has no `old`"):
        verify_growth(orjson.dumps(proof), [box.key])


def test_a_bundle_without_its_interned_values_is_refused(folder: LogFolder, box: LogBox) -> None:
    bundle = orjson.loads(prove_request(folder, "r3", published(folder)[-1]).to_json())
    bundle["lines"] = [one for one in bundle["lines"] if '"intern"' not in one["line"]]
    with pytest.raises(ProofRefused, match="intern"):
        verify_bundle(orjson.dumps(bundle), [box.key])


def test_an_interned_value_can_not_pose_as_another(box: LogBox) -> None:
    """Signed and in the tree, but at another index than it says."""
    nonce, signer = b"A" * 22, load_signer(box.key_file, "eu-1")
    entry = Entry("decision", "r1", 1.0, {}, Interned({"tenant": "a"}))
    for stated in (0, 5):
        lines = [
            intern_line(stated, Interned({"tenant": "a"}), nonce),
            entry_line(entry, nonce, lambda _: 0, stand_in(lambda _: 0)),
        ]
        tree = LeafTree.of(b"".join(map(leaf_hash, lines)))
        proved = [ProvedLine(at, line, tree.inclusion(at, 2)) for at, line in enumerate(lines)]
        data = Bundle(signer.checkpoint(2, tree.root()), proved).to_json()
        if stated == 0:
            assert verify_bundle(data, [box.key])[0].body == {"tenant": "a"}
        else:
            with pytest.raises(ProofRefused, match="says it is at 5"):
                verify_bundle(data, [box.key])


def test_another_key_proves_nothing(folder: LogFolder, box: LogBox) -> None:
    head = published(folder)[-1]
    stranger = Signer("eu-1", Ed25519PrivateKey.from_private_bytes(bytes(32)))
    data = prove_request(folder, "r3", stranger.checkpoint(head.size, head.root)).to_json()
    with pytest.raises(ProofRefused, match="no known key"):
        verify_bundle(data, [box.key])
    assert verify_bundle(data, [stranger.public])


def test_growth_between_any_two_checkpoints(folder: LogFolder, box: LogBox) -> None:
    heads = published(folder)
    for old in heads:
        data = prove_growth(folder, old, heads[-1])
        assert verify_growth(data, [box.key]) == (old, heads[-1])
    with pytest.raises(NotInLog):
        prove_growth(folder, heads[-1], heads[0])
    forked = Signer("eu-1", Ed25519PrivateKey.from_private_bytes(bytes(32)))
    wrong = forked.checkpoint(heads[0].size, bytes(32))
    with pytest.raises(ProofRefused, match="begin with"):
        verify_growth(prove_growth(folder, wrong, heads[-1]), [box.key, forked.public])
    with pytest.raises(ProofRefused, match="no known key"):
        verify_growth(prove_growth(folder, wrong, heads[-1]), [box.key])
    good = orjson.loads(prove_growth(folder, heads[0], heads[-1]))
    for proof in (False, [], [one.upper() for one in good["proof"]], [*good["proof"], "00" * 32]):
        with pytest.raises(ProofRefused):
            verify_growth(orjson.dumps({**good, "proof": proof}), [box.key])
    for data in (b"", b"[]", b"{}", b'{"format":1}'):
        with pytest.raises(ProofRefused):
            verify_growth(data, [box.key])


def run(bundle: Path, key: Path) -> subprocess.CompletedProcess[str]:
    program = [sys.executable, "-I", str(VERIFIER), str(bundle), str(key)]
    return subprocess.run(program, capture_output=True, text=True, check=False, timeout=60)


def box_key_pem(file: Path) -> str:
    public = read_private_key(file).public_key()
    return public.public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo).decode()


@pytest.mark.parametrize("form", ["pem", "vkey"])
def test_the_stand_alone_verifier_knows_certificates(
    folder: LogFolder, tmp_path: Path, form: str
) -> None:
    """Of a lasting key of P-256, as KMS has it, over a key that signs for a day."""
    service, bundle, key = Service(), tmp_path / "bundle.json", tmp_path / "lasting.pem"
    head, entropy = published(folder)[-1], Random(5).randbytes

    def signed(at: float) -> None:
        signer = Signing("eu-1", service, entropy, at).signer
        proof = prove_request(folder, "r3", signer.checkpoint(head.size, head.root))
        bundle.write_bytes(proof.to_json())

    public = service.key.public_key()
    pem = public.public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo).decode()
    key.write_text(pem if form == "pem" else service.public().vkey("eu-1"))
    assert read_public_key(key.read_text()) == service.public()
    signed(START)
    assert run(bundle, key).returncode == 0
    signed(START - 2 * LIFETIME)
    assert "had ended before" in run(bundle, key).stderr
    signed(START)
    other = Service(ec.derive_private_key(8, ec.SECP256R1())).public()
    key.write_text(other.vkey("eu-1"))
    assert "not signed by this key" in run(bundle, key).stderr


def test_the_stand_alone_verifier_agrees(folder: LogFolder, tmp_path: Path) -> None:
    assert len(VERIFIER.read_text().splitlines()) <= 100
    bundle, key = tmp_path / "bundle.json", tmp_path / "public.vkey"
    bundle.write_bytes(prove_request(folder, "r3", published(folder)[-1]).to_json())
    result = run(bundle, key)
    assert result.returncode == 0, result.stderr
    decision, outcome = (orjson.loads(line) for line in result.stdout.splitlines())
    assert (decision["b"]["tenant"], outcome["k"]) == ("b", "outcome")
    good = bundle.read_text()
    for old, new in (
        ('\\"score\\":17', '\\"score\\":18'), ('"index": ', '"index": 1'), ("eu-1\\n", "eu-2\\n"),
        ('"format": "domicile-bundle/1"', '"format": "other"'),
    ):  # fmt: skip
        assert old in good
        bundle.write_text(good.replace(old, new, 1))
        assert run(bundle, key).returncode == 1
    for point in (box_key_pem(folder.path.parents[1] / "log.key"), key.read_text()):
        bundle.write_text(good)
        key.write_text(point)
        assert run(bundle, key).returncode == 0
    key.write_text(Signer("eu-1", Ed25519PrivateKey.generate()).public.vkey("eu-1"))
    assert "not signed by this key" in run(bundle, key).stderr
