"""Compliance keys sign whom TLS trusts as well."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from policies.gathered import PolicyFile
from policies.signatures import require_signed, sign
from regions.model import Endpoint
from router.config import ConfigError
from router.settings import loading
from router.settings.loading import load_snapshot, read_files
from router.settings.secrets import resolve
from router.settings.signing import require_same, signed_files
from router.transport.messages import Tls
from tests.cases.built import BASELINE, ENVIRONMENT, MAIN, Files, now
from tests.certificates import Paper

OWN, OTHER = Paper.authority("own"), Paper.authority("other")
KEY = Ed25519PrivateKey.generate()


def files() -> Files:
    public = b64encode(KEY.public_key().public_bytes_raw()).decode()
    said = BASELINE.replace('url: "http://fra1"', 'url: "https://fra1", ca: "file:tls/ca.pem"')
    signed = MAIN.replace("rules: [rules.yaml]", "rules: [rules.yaml], signed_by: [file:dpo.pub]")
    assert (said, signed) != (BASELINE, MAIN)
    return Files(main=signed, baseline=said, environment={**ENVIRONMENT, "PUBLIC": public})


def folder(path: Path) -> Path:
    made = files()
    main = made.write(path)
    (path / "dpo.pub").write_text(made.environment["PUBLIC"])
    (path / "tls").mkdir()
    (path / "tls" / "ca.pem").write_text(OWN.pem)
    (path / "dpo.sig").write_bytes(
        sign(signed_files(read_files(["baseline.yaml"], path), path), KEY)
    )
    return main


def test_other_authorities_need_another_signature(tmp_path: Path) -> None:
    main, there = folder(tmp_path), tmp_path / "tls" / "ca.pem"
    first = load_snapshot(main, ENVIRONMENT, now())
    there.write_text(f"# said of it\n{OWN.pem}\n")  # only certificates count
    assert load_snapshot(main, ENVIRONMENT, now()).digest == first.digest
    for content in (OTHER.pem, OWN.pem + OTHER.pem):
        there.write_text(content)
        with pytest.raises(ConfigError, match="sign it as it is now"):
            load_snapshot(main, ENVIRONMENT, now())
    found = signed_files(read_files(["baseline.yaml"], tmp_path), tmp_path)
    (tmp_path / "dpo.sig").write_bytes(sign(found, KEY))
    assert load_snapshot(main, ENVIRONMENT, now()).digest != first.digest


def test_a_signature_over_the_baseline_alone_is_none(tmp_path: Path) -> None:
    main = folder(tmp_path)
    (tmp_path / "dpo.sig").write_bytes(sign(read_files(["baseline.yaml"], tmp_path), KEY))
    with pytest.raises(ConfigError, match="has 0"):
        load_snapshot(main, ENVIRONMENT, now())


def test_what_is_named_twice_is_signed_once_and_what_names_none_adds_none(tmp_path: Path) -> None:
    (tmp_path / "ca.pem").write_text(OWN.pem)
    twice = b"endpoints: {a: {ca: 'file:ca.pem'}, b: {ca: 'file:ca.pem'}, c: {url: x}, d: []}"
    both = [PolicyFile("a.yaml", twice), PolicyFile("b.yaml", b"endpoints: []")]
    assert signed_files(both, tmp_path) == [*both, PolicyFile("ca.pem", OWN.pem.encode())]
    with pytest.raises(ConfigError, match="can't read"):
        signed_files([PolicyFile("a.yaml", b"endpoints: {a: {ca: 'file:none.pem'}}")], tmp_path)


def test_what_is_exchanged_between_two_looks_is_refused() -> None:
    there = Endpoint("e", "vllm", "self", "m", settings={"ca": "file:ca.pem"})
    files = [PolicyFile("ca.pem", OWN.pem.encode())]
    require_same(files, {"e": there}, {"e": Tls(OWN.pem)})
    require_same(files, {"e": replace(there, settings={})}, {"e": Tls(name="n")})
    with pytest.raises(ConfigError, match="changed while it was read"):
        require_same(files, {"e": there}, {"e": Tls(OTHER.pem)})


def test_authorities_exchanged_once_their_signature_was_found_good_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What was signed is compared with what is trusted, not with what lies there by then."""
    main = folder(tmp_path)
    real = require_signed

    def exchanged(*given: object) -> tuple[str, ...]:
        signers = real(*given)  # type: ignore[arg-type]
        (tmp_path / "tls" / "ca.pem").write_text(OTHER.pem)
        return signers

    monkeypatch.setattr(loading, "require_signed", exchanged)
    with pytest.raises(ConfigError, match="changed while it was read"):
        load_snapshot(main, ENVIRONMENT, now())


def test_the_keys_that_a_snapshot_names_are_those_that_it_was_checked_by(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They were read three times for it: by what was named at last nothing had been checked."""
    main, stranger = folder(tmp_path), Ed25519PrivateKey.generate()
    whole = load_snapshot(main, ENVIRONMENT, now())

    def changing(reference: str, environment: Mapping[str, str], base: Path) -> bytes:
        found = resolve(reference, environment, base)
        if reference == "file:dpo.pub":
            public = stranger.public_key().public_bytes_raw()
            (base / "dpo.pub").write_bytes(b64encode(public))
        return found

    monkeypatch.setattr(loading, "resolve", changing)
    assert load_snapshot(main, ENVIRONMENT, now()).content == whole.content
    with pytest.raises(ConfigError, match="has 0"):
        load_snapshot(main, ENVIRONMENT, now())
