"""The command line: `tolsey serve`, `migrate`, `doctor`, `admin create`, `sandbox`, `shards`."""

# ruff: noqa: E402
import signal

# Until a command runs there is nothing to end in order, and nothing that is older than a reload.
signal.signal(signal.SIGINT, signal.SIG_DFL)
signal.signal(signal.SIGHUP, lambda *_: None)

import os

import click

from tolsey import logs
from tolsey.commands import administrators, serving, showing, upkeep


@click.group()
@click.version_option(package_name="tolsey")
@click.pass_context
def main(context: click.Context) -> None:
    """Run the operations of a commerce business."""
    signal.signal(signal.SIGINT, signal.default_int_handler)
    if context.invoked_subcommand != serving.serve.name:
        signal.signal(signal.SIGHUP, signal.SIG_DFL)
    try:
        logs.configure(os.environ.get("LOG_LEVEL") or "info")
    except ValueError as error:
        raise click.ClickException(f"LOG_LEVEL: {error}") from None
    logs.tell_last_words()


for command in (
    serving.serve,
    upkeep.migrate,
    upkeep.doctor,
    upkeep.rotate_keys,
    upkeep.retention,
    upkeep.rehash_identities,
    upkeep.restore_check,
    administrators.admin,
    showing.verify_bundle,
    showing.sandbox,
    showing.shards,
):
    main.add_command(command)


if __name__ == "__main__":
    main()
