"""What can be looked at from a terminal: evidence of a signature, the sandbox, who owns which slots."""

import sys
from pathlib import Path
from typing import BinaryIO

import click

from tolsey.commands.base import read_settings, run


@click.command("verify-bundle")
@click.argument("file", type=click.File("rb"))
@click.option(
    "--roots",
    type=click.File("rb"),
    help="The service's /.well-known/esign-roots.json, as you or somebody you trust fetched it.",
)
def verify_bundle(*, file: BinaryIO, roots: BinaryIO | None) -> None:
    """Check the evidence of a signature without the service; ends with 1 and names the first part that is broken.

    With --roots the bundle's root has to be one that was published, which whoever could write all of the
    bundle anew cannot forge.
    """
    from tolsey.http.deals.evidence import bundle, checking  # noqa: PLC0415 - only this command needs it

    try:
        files = bundle.unzipped(file)
        said = checking.check(files)
        if roots is not None:
            checking.require_published(files, roots.read())
    except checking.EvidenceBroken as broken:
        click.echo(f"BROKEN: {broken}")
        sys.exit(1)
    root = said["root"]
    click.echo(f"WHOLE: {said['documentType']} {said['id']}, {said['status']}")
    for one in said["signers"]:
        click.echo(f"signed by {one['name']} for the {one['role']}, {one['signedAt']}")
    if root is None:
        click.echo(f"{said['id']} {checking.UNANCHORED}.")
    elif roots is None:
        where = "compare it with the list at /.well-known/esign-roots.json, or give that as --roots"
        click.echo(f"under the root of {root['day']}, by the key {root['keyId']}: {where}.")
    else:
        click.echo(f"under the root of {root['day']}, which was published.")


@click.command()
@click.option("--port", default=8000, show_default=True, help="Where the service listens.")
@click.option("--platform-port", default=8001, show_default=True, help="Where the shop listens.")
@click.option("--payments-port", default=8002, show_default=True, help="And the payment processor.")
@click.option("--model-port", default=8003, show_default=True, help="And the language model.")
@click.option("--orders", default=1200, show_default=True, help="Orders in the demo history.")
@click.option("--data-dir", type=click.Path(path_type=Path), default=Path(".data/sandbox"))
@click.option("--once", is_flag=True, help="Show the journey and stop instead of serving on.")
@click.option(
    "--launch", is_flag=True, help="Launch a store from an empty shop; a key does what people do."
)
@click.option(
    "--competitors", is_flag=True, help="Watch the storefronts that a store competes with."
)
def sandbox(
    *,
    port: int,
    platform_port: int,
    payments_port: int,
    model_port: int,
    orders: int,
    data_dir: Path,
    once: bool,
    launch: bool,
    competitors: bool,
) -> None:
    """Start local stand-ins of the platforms and a demo organization, and show the main job."""
    try:
        from tolsey.demo.run import Demo  # noqa: PLC0415 - an extra
        from tolsey.demo.standins import Ports  # noqa: PLC0415 - as above
    except ImportError as error:
        raise click.ClickException("Install it first: pip install 'tolsey[sandbox]'.") from error

    ports = Ports(port, platform_port, payments_port, model_port)
    shown = Demo(
        ports, orders, data_dir.resolve(), once=once, launch=launch, competitors=competitors
    )
    sys.exit(run(shown.run))


@click.command()
@click.option("--json", "as_json", is_flag=True, help="Write it for programs.")
def shards(as_json: bool) -> None:
    """Print which process owns which slots.

    It reads the map in PostgreSQL and the processes' beats in Redis, and needs none of the
    processes to answer. A process is `silent` when no beat of it was seen for LEASE_SECONDS, or when it
    ran on this machine and has ended; its slots are then among those that wait for an owner.
    """
    from tolsey.commands.slot_map import SlotMapView, read_map  # noqa: PLC0415 - only this command needs it
    from tolsey.storage.backing import addresses  # noqa: PLC0415 - as above

    read = read_settings()

    async def go() -> SlotMapView:
        async with addresses(read) as (database_url, redis_url):
            return await read_map(database_url, redis_url, read.lease_seconds)

    found: SlotMapView = run(go)
    click.echo(found.as_json() if as_json else found.as_text())
