"""A person's account: all that is kept about it, and its end (rules/accounts#people-who-leave)."""

from collections.abc import AsyncIterator
from typing import Annotated

import orjson
from pydantic.alias_generators import to_camel
from quart import Blueprint, Response
from quart_schema import tag_blueprint

from tolsey.actors.listing.messages import PauseListing, listing
from tolsey.actors.organization.billing.messages import CancelPlan, ReadSubscription
from tolsey.actors.organization.messages import organization
from tolsey.actors.refusals import Conflict
from tolsey.actors.store.connection.messages import ReadConnection
from tolsey.actors.store.messages import store
from tolsey.http.answers.base import Accepted, Media, NoBody, NoContent
from tolsey.http.answers.people.account import (
    AccountDeletionAnswer,
    AccountExportAnswer,
    KeptAnswer,
)
from tolsey.http.files.documents import in_chunks, of_store, sections_of
from tolsey.http.operations import carried_out
from tolsey.http.people.signing import Login, proven
from tolsey.http.web.access import caller, public, session
from tolsey.http.web.context import Service, ask, new_id, now, service
from tolsey.storage import audit
from tolsey.storage.chat import memory
from tolsey.storage.commerce import stores
from tolsey.storage.database import Reader
from tolsey.storage.lifecycle import exports
from tolsey.storage.owners import RowOwner
from tolsey.storage.people import accounts, leaving, tokens

routes = Blueprint("account", __name__, url_prefix="/api/account")
tag_blueprint(routes, ["Accounts"])


@routes.get("/export")
@session
async def export_account() -> Annotated[
    Response, Media("application/json", shape=AccountExportAnswer)
]:
    """Answer with one JSON document of all that is kept about the caller and the organizations they own."""
    user_id = caller().user_id
    owned = await accounts.owned_by(service().database, user_id)
    response = Response(
        in_chunks(_document(service(), user_id, owned)), content_type="application/json"
    )
    response.headers["Content-Disposition"] = f'attachment; filename="{user_id}.json"'
    return response


@routes.delete("")
@session
async def delete_account() -> tuple[AccountDeletionAnswer, Accepted]:
    """Begin the deletion of the caller's account, and tell what will stay; for 30 days it can be restored."""
    user_id, database, at = caller().user_id, service().database, now()
    alone = await leaving.owned_alone(database, user_id)
    # Nobody leaves others without an owner, nor a buyer without a seller (rules/accounts#people-who-leave).
    if shared := [one.id for one in alone if one.has_other_members]:
        raise Conflict(
            "You are the only owner of organizations that have other members. Make another"
            " member an owner, or remove the members.",
            code="owns_shared_organization",
            organizations=shared,
        )
    if any(one.has_open_deal for one in alone):
        raise Conflict(
            "You have open deals. End them, then delete your account.", code="open_deals"
        )
    kept = await _kept(user_id, [one.id for one in alone])
    for one in alone:
        await _end_plan(one.id, user_id)
        for listing_id in one.active_listings:
            await ask(listing(listing_id), PauseListing(now()))
    async with database.transaction() as tx:
        await leaving.ask(tx, user_id, at)
        await audit.write(tx, "user.deletion_requested", user_id, actor=user_id)
        await tokens.end_all(tx, user_id)
    await service().agents.access_tokens.forget()
    return AccountDeletionAnswer(gone_at=at + leaving.KEPT_FOR, kept=kept), 202


@routes.post("/restore")
@public
async def restore_account(data: Login) -> tuple[NoBody, NoContent]:
    """Take the deletion of an account back, which its address and password prove."""
    await take_back(data)
    return "", 204


async def take_back(wanted: Login) -> None:
    """Take a deletion back, or say that there is none; the attempts count as those to sign in."""
    user = await proven(wanted)
    async with service().database.transaction() as tx:
        if not await leaving.take_back(tx, user.id):
            raise Conflict(
                "This account isn't scheduled for deletion. Sign in as usual.",
                code="not_in_deletion",
            )
        await audit.write(tx, "user.restored", user.id, actor=user.id)


async def _kept(user_id: str, owned: list[str]) -> list[KeptAnswer]:
    """Tell what stays of a person and of organizations that go with them (rules/accounts#people-who-leave)."""
    reader = service().reports.of(user_id)
    found = await exports.staying(reader, RowOwner.USER, user_id)
    for organization_id in owned:
        found += await exports.staying(reader, RowOwner.ORGANIZATION, organization_id)
    names: dict[str, set[str]] = {}
    for name, reason in found:
        names.setdefault(reason, set()).add(to_camel(name))
    return [KeptAnswer(reason=reason, names=sorted(some)) for reason, some in names.items()]


async def _end_plan(organization_id: str, user_id: str) -> None:
    """Let what is paid for end with its period."""
    view = await ask(organization(organization_id), ReadSubscription(now()))
    if not view.is_subscribed or view.cancel_at_period_end:
        return
    asked = CancelPlan(
        operation_id=new_id("operation"),
        price_ids=service().settings.sold_prices,
        user_id=user_id,
        at=now(),
    )
    await carried_out(organization(organization_id), asked)


async def _document(running: Service, user_id: str, owned: list[str]) -> AsyncIterator[bytes]:
    reader = running.reports.of(user_id)
    yield b'{"user":'
    async for part in _rows_of(reader, RowOwner.USER, user_id):
        yield part
    before = b',"organizations":['
    for organization_id in owned:
        yield before
        async for part in _rows_of(reader, RowOwner.ORGANIZATION, organization_id):
            yield part
        before = b","
    yield b'],"stores":[' if owned else b',"organizations":[],"stores":['
    before = b""
    for organization_id in owned:
        for store_id in await memory.stores_of(running.database, organization_id):
            row = await stores.find(running.database, store_id)
            if row is None:  # deleted a moment ago
                continue
            connection = await running.runtime.ask(store(store_id), ReadConnection())
            yield before
            async for part in of_store(running.database, reader, row, connection):
                yield part
            before = b","
    yield b"]}"


async def _rows_of(reader: Reader, owner: RowOwner, whose: str) -> AsyncIterator[bytes]:
    yield b'{"id":' + orjson.dumps(whose)
    async for part in sections_of(reader, owner, whose):
        yield part
    yield b"}"
