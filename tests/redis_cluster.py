"""A Redis cluster of three primaries; import `cluster` where it is asked for."""

from __future__ import annotations

import shutil
import socket
import subprocess
import time
from collections.abc import Callable, Iterator, Sequence

import pytest
from redis import Redis
from redis.exceptions import RedisError


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[int]:
    """The port of one of three primaries of a Redis cluster."""
    program = shutil.which("redis-server")
    if program is None:
        pytest.skip("needs redis-server")
    folder = tmp_path_factory.mktemp("cluster")
    sockets = [socket.socket() for _ in range(3)]
    for one in sockets:
        one.bind(("127.0.0.1", 0))
    ports = [one.getsockname()[1] for one in sockets]
    while max(ports) > 55535:  # the bus is 10,000 above
        sockets.append(socket.socket())
        sockets[-1].bind(("127.0.0.1", 0))
        ports[ports.index(max(ports))] = sockets[-1].getsockname()[1]
    for one in sockets:
        one.close()
    running = []
    for port in ports:
        at = folder / str(port)
        at.mkdir()
        words = [
            program, "--port", str(port), "--bind", "127.0.0.1", "--save", "", "--dir", str(at),
            "--cluster-enabled", "yes", "--cluster-config-file", "n.conf",
            "--cluster-node-timeout", "2000",
        ]  # fmt: skip
        running.append(subprocess.Popen(words, stdout=subprocess.DEVNULL))
    try:
        form(ports)
        yield ports[0]
    finally:
        for process in running:
            process.terminate()
        for process in running:
            process.wait(10)


def form(ports: Sequence[int]) -> None:
    """Give each node a third of the slots, and let them meet."""
    nodes = [Redis(port=port, socket_timeout=5) for port in ports]
    until(lambda: all(answers(node) for node in nodes))
    edges = [0, 5461, 10923, 16384]
    for node, low, high in zip(nodes, edges, edges[1:], strict=False):
        said(node, "ADDSLOTSRANGE", low, high - 1)
        said(node, "MEET", "127.0.0.1", ports[0])
    until(lambda: all("ok" in state(node) for node in nodes))
    for node in nodes:
        node.close()


def answers(node: Redis) -> bool:
    try:
        return bool(node.ping())
    except RedisError:
        return False


def state(node: Redis) -> str:
    found = node.execute_command("CLUSTER INFO")  # type: ignore[no-untyped-call]
    return str(found["cluster_state"] if isinstance(found, dict) else found)


def said(node: Redis, *words: str | int) -> str:
    """What a node answers to a `CLUSTER …` command."""
    return str(node.execute_command("CLUSTER", *words))  # type: ignore[no-untyped-call]


def until(condition: Callable[[], bool], within: float = 20.0) -> None:
    end = time.monotonic() + within
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.05)
