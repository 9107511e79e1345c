"""Stores: made within the plan, read, and deleted with their memory (rules/accounts#stores)."""

import secrets
from contextlib import suppress

import structlog
from quart import Blueprint
from quart_schema import tag_blueprint

from tolsey.actors.listing.messages import WithdrawListing, listing
from tolsey.actors.organization.messages import organization
from tolsey.actors.organization.stores.messages import CloseStore, OpenStore
from tolsey.actors.refusals import Conflict, NotFound, Refusal, Unavailable
from tolsey.actors.store.connection.messages import LeaveShop, ReadConnection
from tolsey.actors.store.memory.messages import ForgetMemory
from tolsey.actors.store.messages import store
from tolsey.http.answers.base import Created, ListAnswer, NoBody, NoContent, list_of
from tolsey.http.answers.stores.connection import ConnectionAnswer, StoreAnswer
from tolsey.http.clients.vectors import VectorStoreFailed
from tolsey.http.web import limits, policies
from tolsey.http.web.access import caller, member_of, session, store_of
from tolsey.http.web.api_model import ApiModel, Identifier, Name
from tolsey.http.web.context import ask, new_id, now, service
from tolsey.http.web.paging import OrganizationQuery
from tolsey.http.web.repeats.idempotency import idempotent
from tolsey.storage.chat import memory
from tolsey.storage.commerce import stores
from tolsey.storage.commerce.stores import SALT_BYTES
from tolsey.storage.errors import StorageError
from tolsey.storage.records.commerce.connection import PROVIDER
from tolsey.storage.selling import deals, listings

routes = Blueprint("stores", __name__, url_prefix="/api/stores")
tag_blueprint(routes, ["Stores"])
log = structlog.get_logger()


class StoreBody(ApiModel):
    """A store to be made."""

    organization_id: Identifier
    name: Name


@routes.get("")
@session
async def list_stores(query_args: OrganizationQuery) -> ListAnswer[StoreAnswer]:
    """List the stores of the caller's organizations, or of one of them."""
    if query_args.organization_id is not None:
        await member_of(query_args.organization_id)
    found = await stores.stores_for(
        service().database,
        caller().user_id,
        query_args.organization_id,
        query_args.after,
        query_args.limit + 1,
    )
    return list_of(found, query_args.limit, key=lambda row: row.id, answer=StoreAnswer.read)


@routes.post("")
@session
@limits.limited(policies.STORE_CREATION)
@idempotent
async def create_store(data: StoreBody) -> tuple[StoreAnswer, Created]:
    """Make a store, if the organization's plan includes one more."""
    await member_of(data.organization_id, at_least="admin")
    store_id = new_id("store")
    salt = stores.seal_salt(service().vault, store_id, secrets.token_bytes(SALT_BYTES))
    opened = await ask(
        organization(data.organization_id),
        OpenStore(
            store_id=store_id, name=data.name, user_id=caller().user_id, at=now(), sealed_salt=salt
        ),
    )
    whose = data.organization_id
    return StoreAnswer.read(opened, id=opened.store_id, organization_id=whose), 201


@routes.get("/<store_id>")
@session
async def get_store(store_id: str) -> StoreAnswer:
    """Read a store."""
    return StoreAnswer.read(await store_of(store_id))


@routes.delete("/<store_id>")
@session
async def delete_store(store_id: str) -> tuple[NoBody, NoContent]:
    """Purge a store's vector namespaces, withdraw its listing, erase its grant, delete it; without the purge it stays."""
    row = await store_of(store_id, at_least="admin")
    # Nobody leaves a buyer without what they buy (rules/accounts#people-who-leave).
    if await deals.is_store_selling(service().database, store_id):
        raise Conflict(
            "This store is part of an open deal. End the deal, then delete the store.",
            code="open_deals",
        )
    try:
        await service().vectors.purge(memory.namespaces_of(store_id))
    except (StorageError, VectorStoreFailed, Refusal) as error:
        log.warning("store.vector_purge_failed", store_id=store_id, reason=type(error).__name__)
        raise Unavailable(
            "The store's memory couldn't be deleted, so the store wasn't deleted either. Try"
            " again in a minute.",
            code="vector_purge_failed",
            retryAfter=5,
        ) from error
    leaver = caller().user_id
    # Not before the purge: a store that stays keeps its listing.
    for listing_id in await listings.to_withdraw(service().database, store_id):
        await ask(listing(listing_id), WithdrawListing(now(), leaver, owner_goes=True))
    await ask(store(store_id), ForgetMemory(now()))
    with suppress(NotFound):  # never connected
        await ask(store(store_id), LeaveShop(now(), leaver))
    closing = CloseStore(store_id, leaver, now())
    if not await ask(organization(row.organization_id), closing):
        raise NotFound(
            "This store doesn't exist, or you don't have access to it. Check the link or the id."
        )
    await service().agents.access_tokens.forget()
    return "", 204


@routes.get("/<store_id>/integrations/<provider>")
@session
async def get_connection(store_id: str, provider: str) -> ConnectionAnswer:
    """Read a store's connection; no secret is ever in it."""
    await store_of(store_id)
    if provider != PROVIDER:
        raise NotFound("This integration doesn't exist. Check its name.")
    return ConnectionAnswer.of(await ask(store(store_id), ReadConnection()))
