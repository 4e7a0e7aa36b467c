from __future__ import annotations

from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from router.cli.reaching import door_options


@click.command()
@door_options
def shown(config: str | None, admin: str | None, key_file: Path | None) -> None:
    click.echo(f"{config} {admin} {key_file!r}")


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ([], "None None None\n"),
        (
            ["--config", "a.yaml", "--admin", "http://x:1", "--key-file", "key"],
            "a.yaml http://x:1 PosixPath('key')\n",
        ),
    ],
)
def test_the_three_options(given: list[str], told: str) -> None:
    assert CliRunner().invoke(shown, given).output == told


def test_a_folder_is_no_key_file(tmp_path: Path) -> None:
    assert CliRunner().invoke(shown, ["--key-file", str(tmp_path)]).exit_code == 2


def test_they_are_listed_in_the_order_in_which_one_thinks() -> None:
    text = CliRunner().invoke(shown, ["--help"]).output
    assert text.index("--config") < text.index("--admin") < text.index("--key-file")
