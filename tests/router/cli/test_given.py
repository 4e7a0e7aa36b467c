"""Files that commands are given, and what is said of those that can't be used."""

from pathlib import Path

import pytest

from router.cli.given import policy, policy_files, private_key, read_file, writing
from router.config import ConfigError
from tests.router.audit.logbox import LogBox
from tests.router.cli.conftest import Domicile


def test_a_file_that_can_not_be_read_is_told_in_a_line(tmp_path: Path) -> None:
    (tmp_path / "here").write_bytes(b"12345")
    assert read_file(tmp_path / "here") == b"12345"
    for path, most, said in (
        (tmp_path / "gone", 5, "No such file"),
        (tmp_path / "here", 4, "over 4 bytes"),
        (Path("/dev/zero"), 5, "a device"),
    ):
        with pytest.raises(ConfigError, match=rf"can't read `{path}`: .*{said}"):
            read_file(path, most)


def test_a_file_that_can_not_be_written_is_told(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="can't write"), writing(tmp_path):
        tmp_path.write_text("")
    with pytest.raises(OSError, match="Is a directory"), writing(None):
        tmp_path.write_text("")


def test_only_a_private_key_is_one(tmp_path: Path) -> None:
    (tmp_path / "key").write_text("no key")
    with pytest.raises(ConfigError, match="no unencrypted private key"):
        private_key(tmp_path / "key")


def test_the_policy_of_a_configuration(tmp_path: Path, domicile: Domicile) -> None:
    domicile("init", tmp_path)
    baseline, rules = policy_files(tmp_path / "domicile.yaml")
    assert [one.name for one in baseline] == ["baseline/main.yaml"]
    assert [one.name for one in rules] == ["rules/example.yaml"]
    assert "example" in policy(tmp_path / "domicile.yaml").policy.tenants


ENDLESS = Path("/dev/zero")


@pytest.mark.parametrize(
    ("code", "words"),
    [
        (2, ("audit", "prove", "LOGS", "eu-1/2", "--checkpoint", ENDLESS)),
        (2, ("audit", "prove-growth", "LOGS", ENDLESS)),
        (2, ("audit", "verify-bundle", ENDLESS, "--key", "PEM")),
        (2, ("audit", "verify", "LOGS", "--against", ENDLESS)),
        (2, ("audit", "verify", "LOGS", "--receipts", ENDLESS)),
        (2, ("audit", "verify", "LOGS", "--key", ENDLESS)),
        (2, ("audit", "report", "LOGS", "--period", "2026", "--json", "--against", ENDLESS)),
        (1, ("audit", "report", "LOGS", "--period", "2026", "--json", "--reconcile", ENDLESS)),
        (1, ("policy", "test", "--config", "CONFIG", ENDLESS)),
        (1, ("policy", "sign", "--config", "CONFIG", "--key", ENDLESS)),
        (1, ("regions", "accept", ENDLESS, "--key", ENDLESS)),
        (1, ("decide", "--config", "CONFIG", "--tenant", "example", "--body", ENDLESS)),
        (1, ("assess", "--litellm", ENDLESS, "--within", "EU")),
    ],
)
async def test_nothing_is_read_for_ever(
    domicile: Domicile, box: LogBox, tmp_path: Path, code: int, words: tuple[str | Path, ...]
) -> None:
    await box.refill(2)
    domicile("init", tmp_path / "made")
    (tmp_path / "key.vkey").write_text(box.key.vkey("eu-1"))
    made = {
        "LOGS": box.folder,
        "PEM": tmp_path / "key.vkey",
        "CONFIG": tmp_path / "made" / "domicile.yaml",
    }
    ran = domicile(*(made.get(str(word), word) for word in words))
    assert (ran.code, "it is a device, not a file" in ran.out + ran.err) == (code, True), ran.err
