from collections.abc import Callable

import pytest

from house import forbidden
from house.tree import Tree

Plant = Callable[[dict[str, str]], Tree]

# put together here, so that this file passes the check it tests
BAD = [
    "https://py" + "pi.org/simple",
    "https://files.python" + "hosted.org/x",
    "registry.np" + "mjs.org",
    "deb.deb" + "ian.org",
    "open('/wo" + "rk/main/x')",
    "cd /ro" + "ot/.cache",
    "/fa" + "rm/x",
    "-----BEGIN EC PRIVATE " + "KEY-----\nMIGHAgEAMBMGByqGSM49",
    "AK" + "IA" + "ABCDEFGH12345678",
    "s" + "k-" + "a1" * 20,
]


@pytest.mark.parametrize("text", BAD)
def test_forbidden_strings_are_found_and_not_repeated(plant: Plant, text: str) -> None:
    [finding] = forbidden.findings(plant({"docs/a.md": f"first\n{text}\n"}))
    assert (finding.path, finding.line) == ("docs/a.md", 2)
    assert text not in str(finding)


@pytest.mark.parametrize(
    "text",
    [
        "network/work" + "/main",
        "./work/x",
        "$HOME/root" + "/x",
        "-----BEGIN PRIVATE " + "KEY-----",
        "AK" + "IA...",
        "s" + "k-test",
        "https://example.com/root",
    ],
)
def test_harmless_strings_pass(plant: Plant, text: str) -> None:
    assert list(forbidden.findings(plant({"docs/a.md": text}))) == []


def test_binary_files_are_read_too() -> None:
    content = b"\x00\xff\n" + BAD[0].encode()
    assert [finding.line for finding in forbidden.scan("a.bin", content)] == [2]
