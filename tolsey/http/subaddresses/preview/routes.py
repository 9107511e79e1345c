"""Asks for the preview of a store's storefront: `POST /api/stores/{id}/preview`."""

from quart import Blueprint
from quart_schema import tag_blueprint

from tolsey.actors.store.grants import never_connected
from tolsey.http.answers.base import Created
from tolsey.http.answers.stores.connection import PreviewAnswer
from tolsey.http.subaddresses.preview.addresses import (
    PREVIEW_LIFE,
    PREVIEW_PREFIX,
    preview_origin,
    preview_token,
)
from tolsey.http.web import policies
from tolsey.http.web.access import session, store_of
from tolsey.http.web.context import now, service
from tolsey.http.web.limits import limited
from tolsey.storage.commerce import connections

routes = Blueprint("previews", __name__, url_prefix="/api/stores/<store_id>/preview")
tag_blueprint(routes, ["Stores"])


@routes.post("")
@session
@limited(policies.PREVIEWS)
async def open_preview(store_id: str) -> tuple[PreviewAnswer, Created]:
    """Give an address at which the store's storefront can be looked at for 15 minutes, without signing in."""
    await store_of(store_id)
    running = service()
    if await connections.storefront_of(running.database, store_id) is None:
        raise never_connected()
    expires_at = now() + PREVIEW_LIFE
    token = preview_token(running.vault, store_id, expires_at)
    url = f"{preview_origin(running.settings)}{PREVIEW_PREFIX}{token}/"
    return PreviewAnswer(url=url, expires_at=expires_at), 201
