"""The README's quick start is typed as it stands, on ports of its own."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest

from tests.test_readme import blocks

RECORD = re.compile(r"x-domicile-record: local-1/\d+/[0-9a-f]{64}")


def typed(lines: list[str], ports: dict[str, int]) -> str:
    """What a reader types: the lines, with the key that was shown, once the router is up."""
    text = "\n".join(lines)
    for written, own in ports.items():
        assert written in text or written == "9090"
        text = text.replace(written, str(own))
    moved = ";".join(f"s/:{written}/:{own}/" for written, own in ports.items())
    up = f"curl -sf http://127.0.0.1:{ports['8080']}/readyz"
    for written, meant in {
        "domicile init my-router ": "domicile init my-router | tee init.txt ",
        "cd my-router": f"cd my-router; sed -i '{moved}' domicile.yaml baseline/main.yaml",
        "domicile serve &": f"domicile serve &\nuntil {up}; do sleep 0.2; done",
        "KEY=dom-…": "KEY=$(grep -o 'dom-[0-9a-f]*' ../init.txt)",
    }.items():
        assert written in text, written
        text = text.replace(written, meant)
    return text


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("curl") is None, reason="needs curl")
def test_it_goes_as_written(tmp_path: Path, free_port: Callable[[], int]) -> None:
    start, ask, verify = blocks("sh")
    assert start[0] == ". .venv/bin/activate"
    ports = {port: free_port() for port in ("8000", "8080", "9090")}
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    printed = tmp_path / "printed.txt"
    with printed.open("w") as out:
        shell = subprocess.Popen(
            ["/bin/sh", "-euc", typed([*start[1:], *ask, *verify], ports)],
            cwd=tmp_path,
            env={**os.environ, "PATH": path, "COLUMNS": "200"},
            stdout=out,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        try:
            code = shell.wait(timeout=90)
        finally:
            with suppress(ProcessLookupError):  # the servers that it left in the background
                os.killpg(shell.pid, signal.SIGTERM)
    text = printed.read_text(encoding="utf-8")
    assert code == 0, text
    head, _, rest = text.partition("HTTP/1.1 200 OK")[2].partition("\n\n")
    assert RECORD.search(head)
    assert "audit verify: ok" in rest
    assert '"endpoint": "local-model"' in rest.replace("\n", " ")
    assert (tmp_path / "my-router" / "report.html").stat().st_size > 10_000
    # And the answer that the README shows has these headers, in this order: the policy's digest
    # is of other ports here, and a record's place depends on what was logged before.
    [shown] = [lines for lines in blocks("") if lines[0].startswith("HTTP/1.1")]
    named = dict(line.split(": ") for line in shown[1:] if line != "…")
    told = dict(re.findall(r"^(x-domicile-[a-z-]+): (.*?)\s*$", head, re.MULTILINE))
    assert [one for one in told if one in named] == list(named)
    others = {"x-domicile-policy", "x-domicile-record"}
    assert {one: told[one] for one in named.keys() - others} == {
        one: named[one] for one in named.keys() - others
    }
