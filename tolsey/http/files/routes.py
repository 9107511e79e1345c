"""Files for those who may see them, and the addresses that give their bytes."""

from quart import Blueprint, Response, request
from quart_schema import tag_blueprint

from tolsey.actors.refusals import Conflict, NotFound, Unavailable
from tolsey.http.answers.base import NoBody, NoContent
from tolsey.http.answers.stores.files import AddressAnswer, FileAnswer
from tolsey.http.clients.objects import ObjectGone, ObjectsAway
from tolsey.http.files.keeping import PATH
from tolsey.http.web.access import member_of, public, session, store_of
from tolsey.http.web.context import service
from tolsey.storage.records.files import DEAL_PURPOSE, FileRecord

routes = Blueprint("files", __name__, url_prefix=PATH)
tag_blueprint(routes, ["Files"])


def no_such_file() -> NotFound:
    """Say so of what is not there, is not theirs, or has served its time."""
    return NotFound(
        "This file doesn't exist or has expired. Ask for it to be uploaded or created again."
    )


def files_unavailable() -> Unavailable:
    """Refuse for now."""
    return Unavailable(
        "The file storage is unreachable. Try again in a minute.",
        code="files_unavailable",
        retryAfter=60,
    )


async def _file_of_caller(file_id: str) -> FileRecord:
    """Find a file whose store, or else organization, the caller may administer."""
    file = await service().files.find(file_id)
    if file is None:
        raise no_such_file()
    try:
        if file.store_id is not None:
            await store_of(file.store_id, at_least="admin")
        else:
            await member_of(file.organization_id, at_least="admin")
    except NotFound as error:
        raise no_such_file() from error
    return file


@routes.get("/<file_id>")
@session
async def get_file(file_id: str) -> AddressAnswer:
    """Read what a file is, and an address that gives its bytes for a minute, without a session."""
    file = await _file_of_caller(file_id)
    # The deal's own route checks what the stage opens, and records the view (rules/marketplace#data-room).
    if file.purpose == DEAL_PURPOSE:
        raise no_such_file()
    try:
        url, until = await service().files.address(file)
    except ObjectsAway as error:
        raise files_unavailable() from error
    return AddressAnswer(file=FileAnswer.read(file), url=url, url_expires_at=until)


@routes.delete("/<file_id>")
@session
async def delete_file(file_id: str) -> tuple[NoBody, NoContent]:
    """Delete a file before it expires. A file of a deal stays."""
    file = await _file_of_caller(file_id)
    # The deal's ledger names it, and the other party relies on it (rules/marketplace#data-room).
    if file.purpose == DEAL_PURPOSE:
        raise Conflict(
            "This file belongs to a deal's data room and can't be deleted. To read it, use"
            " GET /api/marketplace/deals/{dealId}/files/{fileId}.",
            code="file_of_deal",
        )
    try:
        await service().files.remove(file)
    except ObjectsAway as error:
        raise files_unavailable() from error
    return "", 204


@routes.get("/<file_id>/content")
@public
async def read_content(file_id: str) -> Response:
    """Give a file's bytes to whoever has its address, sent as they are read."""
    files = service().files
    # Whoever has the address may read the file until it expires, and no one else (rules/requests#files).
    if not files.is_signed(file_id, request.args.get("token", "")):
        raise no_such_file()
    file = await files.find(file_id)
    if file is None:
        raise no_such_file()
    try:
        chunks = await files.read(file)
    except ObjectGone as error:
        raise no_such_file() from error
    except ObjectsAway as error:
        raise files_unavailable() from error
    response = Response(chunks, content_type=file.content_type)
    response.headers["Content-Length"] = str(file.size)
    response.headers["Content-Disposition"] = f'attachment; filename="{file.name}"'
    return response
