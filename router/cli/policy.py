"""`domicile policy`: what can be done with policy files alone."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from router.cli.failing import failing
from router.cli.given import policy, policy_files, private_key, read_file
from router.cli.policy_export import export
from router.cli.policy_proofs import diff, prove
from router.cli.shown import json_option, print_json

if TYPE_CHECKING:
    from policies.cases import Report

_FILE = click.Path(path_type=Path, dir_okay=False)


@click.group("policy")
def command() -> None:
    """Lint, test, prove, compare, export and sign policies; print their schema."""


command.add_command(prove)
command.add_command(diff)
command.add_command(export)


@command.command("lint")
@click.option("--config", "config", metavar="FILE", help="Configuration file.")
@click.option("--strict", is_flag=True, help="Warnings fail as errors do.")
@json_option
@failing
def lint(config: str | None, strict: bool, as_json: bool) -> None:
    """Say everything that looks wrong in the policy files, errors first.

    \b
    Examples:
      domicile policy lint
      domicile policy lint --strict --json

    Exit codes: 0 no errors, 1 errors (with --strict, warnings too), 2 usage.
    """  # noqa: D301
    from policies.findings import Severity
    from policies.lint import lint as run
    from router.cli.findings import finding_json
    from router.config import find, load
    from router.settings.checking import stores

    path = find(config, os.environ)
    found = run(policy(path), time.time(), stores(load(path)))
    if as_json:
        print_json([finding_json(one) for one in found])
    else:
        for one in found:
            click.echo(str(one))
    limit = Severity.WARNING if strict else Severity.ERROR
    sys.exit(1 if any(one.severity <= limit for one in found) else 0)


@command.command("test")
@click.argument("files", metavar="[CASES]...", nargs=-1, type=_FILE)
@click.option("--config", "config", metavar="FILE", help="Configuration file.")
@click.option("--covered", is_flag=True, help="Fail when a branch of a rule has no case.")
@json_option
@failing
def test(files: tuple[Path, ...], config: str | None, covered: bool, as_json: bool) -> None:
    """Run case files against the policy: requests, their world, and what must come of them.

    \b
    Without CASES, the files that the configuration lists under `policies.cases`.

    \b
    Examples:
      domicile policy test cases/health.cases.yaml
      domicile policy test --covered

    \b
    Exit codes: 0 all pass, 1 a case fails, a file can't be read or (with --covered) a branch
      has no case, 2 usage.
    """  # noqa: D301
    from policies.cases import Suite, run
    from policies.tested import uncovered
    from router.config import find

    path = find(config, os.environ)
    loaded = policy(path)
    texts = _cases(path, files)
    reports = [(name, run(loaded, Suite.parse(text, name))) for name, text in texts]
    failed = any(not report.passed for _, report in reports)
    left = uncovered([report for _, report in reports])
    if as_json:
        print_json([_report_json(name, report) for name, report in reports])
    else:
        for name, report in reports:
            _print_report(name, report)
        if len(reports) > 1:
            branches = reports[0][1].branches
            click.echo(f"together: {branches - len(left)} of {branches} branches covered")
    sys.exit(1 if failed or (covered and left) else 0)


def _cases(path: Path, files: Sequence[Path]) -> list[tuple[str, bytes]]:
    """Name and content of the case files given, else of those the configuration lists."""
    from router.config import load
    from router.settings.loading import read_files

    if files:
        return [(str(file), read_file(file)) for file in files]
    listed = read_files(load(path).policies.cases, path.parent)
    if not listed:
        raise click.UsageError("name case files, or list them under `policies: {cases: [...]}`")
    return [(file.name, file.content) for file in listed]


@command.command("schema")
@failing
def schema() -> None:
    """Print the JSON Schema of policy files, for editors.

    Exit codes: 0 printed.
    """
    from policies.files import policy_schema

    print_json(policy_schema())


@command.command("sign")
@click.option("--config", "config", metavar="FILE", help="Configuration file.")
@click.option("--key", "key", metavar="FILE", type=_FILE, required=True,
              help="The compliance team's private key, Ed25519 in PEM.")  # fmt: skip
@failing
def sign(config: str | None, key: Path) -> None:
    """Print a signature over all baseline files, and the authorities they name, as they are now.

    \b
    Example:
      domicile policy sign --key dpo.key > baseline/main.yaml.sig

    Exit codes: 0 printed, 1 the key or a file can't be read, 2 usage.
    """  # noqa: D301
    from policies import signatures
    from router.config import find
    from router.settings.signing import signed_files

    private, path = private_key(key), find(config, os.environ)
    baseline, _ = policy_files(path)
    files = signed_files(baseline, path.parent)
    click.echo(signatures.sign(files, private).decode(), nl=False)


def _report_json(file: str, report: Report) -> dict[str, object]:
    return {
        "file": file,
        "results": [
            {"case": one.name, "place": str(one.mark), "ok": not one.problems,
             "problems": list(one.problems)}
            for one in report.results
        ],
        "branches": report.branches,
        "uncovered": list(report.uncovered),
    }  # fmt: skip


def _print_report(file: str, report: Report) -> None:
    for result in report.results:
        for problem in result.problems:
            click.echo(f"{result.mark}: case `{result.name}`: {problem}")
    for branch in _shown(report.uncovered):
        click.echo(f"not covered: {branch}")
    failed = sum(bool(result.problems) for result in report.results)
    covered = report.branches - len(report.uncovered)
    click.echo(
        f"{file}: {len(report.results) - failed} of {len(report.results)} cases pass; "
        f"{covered} of {report.branches} branches covered"
    )


def _shown(texts: Sequence[str], most: int = 20) -> Sequence[str]:
    return texts if len(texts) <= most else [*texts[:most], f"… {len(texts) - most} more"]
