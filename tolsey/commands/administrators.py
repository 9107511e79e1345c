"""`tolsey admin`: the first administrator, and those after."""

import secrets
import sys

import click

from tolsey.commands.base import on_database, read_settings


@click.group()
def admin() -> None:
    """Manage administrators."""


@admin.command("create")
@click.argument("email")
@click.option("--password-stdin", is_flag=True, help="Read the password from standard input.")
@click.option("--existing", is_flag=True, help="Let a user administrate who has an account.")
def create_administrator(email: str, password_stdin: bool, existing: bool) -> None:
    """Make an administrator, and the administrators' organization when there is none.

    With --existing it is a user who is there already: the password is set, and every session and agent
    of theirs ends.
    """
    from tolsey.http.web.api_model import read_account  # noqa: PLC0415 - only this command needs it
    from tolsey.storage.people import administrators  # noqa: PLC0415 - as above

    password = sys.stdin.readline().rstrip("\n") if password_stdin else secrets.token_urlsafe(15)
    try:
        account = read_account(email, password)
    except ValueError as error:
        raise click.ClickException(str(error)) from None
    read = read_settings()
    made = on_database(
        read,
        lambda database: administrators.create_administrator(
            database,
            account.email,
            account.password,
            configured=read.admin_organization_id,
            existing=existing,
        ),
    )
    click.echo(f"administrator {account.email} of organization {made.organization_id}")
    if not password_stdin:
        click.echo(f"password {password}")
