"""Files of a data room, what only buyers under an NDA read of a listing, and the log of who looked."""

from datetime import timedelta
from typing import Annotated, Final, Literal

from pydantic import StringConstraints
from quart import Blueprint, request
from quart_schema import tag_blueprint
from werkzeug.exceptions import RequestEntityTooLarge

from tolsey.actors.listing.deals.cases import LETTERS
from tolsey.actors.listing.deals.messages import AddDealFile
from tolsey.actors.listing.deals.rooms import BASIC, FULL
from tolsey.actors.listing.messages import listing
from tolsey.actors.refusals import NotFound
from tolsey.http.answers.base import Created, ListAnswer, list_of
from tolsey.http.answers.market.deals import (
    DealFileAddressAnswer,
    DealFileAnswer,
    DealListingAnswer,
    DealViewingAnswer,
)
from tolsey.http.clients.objects import FileTooLarge, ObjectsAway
from tolsey.http.deals.figures import exact_figures
from tolsey.http.deals.parties import Party
from tolsey.http.deals.room.entering import visit
from tolsey.http.files.inspection import inspected, type_of
from tolsey.http.files.routes import files_unavailable, no_such_file
from tolsey.http.files.uploads import upload
from tolsey.http.selling.bodies import DocumentKind
from tolsey.http.selling.listing_views import private_of, to_anyone
from tolsey.http.web import limits, policies
from tolsey.http.web.access import caller, session
from tolsey.http.web.api_model import ApiModel
from tolsey.http.web.context import ask, new_id, now, service
from tolsey.http.web.paging import PageQuery
from tolsey.storage.records.files import DEAL_PURPOSE, FileRecord
from tolsey.storage.records.selling.deals import DealFile, Side
from tolsey.storage.selling import deals, listings

LARGEST_FILE: Final = 100 * 1024 * 1024
KEPT_FOR: Final = timedelta(days=7 * 365)
"""As long as the ledger that names them."""

routes = Blueprint("data_rooms", __name__, url_prefix="/api/marketplace/deals/<deal_id>")
tag_blueprint(routes, ["Deals"])


class FileQuery(ApiModel):
    """What a file is called and about, and from which level on a buyer reads it."""

    name: Annotated[
        str,
        StringConstraints(
            strip_whitespace=True,
            min_length=1,
            max_length=160,
            pattern=r'^[^\x00-\x1f\x7f"/\\]+$',
        ),
    ]
    kind: DocumentKind = "other"
    level: Literal["1", "2"] = "2"


@routes.post("/files")
@session
@limits.limited(policies.DEAL_FILES)
async def add_file(deal_id: str, query_args: FileQuery) -> tuple[DealFileAnswer, Created]:
    """Put a file, sent as the body in its own type, into a deal's data room: up to 100 MiB, looked at as it comes."""
    visited = await visit(deal_id)
    side = visited.party.side()
    content_type = request.mimetype
    wanted = type_of(content_type, query_args.name)
    whose = visited.party.deal.seller_id if side is Side.SELLER else visited.party.deal.buyer_id
    file_id = new_id("file")

    def row(sha256: str, size: int) -> FileRecord:
        return FileRecord(
            id=file_id,
            organization_id=whose,
            store_id=None,
            purpose=DEAL_PURPOSE,
            name=query_args.name,
            content_type=content_type,
            sha256=sha256,
            size=size,
            created_by=caller().user_id,
            created_at=now(),
            expires_at=now() + KEPT_FOR,
        )

    try:
        kept = await service().files.keep(inspected(upload(), wanted), LARGEST_FILE, row)
    except FileTooLarge as error:
        raise RequestEntityTooLarge("The file exceeds 100 MiB. Upload a smaller file.") from error
    except ObjectsAway as error:
        raise files_unavailable() from error
    return DealFileAnswer.of(await _entered(visited.party, kept, side, query_args)), 201


async def _entered(party: Party, kept: FileRecord, side: Side, query: FileQuery) -> DealFile:
    file = DealFile(
        id=kept.id,
        deal_id=party.deal.id,
        side=side,
        level=int(query.level) if side is Side.SELLER else BASIC,
        kind=query.kind,
        name=kept.name,
        content_type=kept.content_type,
        sha256=kept.sha256,
        size=kept.size,
        added_by=kept.created_by,
        added_at=kept.created_at,
    )
    message = AddDealFile(file=file, actor=LETTERS[side], at=kept.created_at)
    try:
        await ask(listing(party.deal.listing_id), message)
    except Exception:
        # What no ledger names is nobody's: its bytes go at once, not in seven years.
        await service().files.remove(kept)
        raise
    return file


@routes.get("/files")
@session
async def list_files(deal_id: str, query_args: PageQuery) -> ListAnswer[DealFileAnswer]:
    """List the files of a deal's data room, newest first; one that the stage does not open yet is only named by kind."""
    visited = await visit(deal_id)
    found = await deals.files_of(
        service().database, deal_id, query_args.after or None, query_args.limit + 1
    )
    return list_of(
        found,
        query_args.limit,
        key=lambda file: file.id,
        answer=lambda file: DealFileAnswer.of(file, is_open=visited.may_read(file)),
    )


@routes.get("/files/<file_id>")
@session
async def get_deal_file(deal_id: str, file_id: str) -> DealFileAddressAnswer:
    """Read what a file is, and an address that gives its bytes for 60 seconds; who asked is written down."""
    visited = await visit(deal_id)
    database = service().database
    file = await deals.file_of(database, deal_id, file_id)
    kept = await service().files.find(file_id)
    # What the stage does not open is not there (rules/marketplace#data-room).
    if file is None or kept is None or not visited.may_read(file):
        raise no_such_file()
    await visited.note(file_id)
    try:
        url, until = await service().files.address(kept)
    except ObjectsAway as error:
        raise files_unavailable() from error
    return DealFileAddressAnswer(file=DealFileAnswer.of(file), url=url, url_expires_at=until)


@routes.get("/listing")
@session
async def get_listing_of_deal(deal_id: str) -> DealListingAnswer:
    """Read a listing with what only buyers under an NDA see; who looked is written down."""
    visited = await visit(deal_id)
    view = await listings.find(service().database, visited.party.deal.listing_id)
    if view is None:
        raise NotFound(
            "This listing doesn't exist, or you don't have access to it. Check the link or the id."
        )
    await visited.note("listing")
    return DealListingAnswer(
        listing=to_anyone(view, now()),
        domain=view.listing.domain,
        private=private_of(view.listing),
        level=visited.level,
        # Live for as long as the buyer looks into the business (rules/marketplace#figures).
        figures=exact_figures(view) if visited.level >= FULL else None,
    )


@routes.get("/views")
@session
async def list_viewings(deal_id: str, query_args: PageQuery) -> ListAnswer[DealViewingAnswer]:
    """List who looked at what of a deal's data room, newest first."""
    await visit(deal_id)
    found = await deals.viewings(
        service().database, deal_id, query_args.after or None, query_args.limit + 1
    )
    return list_of(found, query_args.limit, key=lambda one: one.id, answer=DealViewingAnswer.read)
