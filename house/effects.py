"""Importing has no effects, and the command line starts fast.

1. importing any module of the four packages opens no connection, writes no file, starts no thread
   or process, and reads no environment variable
2. importing `regions`, `policies` and `classifiers` whole costs at most two seconds of CPU
3. `domicile --help` costs at most 0.4 s of CPU and loads none of the slow libraries
"""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
from collections.abc import Iterator, Sequence

from house.tree import Finding, Tree

PURE_SECONDS = 2.0
HELP_SECONDS = 0.4
SLOW = ("fastapi", "litellm", "sklearn", "scipy", "numpy", "boto3", "botocore", "openai", "pyarrow")
_HELP = """\
import sys
from router.cli.main import main
sys.argv = ["domicile", "--help"]
try:
    main()
except SystemExit as stop:
    if stop.code: raise
print("\\n" + " ".join(sys.modules))
"""


def findings(tree: Tree) -> Iterator[Finding]:
    """Every effect of an import, and a slow or heavy command line."""
    modules = [source.module for source in tree.sources if source.path.name != "__main__.py"]
    if modules:
        paths = {source.module: str(source.path) for source in tree.sources}
        for module, effect in effects(tree, modules):
            yield Finding(paths[module], 0, f"importing it {effect}")
    pure = [module for module in modules if module.split(".")[0] != "router"]
    spent = seconds(tree, "import " + ", ".join(pure)) if pure else 0.0
    if spent > PURE_SECONDS:
        text = f"importing them all takes {spent:.2f} s of CPU, over {PURE_SECONDS}"
        yield Finding("regions, policies, classifiers", 0, text)
    if "router.cli.main" in modules:
        yield from help_findings(tree)


def help_findings(tree: Tree) -> Iterator[Finding]:
    """What `domicile --help` loads and costs; the best of three, for the machine may be busy."""
    path = "router/cli/main.py"
    done = python(tree, "-c", _HELP)
    if done.returncode:
        yield Finding(path, 0, f"`domicile --help` fails: {last_line(done.stderr)}")
        return
    loaded = set(done.stdout.splitlines()[-1].split()) & set(SLOW)
    if loaded:
        yield Finding(path, 0, f"`domicile --help` loads {', '.join(sorted(loaded))}")
    spent = min(seconds(tree, _HELP) for _ in range(3))
    if spent > HELP_SECONDS:
        yield Finding(path, 0, f"`domicile --help` takes {spent:.2f} s of CPU, over {HELP_SECONDS}")


def effects(tree: Tree, modules: Sequence[str]) -> list[tuple[str, str]]:
    """Pairs of module and effect, from a process of its own (`house.probe`)."""
    done = python(tree, "-m", "house.probe", *modules)
    if done.returncode:
        return [(modules[0], f"ends the probe: {last_line(done.stderr)}")]
    return [(module, effect) for module, effect in json.loads(done.stdout.splitlines()[-1])]


def seconds(tree: Tree, code: str) -> float:
    """CPU seconds, user and system, of `python -c code`."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    python(tree, "-c", code)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime


def python(tree: Tree, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run this interpreter at the root of `tree`, writing no bytecode."""
    environment = {**os.environ, "PYTHONPATH": str(tree.root), "NO_COLOR": "1"}
    command = [sys.executable, "-B", *arguments]
    return subprocess.run(
        command, cwd=tree.root, env=environment, capture_output=True, text=True, check=False
    )


def last_line(text: str) -> str:
    """The last line of an error output: the exception itself."""
    return (text.strip().splitlines() or ["no message"])[-1]
