"""Authorities and certificates that endpoints name: read, refused with their place, told early."""

from __future__ import annotations

import json
import pickle
import ssl
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

from policies.findings import Severity
from regions.document import DocumentErrors
from router.config import ConfigError
from router.settings.authorities import authorities
from router.settings.checking import check
from router.settings.loading import load_snapshot
from router.settings.reload_files import referred
from router.transport.messages import Tls
from tests.cases.built import BASELINE, ENVIRONMENT, MAIN, Files
from tests.certificates import Days, Paper
from tests.router.folders import sound
from tests.router.reloading import watched

URL = 'url: "http://fra1"'
OWN = Paper.authority("own")
NEXT = Paper.authority("next")
DAY = 86_400.0


def naming(more: str, url: str = 'url: "https://fra1"') -> Files:
    return Files(baseline=BASELINE.replace(URL, f"{url}, {more}"))


def test_only_the_certificates_of_a_file_count(tmp_path: Path) -> None:
    file = tmp_path / "ca.pem"
    file.write_bytes(f"# für {OWN.secret}\n{OWN.pem}\nund\n{NEXT.pem}".encode())
    assert authorities(file) == OWN.pem + NEXT.pem


def test_a_serial_number_of_zero_is_taken_as_openssl_takes_it(tmp_path: Path) -> None:
    known = OWN.certificate
    made = (
        x509.CertificateBuilder()
        .subject_name(known.subject)
        .issuer_name(known.issuer)
        .public_key(known.public_key())
        .serial_number(1)
        .not_valid_before(known.not_valid_before_utc)
        .not_valid_after(known.not_valid_after_utc)
        .sign(OWN.key, hashes.SHA256())
        .public_bytes(Encoding.DER)
    )
    version_and_serial = b"\xa0\x03\x02\x01\x02\x02\x01"
    assert version_and_serial + b"\x01" in made
    odd = made.replace(version_and_serial + b"\x01", version_and_serial + b"\x00", 1)
    (tmp_path / "ca.pem").write_text(ssl.DER_cert_to_PEM_cert(odd))
    assert authorities(tmp_path / "ca.pem").count("BEGIN CERTIFICATE") == 1


def test_they_come_with_the_snapshot(tmp_path: Path) -> None:
    (tmp_path / "ca.pem").write_text(OWN.pem)
    shot = naming('ca: "file:ca.pem"').load(tmp_path)
    assert shot.trust == {"fra": Tls(OWN.pem)}
    assert shot.targets["fra"]["fra"].tls == Tls(OWN.pem)
    assert shot.targets["par"]["par"].tls is None
    assert tmp_path / "ca.pem" in set(referred(tmp_path / "domicile.yaml"))
    assert "CERTIFICATE" not in repr(shot) + shot.content.decode()
    # As workers are sent it.
    assert pickle.loads(pickle.dumps(shot.targets)) == shot.targets


def test_the_digest_covers_whom_it_trusts_and_what_it_shows(tmp_path: Path) -> None:
    paper, renewed = OWN.signed("router"), OWN.signed("router")
    said = naming('ca: "file:ca.pem", client_cert: "file:own.pem", client_key: "file:own.key"')
    digests = []
    for trusted, shown in ((OWN, paper), (NEXT, paper), (OWN, renewed), (OWN, paper)):
        (tmp_path / "ca.pem").write_text(trusted.pem)
        (tmp_path / "own.pem").write_text(shown.pem + OWN.pem)
        (tmp_path / "own.key").write_text(shown.secret)
        shot = said.load(tmp_path)
        digests.append(shot.digest)
        assert json.loads(shot.content)["trust"] == {
            "fra": {"authorities": [print_of(trusted)], "certificate": print_of(shown)}
        }
        assert "PRIVATE" not in shot.content.decode()
    assert digests[0] == digests[3]
    assert len(set(digests)) == 3
    assert "trust" not in json.loads(Files().load(tmp_path).content)


