from pathlib import Path

import pytest

from router.audit.certificate import FileAuthority
from router.audit.errors import NoteInvalid
from router.audit.settings import LogHealth, LogSettings


def test_a_path_is_a_key_in_a_file_and_anything_else_is_the_key() -> None:
    key = FileAuthority(Path("log.key"))
    assert LogSettings(Path("log"), "eu-1", key).authority is key
    assert LogSettings(Path("log"), "eu-1", Path("log.key")).authority.strength == "file"


def test_a_log_says_nothing_of_itself_when_it_is_well() -> None:
    assert LogHealth("ok").reason == ""


@pytest.mark.parametrize("name", ["", "..", "eu/1", "../eu-1", "eu 1", "x" * 129])
def test_a_log_is_named_like_one_folder(name: str) -> None:
    with pytest.raises(NoteInvalid, match="can't name a log"):
        LogSettings(Path("log"), name, Path("log.key"))
