"""The `openai` package for Node.js: a second client, which shares no code with Python's.

It has no dependencies, so one packed file, checked against its digest, is all of it.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path

from tests.e2e.parts import Missing

PACKAGE = "openai@6.1.0"
SHA512 = (
    "e6ca9bd702baec7a1580696c3f0707d9b51b920eba9e7a0860aa3257dce2e696"
    "4faa1ec45a5992ad20e3021e0ee6368883fd2b225703281b56bd906e69c98666"
)
SCRIPT = Path(__file__).with_name("chat.mjs")


def install(folder: Path) -> Path:
    """A folder with the client and the script that uses it. Raises `Missing`."""
    for program in ("node", "npm"):
        if shutil.which(program) is None:
            raise Missing(f"`{program}` is not installed")
    pack = ["npm", "pack", "--silent", "--pack-destination", str(folder), PACKAGE]
    done = subprocess.run(pack, capture_output=True, text=True, check=False, timeout=120)
    if done.returncode:
        raise Missing(f"npm can't fetch {PACKAGE}: {done.stderr.strip()[-200:]}")
    packed = folder / done.stdout.strip().splitlines()[-1]
    found = hashlib.sha512(packed.read_bytes()).hexdigest()
    assert found == SHA512, f"{PACKAGE} is not the package it was"
    modules = folder / "node_modules"
    subprocess.run(["tar", "-xzf", packed, "-C", folder], check=True)
    modules.mkdir()
    (folder / "package").rename(modules / "openai")
    shutil.copy(SCRIPT, folder)
    return folder


def chat(folder: Path, url: str, key: str, question: str) -> Mapping[str, object]:
    """What the script was answered: see `chat.mjs`."""
    environment = {"PATH": os.environ["PATH"], "OPENAI_API_KEY": key, "OPENAI_BASE_URL": url}
    command = ["node", str(folder / SCRIPT.name), question]
    done = subprocess.run(
        command, env=environment, capture_output=True, text=True, check=False, timeout=120
    )
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert isinstance(found, dict)
    return found