def print_of(paper: Paper) -> str:
    return paper.certificate.fingerprint(hashes.SHA256()).hex()


@pytest.mark.parametrize(
    ("content", "told"),
    [
        (None, "can't read `{}`: No such file or directory"),
        (b"", "`{}` holds no certificate in PEM"),
        (OWN.secret.encode(), "`{}` holds no certificate in PEM"),
        (OWN.certificate.public_bytes, "`{}` holds no certificate in PEM"),
        (OWN.pem[:200].encode(), "`{}` holds a certificate that can't be read"),
        (OWN.pem.replace("M", "N").encode(), "`{}` holds a certificate that can't be read"),
    ],
)  # fmt: skip
def test_a_file_that_can_t_be_used_is_told_with_its_place(
    tmp_path: Path, content: object, told: str
) -> None:
    file = tmp_path / "ca.pem"
    if callable(content):
        from cryptography.hazmat.primitives.serialization import Encoding

        content = content(Encoding.DER)
    if isinstance(content, bytes):
        file.write_bytes(content)
    path = naming('ca: "file:ca.pem"').write(tmp_path)
    line = next(n for n, text in enumerate(BASELINE.splitlines(), 1) if URL in text)
    with pytest.raises(ConfigError) as caught:
        load_snapshot(path, ENVIRONMENT, time.time())
    message = str(caught.value)
    assert message.startswith(f"baseline.yaml:{line}:")
    assert message.endswith(f": endpoint `fra`: {told.format(file)}")
    assert check(path, ENVIRONMENT, time.time()).problems == (message,)


def test_a_folder_or_a_device_is_no_file_of_authorities(tmp_path: Path) -> None:
    for path in (tmp_path, Path("/dev/zero")):
        with pytest.raises(ConfigError, match="can't read"):
            authorities(path)


@pytest.mark.parametrize(
    ("url", "more", "told"),
    [
        ('url: "http://fra1"', 'ca: "file:ca.pem"', "none of its URLs is `https://`"),
        ('replicas: {dns: "fra:80"}', 'ca: "file:ca.pem"', "say `tls: NAME`"),
        ('replicas: {kubernetes: "llm/large"}', 'ca: "file:ca.pem"', "say `tls: NAME`"),
        ('replicas: {urls: "http://fra", tls: fra.internal}', "context: 9", "of TLS"),
        ('url: "https://fra1"', 'ca: "ca.pem"', "file:"),
        ('url: "https://fra1"', 'ca: "env:CA"', "file:"),
        ('url: "https://fra1"', 'client_cert: "file:a.pem"', "needs its `client_key`"),
        ('url: "https://fra1"', 'client_key: "file:a.pem"', "needs its `client_cert`"),
        ('replicas: {dns: "fra:80", tls: "https://fra"}', "context: 9", "tls"),
        ('replicas: {dns: "fra:80", tls: llm..fra}', "context: 9", "tls"),
        (f'replicas: {{dns: "fra:80", tls: {"x" * 64}.fra}}', "context: 9", "tls"),
        (f'replicas: {{dns: "fra:80", tls: {"x.y" * 85}}}', "context: 9", "tls"),
    ],
)
def test_what_would_not_be_read_or_says_nothing_is_refused(
    tmp_path: Path, url: str, more: str, told: str
) -> None:
    (tmp_path / "ca.pem").write_text(OWN.pem)
    with pytest.raises(DocumentErrors, match=told):
        naming(more, url).load(tmp_path)


