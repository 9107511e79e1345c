"""What a store's shop sold before it was connected: from when on orders are known, and the import."""

from quart import Blueprint
from quart_schema import tag_blueprint

from tolsey.actors.store.imports.messages import BeginImport, StopImport
from tolsey.actors.store.messages import store
from tolsey.http.answers.base import Accepted
from tolsey.http.answers.stores.connection import OrderHistoryAnswer
from tolsey.http.web import policies
from tolsey.http.web.access import caller, session, store_of
from tolsey.http.web.context import ask, now, service
from tolsey.http.web.limits import limited
from tolsey.storage.commerce import order_imports

routes = Blueprint("order_history", __name__, url_prefix="/api/stores/<store_id>/order-history")
tag_blueprint(routes, ["Stores"])


@routes.get("")
@session
async def get_order_history(store_id: str) -> OrderHistoryAnswer:
    """Tell from when on every order of a store is known, and how far the import of earlier ones is."""
    await store_of(store_id)
    return await _history(store_id)


@routes.post("/import")
@session
@limited(policies.ORDER_IMPORTS)
async def begin_order_import(store_id: str) -> tuple[OrderHistoryAnswer, Accepted]:
    """Import what the shop sold before it was connected, or go on with an import that stands.

    It begins by itself when a store is connected. One that runs is left to run; one that is done is made
    anew. 60 days are imported, or all orders where the app has the scope `read_all_orders`.
    """
    await store_of(store_id, at_least="admin")
    await ask(store(store_id), BeginImport(user_id=caller().user_id, at=now()))
    return await _history(store_id), 202


@routes.delete("/import")
@session
async def stop_order_import(store_id: str) -> OrderHistoryAnswer:
    """Stop the import where it is; what was imported stays, and beginning again goes on from there."""
    await store_of(store_id, at_least="admin")
    await ask(store(store_id), StopImport(user_id=caller().user_id, at=now()))
    return await _history(store_id)


async def _history(store_id: str) -> OrderHistoryAnswer:
    return OrderHistoryAnswer.of(await order_imports.known(service().database, store_id))
