"""Shops of the pool for merchants: one handed out, and made their own (rules/launch#dev-stores)."""

from typing import Final

from quart import Blueprint
from quart_schema import tag_blueprint

from tolsey.actors.refusals import Conflict, Refusal
from tolsey.actors.store.messages import store
from tolsey.actors.store.provisioning.messages import ClaimDevStore, RequestTransfer
from tolsey.actors.store.provisioning.transferring import view
from tolsey.http.answers.stores.devstores import DevStoreAnswer
from tolsey.http.stores.integrations import ShopApp, connecting
from tolsey.http.web import policies
from tolsey.http.web.access import caller, session, store_of
from tolsey.http.web.api_model import ApiModel, Email, Identifier
from tolsey.http.web.context import ask, now, service
from tolsey.http.web.limits import limited
from tolsey.runtime.errors import Duplicate
from tolsey.storage.commerce import devstores
from tolsey.storage.records.commerce.devstores import DevStore

routes = Blueprint("devstores", __name__, url_prefix="/api/wizard/store")
tag_blueprint(routes, ["Launch"])

TRIED: Final = 5
"""So many shops are tried for one merchant before they are told that none is left."""


class ProvisionBody(ApiModel):
    """A store that has no shop yet."""

    store_id: Identifier


class TransferBody(ApiModel):
    """A store whose shop is to be its merchant's own, and who is to be invited."""

    store_id: Identifier
    email: Email


@routes.post("/provision")
@session
@limited(policies.STORE_CONNECT)
async def provision_store(data: ProvisionBody) -> DevStoreAnswer:
    """Hand a shop of the pool to a store, connected at once; the same again answers the same. 409 `pool_empty`."""
    await store_of(data.store_id, at_least="admin")
    database = service().database
    held = (await devstores.holdings(database, [data.store_id])).get(data.store_id)
    if held is not None:
        return DevStoreAnswer.of(view(held))
    for _ in range(TRIED):
        for one in await devstores.available(database, 1):
            found = await _handed(data.store_id, one)
            if found is not None:
                # Their agents read the shop that is connected now.
                await service().agents.access_tokens.forget()
                return found
    raise Conflict(
        "No shop is available at the moment. Connect your own shop, or try again tomorrow.",
        code="pool_empty",
    )


async def _handed(store_id: str, one: DevStore) -> DevStoreAnswer | None:
    """Hand a shop out, unless it lets nobody in or somebody else was faster."""
    domain = one.shop_domain
    client_secret, access_token = devstores.open_keys(service().vault, one)
    app = ShopApp(
        shop_domain=domain,
        client_secret=client_secret,
        client_id=one.client_id,
        access_token=access_token,
    )
    try:
        connect = await connecting(store_id, app)
    except Refusal as refusal:
        # A platform that is away says nothing of the shop.
        if refusal.code != "commerce_rejected":
            raise
        await devstores.refuse(service().database, domain, refusal.detail)
        return None
    try:
        return DevStoreAnswer.of(await ask(store(store_id), ClaimDevStore(connect=connect)))
    except Duplicate:
        return None


@routes.post("/transfer")
@session
@limited(policies.STORE_CONNECT)
async def transfer_store(data: TransferBody) -> DevStoreAnswer:
    """Have a merchant invited to take over the shop that their store was handed; they have seven days."""
    await store_of(data.store_id, at_least="admin")
    message = RequestTransfer(email=data.email, user_id=caller().user_id, at=now())
    return DevStoreAnswer.of(await ask(store(data.store_id), message))
