"""Real vLLM servers as processes: started, counted, frozen, killed.

A vLLM server is three processes: the API server, below it the engine, below that a worker. Here
only the engine and its worker are harmed, as a stuck or crashed accelerator would harm them: a
frozen engine leaves the API server's /health at 200.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import httpx
from prometheus_client.parser import text_string_to_metric_families

from tests.e2e.parts import SERVE_ENVIRONMENT, Parts

START = 240.0
"""Seconds a server may take to start: 30 on two idle cores, four times that on busy ones."""

_DROPPED = ("PYTHONPATH", "PYTHONHOME", "VIRTUAL_ENV")


@dataclass(frozen=True, slots=True)
class Engine:
    """One running server."""

    region: str
    port: int
    process: subprocess.Popen[bytes]

    @property
    def url(self) -> str:
        """Where it listens."""
        return f"http://127.0.0.1:{self.port}"

    def health(self) -> int:
        """The status of its /health."""
        return httpx.get(f"{self.url}/health", timeout=5).status_code

    def calls(self) -> int:
        """Chat requests that reached it, by its own count, whatever came of them."""
        return self._total("http_requests", handler="/v1/chat/completions")

    def served(self) -> int:
        """Requests its engine finished: `vllm:request_success_total` over all reasons."""
        return self._total("vllm:request_success")

    def freeze(self) -> None:
        """Stop engine and worker where they are; the API server goes on."""
        self._signal(signal.SIGSTOP)

    def thaw(self) -> None:
        """Let them go on."""
        self._signal(signal.SIGCONT)

    def kill(self) -> None:
        """Kill engine and worker; the API server sees it and leaves."""
        self._signal(signal.SIGKILL)

    def _signal(self, number: signal.Signals) -> None:
        found = engine_processes(self.process.pid)
        assert found, f"the server in {self.region} has no engine process"
        for pid in found:
            os.kill(pid, number)

    def _total(self, family: str, **labels: str) -> int:
        text = httpx.get(f"{self.url}/metrics", timeout=5).text
        return round(
            sum(
                sample.value
                for found in text_string_to_metric_families(text)
                if found.name == family
                for sample in found.samples
                if sample.name == f"{family}_total" and labels.items() <= sample.labels.items()
            )
        )


def engine_processes(server: int) -> list[int]:
    """The processes below an API server that call themselves engine or worker."""
    found = []
    for child in children(server):
        with contextlib.suppress(FileNotFoundError):
            if Path(f"/proc/{child}/cmdline").read_bytes().startswith(b"VLLM::"):
                found.append(child)
        found += engine_processes(child)
    return found


def children(pid: int) -> list[int]:
    """The child processes of a process, whichever of its threads made them."""
    found: list[int] = []
    for listed in Path(f"/proc/{pid}/task").glob("*/children"):
        with contextlib.suppress(FileNotFoundError, ProcessLookupError):
            found += map(int, listed.read_text().split())
    return found


@contextlib.contextmanager
def running(parts: Parts, region: str, model: Path, port: int, log: Path) -> Iterator[Engine]:
    """One server of `model` under the model's folder name, up and healthy; gone at the end."""
    environment = {k: v for k, v in os.environ.items() if k not in _DROPPED}
    command = ["nice", "-n", "2", *parts.serve(model, port, model.name)]
    with log.open("wb") as out:
        process = subprocess.Popen(
            command,
            env={**environment, **SERVE_ENVIRONMENT},
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    try:
        _wait(process, port, log)
        yield Engine(region, port, process)
    finally:
        stop(process)


def _wait(process: subprocess.Popen[bytes], port: int, log: Path) -> None:
    give_up = time.monotonic() + START
    while not _healthy(port):
        if process.poll() is not None or time.monotonic() > give_up:
            raise AssertionError(f"vLLM did not start:\n{log.read_text()[-2000:]}")
        time.sleep(0.25)


def _healthy(port: int) -> bool:
    try:
        return httpx.get(f"http://127.0.0.1:{port}/health", timeout=2).status_code == 200
    except httpx.TransportError:
        return False


def stop(process: subprocess.Popen[bytes]) -> None:
    """End the server and everything below it, frozen or not: nothing of it is worth keeping."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait(20)
