"""`domicile init`: what it writes is accepted at once, and it overwrites nothing."""

import stat
from pathlib import Path

import pytest

from tests.router.cli.conftest import Domicile, Serving

FILES = {
    "domicile.yaml", "baseline/main.yaml", "rules/example.yaml", "cases/example.cases.yaml",
    "keys.yaml", "log.key",
}  # fmt: skip


def files(folder: Path) -> dict[str, bytes]:
    found = (path for path in folder.rglob("*") if path.is_file())
    return {str(path.relative_to(folder)): path.read_bytes() for path in found}


def test_check_accepts_what_init_wrote(domicile: Domicile, tmp_path: Path) -> None:
    ran = domicile("init", tmp_path / "new")
    assert ran.code == 0
    assert set(files(tmp_path / "new")) == FILES
    checked = domicile("check", "--config", tmp_path / "new" / "domicile.yaml")
    assert (checked.code, checked.err) == (0, "")


def test_the_key_is_shown_once_and_never_stored(domicile: Domicile, tmp_path: Path) -> None:
    ran = domicile("init", tmp_path / "new", "--json")
    key = str(ran.json["key"]).encode()
    assert key.startswith(b"dom-")
    assert not any(key in content for content in files(tmp_path / "new").values())
    again = domicile("init", tmp_path / "other", "--json").json["key"]
    assert again != ran.json["key"]


def test_the_signing_key_is_its_owners_only(domicile: Domicile, tmp_path: Path) -> None:
    domicile("init", tmp_path / "new")
    mode = stat.S_IMODE((tmp_path / "new" / "log.key").stat().st_mode)
    assert mode == 0o600


@pytest.mark.parametrize("name", sorted(FILES))
@pytest.mark.parametrize("force", [(), ("--force",)])
def test_nothing_is_overwritten(
    domicile: Domicile, tmp_path: Path, name: str, force: tuple[str, ...]
) -> None:
    (tmp_path / name).parent.mkdir(exist_ok=True)
    (tmp_path / name).write_text("mine")
    ran = domicile("init", tmp_path, *force)
    assert ran.code == 1
    assert name in ran.err
    assert files(tmp_path) == {name: b"mine"}


def test_a_link_to_nowhere_is_there_too(domicile: Domicile, tmp_path: Path) -> None:
    (tmp_path / "keys.yaml").symlink_to(tmp_path / "elsewhere")
    assert domicile("init", tmp_path, "--force").code == 1
    assert not (tmp_path / "elsewhere").exists()


def test_a_folder_with_other_files_needs_force(domicile: Domicile, tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("mine")
    ran = domicile("init", tmp_path)
    assert ran.code == 1
    assert "--force" in ran.err
    assert domicile("init", tmp_path, "--force").code == 0
    assert set(files(tmp_path)) == FILES | {"notes.txt"}


def test_the_current_folder_is_the_default(
    domicile: Domicile, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert domicile("init").code == 0
    assert domicile("check").code == 0
    assert set(files(tmp_path)) == FILES


def test_a_folder_that_cant_be_written_says_so(domicile: Domicile, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    ran = domicile("init", tmp_path / "file" / "below")
    assert ran.code == 1
    assert "can't write" in ran.err


def test_serve_accepts_what_init_wrote(serving: Serving, domicile: Domicile) -> None:
    assert b"assistant" in serving.get("/v1/models")
    assert serving.stop() == 0
    log, key = serving.root / "log", serving.root / "log.key"
    assert domicile("audit", "verify", log, "--key", key).code == 0