@pytest.mark.parametrize(
    ("url", "found", "first"),
    [
        ('replicas: {dns: "fra:80", tls: fra.internal}', "dns+tls:fra:80", "https://fra:80"),
        ("replicas: {srv: _llm._tcp.fra, tls: fra.internal}", "srv+tls:_llm._tcp.fra", None),
        ("replicas: {kubernetes: llm/large, tls: 10.0.0.1}", "kubernetes+tls:llm/large", None),
        ("replicas: {file: fleet.txt, tls: fra.internal}", "file:fleet.txt", None),
    ],
)
def test_replicas_that_are_found_speak_tls_where_that_is_said(
    tmp_path: Path, url: str, found: str, first: str | None
) -> None:
    (tmp_path / "ca.pem").write_text(OWN.pem)
    shot = naming('ca: "file:ca.pem"', url).load(tmp_path)
    name = "10.0.0.1" if "10.0.0.1" in url else "fra.internal"
    assert shot.trust["fra"] == Tls(OWN.pem, name)
    assert shot.policy.endpoints["fra"].settings["replicas"] == found
    assert shot.policy.endpoints["fra"].urls == ((first,) if first else ())


@pytest.mark.parametrize(
    ("days", "severity", "told"),
    [
        (((-9, 90),), None, ""),
        (((-9, 20),), Severity.WARNING, "its authority ends on"),
        (((-9, -1),), Severity.ERROR, "its authority ended on"),
        (((2, 90),), Severity.ERROR, "its authority is not valid before"),
        (((-9, -1), (-9, -2)), Severity.ERROR, "its authority ended on"),
        (((-9, -1), (-9, 90)), Severity.WARNING, "1 of 2 of its authorities have ended"),
        (((-9, 5), (-9, 90)), None, ""),
    ],
)
def test_the_end_of_authorities_is_told_with_its_place(
    tmp_path: Path, days: tuple[Days, ...], severity: Severity | None, told: str
) -> None:
    made = [Paper.authority(f"number {n}", one).pem for n, one in enumerate(days)]
    (tmp_path / "ca.pem").write_text("".join(made))
    found = check(naming('ca: "file:ca.pem"').write(tmp_path), ENVIRONMENT, time.time())
    mine = [one for one in found.findings if one.code == "certificate_ends"]
    assert [one.severity for one in mine] == ([] if severity is None else [severity])
    assert all("baseline.yaml:" in str(one) and told in str(one) for one in mine)
    ended = [one for one in found.problems if "certificate_ends" in one]
    assert len(ended) == (severity is Severity.ERROR)
    # It does not keep a router from its start: others of its endpoints may be well.
    assert found.snapshot is not None


def test_our_own_certificate_comes_with_its_key(tmp_path: Path) -> None:
    paper = OWN.signed("router")
    (tmp_path / "own.pem").write_text(paper.pem + OWN.pem)
    (tmp_path / "own.key").write_text(paper.secret)
    shot = naming('client_cert: "file:own.pem", client_key: "file:own.key"').load(tmp_path)
    assert shot.trust["fra"] == Tls(identity=paper.secret + paper.pem + OWN.pem)
    assert "PRIVATE" not in repr(shot) + shot.content.decode()


@pytest.mark.parametrize(
    ("key", "told"),
    [
        ("other", "is not that of the first certificate"),
        ("none", "holds no private key in PEM"),
        ("encrypted", "is encrypted"),
    ],
)
def test_a_key_that_is_not_its_certificate_s_is_refused(
    tmp_path: Path, key: str, told: str
) -> None:
    from cryptography.hazmat.primitives import serialization

    paper = OWN.signed("router")
    locked = paper.key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.BestAvailableEncryption(b"word"),
    ).decode()
    secrets = {"other": OWN.secret, "none": paper.pem, "encrypted": locked}
    (tmp_path / "own.pem").write_text(paper.pem)
    (tmp_path / "own.key").write_text(secrets[key])
    with pytest.raises(ConfigError, match=told) as caught:
        naming('client_cert: "file:own.pem", client_key: "file:own.key"').load(tmp_path)
    assert "PRIVATE" not in str(caught.value)


@pytest.mark.parametrize("content", ["", None, OWN.pem])
def test_a_missing_file_of_the_system_s_authorities_is_told(
    tmp_path: Path, content: str | None
) -> None:
    file = tmp_path / "roots.pem"
    if content is not None:
        file.write_text(content)
    environment = {**ENVIRONMENT, "SSL_CERT_FILE": str(file)}
    found = check(Files().write(tmp_path), environment, time.time())
    told = [str(one) for one in found.findings if one.code == "roots_missing"]
    assert len(told) == (content != OWN.pem)
    assert all(str(file) in one for one in told)


