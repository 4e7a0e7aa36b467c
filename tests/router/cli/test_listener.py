from pathlib import Path

import pytest

from router.cli.listener import post, reached
from router.config import ConfigError, Unanswered
from tests.router.folders import sound


def test_a_url_and_a_key_that_are_given_are_taken(tmp_path: Path) -> None:
    key = tmp_path / "key"
    key.write_text("sk-1\n")
    assert reached(None, "http://127.0.0.1:1", key) == ("http://127.0.0.1:1", "sk-1")


def test_a_router_that_never_ran_has_no_token(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"admin\.token"):
        reached(str(sound(tmp_path).config), None, None)


@pytest.mark.parametrize("url", ["junk", "ftp://127.0.0.1:1", "http://127.0.0.1:x", "http://a b"])
async def test_what_is_no_url_is_told(url: str) -> None:
    with pytest.raises(ConfigError, match=f"`{url}` is no URL"):
        await post(url, "key", "/erase", {})


async def test_nobody_listening_is_told_apart_from_a_refusal() -> None:
    with pytest.raises(Unanswered, match="does not answer"):
        await post("http://127.0.0.1:1", "key", "/erase", {})
