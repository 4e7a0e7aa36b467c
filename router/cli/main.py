"""The `domicile` command: one lazy group, so that `--help` imports no server and no model.

Exit codes, for every command: 0 done or yes, 1 the answer is no or something failed,
2 the command line is wrong, or a command whose 1 is a verdict could give none, 130 stopped by
Ctrl-C. A command with further codes names them in its help.
"""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

import click

COMMANDS: Final[Mapping[str, tuple[str, str]]] = MappingProxyType(
    {
        "assess": ("router.cli.assess", "Check what a LiteLLM config or CloudTrail shows today."),
        "audit": ("router.cli.audit", "Verify and read the region log."),
        "check": ("router.cli.check", "Check the configuration and policies, all errors at once."),
        "classifier": ("router.cli.classifier", "Train and evaluate the difficulty classifier."),
        "decide": ("router.cli.decide", "Decide a hypothetical request; nothing is sent."),
        "demo": ("router.cli.demo", "Run a router, three tenants and a dying region, here."),
        "footprint": ("router.cli.footprint", "Where would a call be processed, and by whom?"),
        "init": ("router.cli.init", "Write a configuration to start from."),
        "keys": ("router.cli.keys", "Make API keys."),
        "policy": ("router.cli.policy", "Lint, test and sign policies; print their schema."),
        "quarantine": ("router.cli.quarantine", "Take something out of a running router, now."),
        "regions": ("router.cli.regions", "List places; compare profiles with what AWS says."),
        "serve": ("router.cli.serve", "Run the router."),
        "simulate": ("router.cli.simulate", "Run a simulated fleet or a simulation."),
        "status": ("router.cli.status", "Show the state of a running router."),
        "tenant": ("router.cli.tenant", "Plan what moves with a tenant."),
    }
)

STOPPED: Final = 130


class LazyGroup(click.Group):
    """A group whose commands are imported when they run, not when they are listed."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """The command names, in order."""
        return sorted(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """The command, imported; `None` when there is no such name."""
        entry = COMMANDS.get(cmd_name)
        if entry is None:
            return None
        command: object = importlib.import_module(entry[0]).command
        if not isinstance(command, click.Command):
            raise TypeError(f"{entry[0]}.command is no click command")
        return command

    def invoke(self, ctx: click.Context) -> object:
        """Run the command; Ctrl-C ends it with a word and the code that shells know it by."""
        try:
            return super().invoke(ctx)
        except KeyboardInterrupt:
            click.echo("stopped", err=True)
            ctx.exit(STOPPED)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """List the commands by their one line, without importing them."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, entry[1]) for name, entry in sorted(COMMANDS.items())])


@click.group(cls=LazyGroup, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="domicile", message="%(version)s")
def main() -> None:
    """Domicile: every request is processed only where its policy allows.

    One OpenAI-compatible endpoint in front of models in many regions; and anyone can check
    afterwards where each request ran.
    """


if __name__ == "__main__":
    main(prog_name="domicile")
