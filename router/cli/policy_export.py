"""`domicile policy export`: the same boundary where a cloud or a network enforces it."""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING, Final

import click

from router.cli.asking import at_option, misread
from router.cli.failing import failing
from router.cli.given import policy
from router.cli.shown import print_json

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from policies.export.aws import Document
    from router.decisions.exporting import Exported

FORMS: Final = ("aws", "terraform", "hosts", "kubernetes", "envoy")


@click.command("export")
@click.argument("form", metavar="FORM", type=click.Choice(FORMS))
@click.option("--boundary", "words", metavar="BOUNDARY", multiple=True, required=True,
              help="What to enforce, as `EU` or a boundary of the policy; repeatable.")  # fmt: skip
@click.option("--account", metavar="ID", default="*", show_default=True,
              help="The AWS account whose profiles are called.")  # fmt: skip
@click.option("--cidr", "addresses", metavar="CIDR", multiple=True,
              help="kubernetes: addresses of endpoints or proxies; repeatable.")  # fmt: skip
@click.option("--selector", "selector", metavar="KEY=VALUE", multiple=True,
              default=("app=domicile",), show_default=True,
              help="kubernetes: labels of the pods.")  # fmt: skip
@click.option("--config", "config", metavar="FILE", help="Configuration file.")
@at_option
@failing
@misread
def export(
    form: str,
    words: tuple[str, ...],
    account: str,
    addresses: tuple[str, ...],
    selector: tuple[str, ...],
    config: str | None,
    at: float,
) -> None:
    """Print a boundary as another system enforces it, as JSON.

    \b
    FORM is one of
      aws         an identity policy for the boundary's role, and service control policies
      terraform   the same as a Terraform configuration, one role per boundary
      hosts       the hosts of the endpoints inside
      kubernetes  a NetworkPolicy: DNS and the addresses given, nothing else
      envoy       a listener that passes TLS to those hosts by name, nothing else

    \b
    It is true for today's catalog: export again when regions, profiles or rules change.

    \b
    Examples:
      domicile policy export aws --boundary EU --account 123456789012
      domicile policy export terraform --boundary EU --boundary "EU + CH" > domicile.tf.json
      domicile policy export kubernetes --boundary EU --cidr 10.20.0.0/16

    Exit codes: 0 printed, 1 the configuration can't be read, 2 usage.
    """  # noqa: D301
    from router.config import find
    from router.decisions.exporting import exported

    if not re.fullmatch(r"\*|\d{12}", account):
        raise click.UsageError(f"`--account {account}`: an account has twelve digits")
    found = exported(policy(find(config, os.environ)), words, account, at)
    for one in found:
        for name, why in one.left_out.items():
            click.echo(f"left out of `{one.name}`: `{name}`: {why}", err=True)
    print_json(_document(form, found, addresses, dict(map(_label, selector))))


def _label(text: str) -> tuple[str, str]:
    key, equals, value = text.partition("=")
    if not equals:
        raise click.UsageError(f"`--selector {text}`: write it as `--selector app=domicile`")
    return key, value


def _document(
    form: str, found: Sequence[Exported], addresses: Sequence[str], labels: Mapping[str, str]
) -> Document:
    from policies.export.egress import envoy, network_policy

    if form == "aws":
        return {one.name: {"role": one.role, "control": dict(one.control)} for one in found}
    if form == "terraform":
        return _terraform(found)
    if form == "hosts":
        return {one.name: list(one.hosts) for one in found}
    if form == "kubernetes":
        return {one.name: network_policy(one.name, addresses, labels) for one in found}
    return {one.name: envoy(one.name, one.hosts) for one in found}


def _terraform(found: Sequence[Exported]) -> Document:
    from policies.export.aws import terraform

    control = {
        one.name if partition == "aws" else f"{one.name} {partition}": document
        for one in found
        for partition, document in one.control.items()
    }
    return terraform({one.name: one.role for one in found}, control)
