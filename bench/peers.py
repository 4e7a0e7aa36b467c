"""How each gateway is configured and started: this router in several shapes, and others."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from bench import world
from bench.load import Traffic, body

LITELLM = """
model_list:
  - model_name: gpt-4o-mini
    litellm_params: {model: openai/gpt-4o-mini, api_base: "{up}/v1", api_key: sk-up}
litellm_settings: {telemetry: false, num_retries: 0, set_verbose: false}
general_settings: {master_key: sk-bench, dangerously_permit_weak_or_unset_master_key: true}
"""
QUIET = {
    "LITELLM_LOCAL_MODEL_COST_MAP": "True", "LITELLM_MODE": "PRODUCTION", "LITELLM_LOG": "ERROR",
    "NODE_ENV": "production", "DO_NOT_TRACK": "1",
}  # fmt: skip


STREAMED = ("domicile", "domicile without grading")
IN_MEMORY = "/dev/shm/domicile-bench"


@dataclass(frozen=True, slots=True)
class Peer:
    """A gateway. In `words`, `files`, `headers` stand `{port}`, `{up}`, `{work}`, `{other}`."""

    name: str
    words: tuple[str, ...]
    needs: Path
    headers: tuple[tuple[str, str], ...] = ()
    files: Mapping[str, str] = field(default_factory=dict)
    keys: tuple[str, ...] = ("sk-bench",)
    patience: float = 60.0
    streams: bool = True
    shape: world.Shape | None = None
    bodies: int = 1
    projects: int = 0

    def missing(self) -> str:
        """Why it can't be measured here; empty when it can."""
        found = self.needs.exists() or shutil.which(str(self.needs))
        return "" if found else "not installed"

    def prepare(self, folder: Path, port: int, upstream: int) -> None:
        """Write its files."""
        if self.shape is not None:
            world.write(folder, self.shape, port, f"http://127.0.0.1:{upstream}")
        for name, text in self.files.items():
            (folder / name).write_text(_filled(text, folder, port, upstream))

    def command(self, folder: Path, port: int, upstream: int) -> list[str]:
        """What to start."""
        return [_filled(word, folder, port, upstream) for word in self.words]

    def environment(self, folder: Path, port: int, upstream: int) -> dict[str, str]:
        """Variables it is started with."""
        return dict(QUIET)

    def traffic(self, upstream: int) -> Traffic:
        """What its clients send."""
        notes = [""] if self.bodies == 1 else [f" {number}" for number in range(self.bodies)]
        made = tuple(body(world.MODEL, note=note) for note in notes)
        projects = tuple(f"p{number}" for number in range(self.projects))
        filled = tuple((n, _filled(v, Path(), 0, upstream)) for n, v in self.headers)
        return Traffic(self.keys, made, projects, filled)


def ours() -> list[Peer]:
    """This router: as it is used, with its parts taken out one by one, and with cold memories.

    Parts are taken out by configuration only: no rule, one endpoint, no grading, a log on a file
    system in memory, where a sync costs nothing. Keys, log, receipts and metrics have no switch.
    """
    command = ("-m", "router.cli.main", "serve", "--config", "{work}/domicile.yaml")
    words: tuple[str, ...] = (sys.executable, *command)
    script = Path(sys.executable).with_name("domicile")
    if script.exists():
        words = (str(script), *command[2:])
    here = Path(sys.executable)

    def one(name: str, shape: world.Shape, bodies: int = 1, projects: int = 0) -> Peer:
        keys = tuple(world.key(number) for number in range(shape.tenants))
        return Peer(
            name, words, here, keys=keys, shape=shape, bodies=bodies, projects=projects,
            streams=name in STREAMED,
        )  # fmt: skip

    return [
        one("domicile", world.Shape()),
        one("domicile with 2 workers", world.Shape(workers=2)),
        one("domicile without rules", world.Shape(rules=0)),
        one("domicile with one endpoint", world.Shape(endpoints=1)),
        one("domicile without grading", world.Shape(graded=False)),
        one("domicile with patterns too", world.Shape(patterns=True)),
        one("domicile with its log in memory", world.Shape(log=IN_MEMORY)),
        one("domicile with 200 tenants and 997 bodies", world.Shape(tenants=200), 997, 100),
    ]


def others(folder: Path) -> list[Peer]:
    """Other gateways, where they are installed below `folder`."""
    rust = ("--host", "127.0.0.1", "--port", "{port}", "--worker-urls", "{up}", "--policy",
            "round_robin", "--log-level", "error", "--prometheus-port", "{other}")  # fmt: skip
    portkey = folder / "portkey/node_modules/@portkey-ai/gateway/build/start-server.js"
    litellm = folder / "v-litellm/bin/litellm"
    sglang = folder / "v-sglang/bin/python"
    via = (("x-portkey-provider", "openai"), ("x-portkey-custom-host", "{up}/v1"))
    served = ("--config", "{work}/litellm.yaml", "--host", "127.0.0.1", "--port", "{port}")
    return [
        Peer("sglang-router", (str(sglang), "-m", "sglang_router.launch_router", *rust), sglang),
        Peer("portkey", ("node", str(portkey), "--headless", "--port={port}"), portkey, via),
        Peer(
            "litellm",
            (str(litellm), *served, "--num_workers", "1"),
            litellm,
            files={"litellm.yaml": LITELLM},
            patience=180.0,
        ),
    ]


def _filled(text: str, folder: Path, port: int, upstream: int) -> str:
    for name, value in (
        ("{port}", str(port)),
        ("{other}", str(port + 1)),
        ("{up}", f"http://127.0.0.1:{upstream}"),
        ("{work}", str(folder)),
    ):
        text = text.replace(name, value)
    return text
