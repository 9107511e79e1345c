"""The command line: `tolsey serve`, `migrate`, `doctor`, `admin create`, `sandbox`, `shards`."""

# ruff: noqa: E402
import gc
import signal

# Until a command runs there is nothing to end in order, and nothing that is older than a reload.
signal.signal(signal.SIGINT, signal.SIG_DFL)
signal.signal(signal.SIGHUP, lambda *_: None)
gc.disable()  # what is imported stays: searching it for garbage takes a tenth of an import (`base.run` enables it)

import os
from collections.abc import Mapping
from importlib import import_module
from typing import Final

import click
from typing_extensions import override

COMMANDS: Final[Mapping[str, tuple[str, str]]] = {
    "admin": ("administrators", "Manage administrators."),
    "doctor": ("upkeep", "Report which settings and servers are missing."),
    "migrate": ("upkeep", "Apply the migrations."),
    "rehash-identities": ("upkeep", "Replace buyers' hashes by pseudonyms of their store."),
    "restore-check": ("upkeep", "Repeat erasures in a restored database."),
    "retention": ("upkeep", "Delete rows whose retention has ended."),
    "rotate-keys": ("upkeep", "Encrypt secrets again with the newest key."),
    "sandbox": ("showing", "Start local stand-ins and a demo organization."),
    "serve": ("serving", "Serve the application."),
    "shards": ("showing", "Print which process owns which slots."),
    "verify-bundle": ("showing", "Check the evidence of a signature offline."),
}
"""For each command its module in `tolsey.commands`, imported when it runs, and its line of the help."""


class Commands(click.Group):
    """The commands by name: a list of them imports none."""

    @override
    def list_commands(self, ctx: click.Context) -> list[str]:
        return sorted(COMMANDS)

    @override
    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in COMMANDS:
            return None
        module = import_module(f"tolsey.commands.{COMMANDS[cmd_name][0]}")
        command: click.Command = getattr(module, cmd_name.replace("-", "_"))
        return command

    @override
    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(name, COMMANDS[name][1]) for name in self.list_commands(ctx)])


@click.group(cls=Commands)
@click.version_option(package_name="tolsey")
@click.pass_context
def main(context: click.Context) -> None:
    """Run the operations of a commerce business."""
    from tolsey import logs  # noqa: PLC0415 - the help logs nothing

    signal.signal(signal.SIGINT, signal.default_int_handler)
    if context.invoked_subcommand != "serve":
        signal.signal(signal.SIGHUP, signal.SIG_DFL)
    try:
        logs.configure(os.environ.get("LOG_LEVEL") or "info")
    except ValueError as error:
        raise click.ClickException(f"LOG_LEVEL: {error}") from None
    logs.tell_last_words()


if __name__ == "__main__":
    main()
