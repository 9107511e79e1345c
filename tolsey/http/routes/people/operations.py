"""What became of something that took longer than an answer waits (contract 2)."""

from typing import Any

from quart import Blueprint
from quart_schema import tag_blueprint

from tolsey.actors.refusals import NotFound
from tolsey.http.access import caller, session
from tolsey.http.context import service
from tolsey.http.operations import view
from tolsey.storage.runtime import operations

routes = Blueprint("operations", __name__, url_prefix="/api/operations")
tag_blueprint(routes, ["Operations"])


@routes.get("/<id>")
@session
async def read_operation(id: str) -> dict[str, Any]:
    """Tell how far an operation is that the caller asked for; kept for seven days after its end."""
    found = await operations.find(service().database, id)
    if found is None or found.user_id != caller().user_id:
        raise NotFound("There is no such operation.")
    return {"operation": view(found)}