def test_the_authorities_of_an_export_are_checked(tmp_path: Path) -> None:
    exports = (
        'exports: [{syslog: "tls://127.0.0.1:6514", region: self:fra1, format: cef, ca: x.pem}]'
    )
    main = MAIN.replace('"file:log.key"}', f'"file:log.key", {exports}}}')
    path = Files(main=main).write(tmp_path)
    told = f"can't read `{tmp_path / 'x.pem'}`: No such file or directory"
    assert told in check(path, ENVIRONMENT, time.time()).problems
    (tmp_path / "x.pem").write_text(OWN.pem)
    assert told not in check(path, ENVIRONMENT, time.time()).problems


def test_a_certificate_that_openssl_does_not_show_is_refused(tmp_path: Path) -> None:
    """Its key is too short: each connection would fail, and the endpoint seem to be at fault."""
    key, name, today = rsa.generate_private_key(65537, 1024), x509.Name([]), datetime.now(UTC)
    short = (
        x509.CertificateBuilder(name, name, key.public_key(), 7)
        .not_valid_before(today - timedelta(days=1))
        .not_valid_after(today + timedelta(days=90))
        .sign(key, hashes.SHA256())
    )
    form = PrivateFormat.PKCS8, NoEncryption()
    (tmp_path / "own.pem").write_bytes(short.public_bytes(Encoding.PEM))
    (tmp_path / "own.key").write_bytes(key.private_bytes(Encoding.PEM, *form))
    with pytest.raises(ConfigError, match=r"baseline.yaml:.*own.pem`: ee key too small"):
        naming('client_cert: "file:own.pem", client_key: "file:own.key"').load(tmp_path)


async def test_renewed_authorities_serve_though_no_setting_changed(tmp_path: Path) -> None:
    box = sound(tmp_path)
    file, baseline = tmp_path / "ca.pem", box.root / "baseline" / "main.yaml"
    file.write_text(OWN.pem)
    text = baseline.read_text().replace(
        'url: "http://127.0.0.1:2"', 'url: "https://127.0.0.1:2", ca: "file:ca.pem"'
    )
    baseline.write_text(text)
    async with watched(box) as world:
        digest = world.router.live.snapshot.digest
        file.write_text(OWN.pem + NEXT.pem)
        await world.settle()
        live = world.router.live
        assert live.snapshot.trust["fra-large"] == Tls(OWN.pem + NEXT.pem)
        assert live.snapshot.digest != digest
        file.write_text("")
        await world.settle()
        assert "holds no certificate in PEM" in live.files.refused
        assert live.snapshot.trust["fra-large"] == Tls(OWN.pem + NEXT.pem)
        file.write_text(NEXT.pem)
        await world.settle()
        assert live.snapshot.trust["fra-large"] == Tls(NEXT.pem)


async def test_what_ended_by_itself_keeps_no_change_from_use_and_is_not_taken_up_anew(
    tmp_path: Path,
) -> None:
    box = sound(tmp_path)
    ended = Paper.authority("ended", (-4000, -3000))
    file, baseline = tmp_path / "ca.pem", box.root / "baseline" / "main.yaml"
    file.write_text(ended.pem)
    text = baseline.read_text().replace(
        'url: "http://127.0.0.1:2"', 'url: "https://127.0.0.1:2", ca: "file:ca.pem"'
    )
    baseline.write_text("# a comment\n" + text)
    async with watched(box) as world:
        live = world.router.live
        world.change("rules/example.yaml", "red zone", "red area")
        world.change("baseline/main.yaml", "# a comment\n", "")
        before = live.snapshot.policy.digest
        await world.settle()
        assert live.snapshot.policy.digest != before
        file.write_text(Paper.authority("ended too", (-4000, -2000)).pem)
        await world.settle()
        assert "certificate_ends" in live.files.refused
