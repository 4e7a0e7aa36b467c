"""Errors that a user can mend are one line; errors of ours are not hidden."""

import pytest

from regions.places import PlaceError
from router.audit.errors import AuditError
from router.cli.failing import answering, failing
from router.config import ConfigError


@pytest.mark.parametrize("kind", [ConfigError, PlaceError, AuditError])
def test_one_line_and_exit_code_one(
    kind: type[Exception], capsys: pytest.CaptureFixture[str]
) -> None:
    @failing
    def fails() -> None:
        raise kind("what is wrong")

    with pytest.raises(SystemExit) as end:
        fails()
    assert end.value.code == 1
    assert capsys.readouterr().err == "error: what is wrong\n"


@pytest.mark.parametrize(
    ("error", "told"),
    [
        (PermissionError(13, "Permission denied", "logs/eu-1"), "`logs/eu-1`: Permission denied"),
        (OSError(28, "No space left on device"), "[Errno 28] No space left on device"),
    ],
)
def test_what_the_system_refuses_is_one_line(
    error: OSError, told: str, capsys: pytest.CaptureFixture[str]
) -> None:
    @failing
    def refused() -> None:
        raise error

    with pytest.raises(SystemExit) as end:
        refused()
    assert end.value.code == 1
    assert capsys.readouterr().err == f"error: {told}\n"


def test_a_verdict_that_cannot_be_given_is_none(capsys: pytest.CaptureFixture[str]) -> None:
    @answering
    def refused() -> None:
        raise PermissionError(13, "Permission denied", "logs/eu-1")

    @answering
    def fails() -> None:
        raise AuditError("what is wrong")

    for command, code in ((refused, 2), (fails, 1)):
        with pytest.raises(SystemExit) as end:
            command()
        assert end.value.code == code
        assert capsys.readouterr().err.startswith("error: ")


def test_who_reads_no_further_is_clicks_to_tell() -> None:
    @failing
    def broken() -> None:
        raise BrokenPipeError

    with pytest.raises(BrokenPipeError):
        broken()


def test_other_errors_pass() -> None:
    @failing
    def broken() -> None:
        raise KeyError("ours")

    with pytest.raises(KeyError):
        broken()


def test_what_a_command_gives_is_given() -> None:
    assert failing(lambda: 7)() == 7
