"""`domicile serve`, as a program of its own."""

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from urllib.request import urlopen

import pytest

from tests.router.cli.conftest import START, Domicile, Serving


def test_it_serves_until_it_is_told_to_stop(serving: Serving) -> None:
    assert b'"assistant"' in serving.get("/v1/models")
    assert serving.stop() == 0
    assert serving.running.stderr is not None
    assert "serving from" in serving.running.stderr.read()


@pytest.mark.parametrize("workers", [1, 2])
def test_the_line_it_begins_with_is_true(
    domicile: Domicile, tmp_path: Path, free_port: Callable[[], int], workers: int
) -> None:
    domicile("init", tmp_path)
    config, ports = tmp_path / "domicile.yaml", (free_port(), free_port())
    text = config.read_text().replace(":8080", f":{ports[0]}").replace(":9090", f":{ports[1]}")
    config.write_text(text)
    words = [sys.executable, "-c", START, "serve", "--config", str(config)]
    words += ["--workers", str(workers)]
    with subprocess.Popen(words, stderr=subprocess.PIPE, text=True) as running:
        try:
            assert running.stderr is not None
            assert "serving from" in running.stderr.readline()
            with urlopen(f"http://127.0.0.1:{ports[0]}/readyz", timeout=5) as answer:
                assert answer.status == 200
        finally:
            running.terminate()
            running.wait(30)


def test_what_it_cant_start_with_is_one_line(program: Domicile, serving: Serving) -> None:
    serving.get("/healthz")
    second = program("serve", "--config", serving.config)
    assert second.code == 1, "the first one holds the log and the ports"
    (line,) = second.err.splitlines()
    assert line.startswith("error: ")


def test_without_a_configuration_it_says_how_to_make_one(
    program: Domicile, serving: Serving
) -> None:
    ran = program("serve", "--config", serving.root / "none.yaml")
    assert ran.code == 1
    assert "`domicile init` writes one" in ran.err
