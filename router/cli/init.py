"""`domicile init`: a configuration that `check` and `serve` accept as it is."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Final

import click

from router.cli.failing import failing
from router.cli.shown import json_option, print_json

CONFIG: Final = """\
# This router's own settings. What can widen a boundary stands in baseline/, not here.
version: 1
router:
  id: local-1
  region: self:local
  listen: 127.0.0.1:8080
  admin: 127.0.0.1:9090
keys: {file: keys.yaml}
policies: {baseline: [baseline/*.yaml], rules: [rules/*.yaml], cases: [cases/*.yaml]}
log: {dir: log, signing_key: file:log.key}
"""
BASELINE: Final = """\
# Everything that can widen what is allowed. Change it with the compliance team.
version: 1
regions:
  self:local: {country: DE}        # where this machine stands: set its country
tenants:
  example:
    grant: {process: EU, retain: EU}
    models: [assistant]
models:
  assistant: {tiers: {large: [local-model]}}
endpoints:
  local-model:                     # any server that speaks OpenAI's API, as vLLM does
    kind: vllm
    region: self:local
    url: http://127.0.0.1:8000
    model: my-model                # the name that the server knows it by
    operate: [DE]                  # the countries whose law reaches those who run it
    retain: nothing
    features: [tools]              # what the model can do: json_schema, images, …
attributes:
  data_class: {values: [public, internal, health], default: internal}
"""
RULES: Final = """\
# Rules only narrow what the baseline allows; they may come and go.
version: 1
rules:
  - name: health-in-germany
    when: {data_class: health}
    process_within: DE
    retain_within: DE
    because: "an example: health data stays in the country"
"""
CASES: Final = """\
# Requests and what must come of them; `domicile check` and every reload run them. They name the
# endpoint, the tenant and the countries of baseline/main.yaml: change those and these together.
version: 1
now: 2026-12-01
router: self:local
cases:
  - name: health data stays in Germany
    request: {tenant: example, model: assistant, headers: {data_class: health}}
    expect: {endpoints: [local-model], processed_within: DE, retained_within: DE}
  - name: everything else stays in the EU
    request: {tenant: example, model: assistant}
    expect: {endpoints: [local-model], processed_within: EU, retained_within: EU}
"""
_KEYS: Final = """\
# API keys by their SHA-256; `domicile keys new` makes more. The keys themselves are not stored.
version: 1
keys:
  - {{id: example-1, sha256: {digest}, tenant: example}}
"""


@click.command("init")
@click.argument("folder", metavar="[DIR]", type=click.Path(path_type=Path, file_okay=False),
                default=Path(), required=False)  # fmt: skip
@click.option("--force", is_flag=True, help="Write into a folder that has other files in it.")
@json_option
@failing
def command(folder: Path, force: bool, as_json: bool) -> None:
    """Write a configuration to start from into DIR, the current folder by default.

    \b
    Writes domicile.yaml, baseline/main.yaml, rules/example.yaml, its cases,
    keys.yaml with one fresh key (shown once), and log.key, the region log's
    signing key.
    No file is ever overwritten, with --force neither.

    \b
    Examples:
      domicile init router && domicile check --config router/domicile.yaml
      domicile serve --config router/domicile.yaml

    \b
    Exit codes: 0 written, 1 a file is there already or can't be written, 2 usage.
    """  # noqa: D301
    from router.auth import new_key

    key, digest = new_key(os.urandom)
    files = _files(digest)
    _refuse_existing(folder, [*files, "log.key"], force)
    _write(folder, files)
    if as_json:
        written = [str(folder / name) for name in (*files, "log.key")]
        print_json({"key": key, "written": written})
        return
    for name in (*files, "log.key"):
        click.echo(f"wrote {folder / name}")
    click.echo(f"api key (shown once): {key}")
    click.echo(f"next: domicile check --config {folder / 'domicile.yaml'}")


def _files(digest: str) -> Mapping[str, str]:
    return {
        "domicile.yaml": CONFIG,
        "baseline/main.yaml": BASELINE,
        "rules/example.yaml": RULES,
        "cases/example.cases.yaml": CASES,
        "keys.yaml": _KEYS.format(digest=digest),
    }


def _refuse_existing(folder: Path, names: list[str], force: bool) -> None:
    """Before anything is written, so that a refusal leaves no half configuration."""
    from router.config import ConfigError

    there = [name for name in names if (folder / name).exists() or (folder / name).is_symlink()]
    if there:
        raise ConfigError(f"`{folder / there[0]}` exists; nothing is overwritten: move it away")
    if not force and folder.is_dir() and any(folder.iterdir()):
        raise ConfigError(
            f"`{folder.resolve()}` is not empty; name a new folder, or give --force to write "
            "beside what is there"
        )


def _write(folder: Path, files: Mapping[str, str]) -> None:
    from router.audit.note import create_signing_key
    from router.config import ConfigError

    try:
        for name, text in files.items():
            path = folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            with path.open("x", encoding="utf-8") as file:
                file.write(text)
        create_signing_key(folder / "log.key")
    except OSError as error:
        raise ConfigError(f"can't write into `{folder}`: {error.strerror}") from None
