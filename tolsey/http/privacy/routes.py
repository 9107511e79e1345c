"""A merchant asks what is kept of one customer, or has them forgotten (rules/shops#who-asks)."""

from enum import StrEnum
from typing import Annotated, Final

from pydantic import Field
from quart import Blueprint
from quart_schema import tag_blueprint

from tolsey.actors.refusals import Conflict, NotFound
from tolsey.http.answers.base import Accepted, ListAnswer, list_of
from tolsey.http.answers.people.privacy import PrivacyRequestAnswer
from tolsey.http.answers.stores.files import AddressAnswer
from tolsey.http.files import routes as file_routes
from tolsey.http.privacy.answering import ANSWER_PURPOSE, file_id_of
from tolsey.http.privacy.opening import PrivacyRequests, PrivacyWish
from tolsey.http.web import policies
from tolsey.http.web.access import caller, session, store_of
from tolsey.http.web.api_model import ApiModel, Email
from tolsey.http.web.context import new_id, now, service
from tolsey.http.web.limits import limited
from tolsey.http.web.paging import PageQuery
from tolsey.storage import audit, files
from tolsey.storage.commerce import compliance
from tolsey.storage.records.commerce.compliance import (
    ComplianceRequest,
    ComplianceTopic,
    RequestSource,
)

routes = Blueprint("privacy", __name__, url_prefix="/api/stores/<store_id>/privacy")
tag_blueprint(routes, ["Stores"])


class PrivacyAction(StrEnum):
    """What a merchant can have done about a customer."""

    EXPORT = "export"
    ERASE = "erase"


TOPICS: Final = {
    PrivacyAction.EXPORT: ComplianceTopic.DATA_REQUEST,
    PrivacyAction.ERASE: ComplianceTopic.CUSTOMER_REDACT,
}


class PrivacyBody(ApiModel):
    """Whose data, by the address that the shop knows them by, and what shall become of it."""

    email: Email
    action: PrivacyAction
    confirmed: Annotated[
        bool, Field(description="A person has said that the customer shall be forgotten for good.")
    ] = False


@routes.get("")
@session
async def list_privacy_requests(
    store_id: str, query_args: PageQuery
) -> ListAnswer[PrivacyRequestAnswer]:
    """List what customers of a store, its shop or its merchant asked for, newest first; for owners and admins."""
    await store_of(store_id, at_least="admin")
    found = await compliance.page(
        service().database, query_args.after or None, query_args.limit + 1, store_id=store_id
    )
    shown = {one.id: one for one in await answered(store_id, found)}
    return list_of(
        found, query_args.limit, key=lambda row: row.id, answer=lambda row: shown[row.id]
    )


@routes.post("")
@session
@limited(policies.PRIVACY)
async def request_privacy(
    store_id: str, data: PrivacyBody
) -> tuple[ListAnswer[PrivacyRequestAnswer], Accepted]:
    """Have what is kept of a customer written to a file, or have the customer forgotten, within the hour.

    The address is hashed at once and not kept. There is one request for each shop that the store was
    connected to; one that is still open is answered in the place of a second.
    """
    await store_of(store_id, at_least="admin")
    # What cannot be taken back wants a person's word (rules/shops#who-asks).
    if data.action == PrivacyAction.ERASE and not data.confirmed:
        raise Conflict(
            "Erasing a customer's data can't be undone. Send `confirmed: true` to continue.",
            code="confirmation_required",
        )
    shops = await compliance.shops_of(service().database, store_id)
    if not shops:
        raise Conflict(
            "This store isn't connected to a shop, so it has no customer data. Connect it first."
        )
    opened = [await _open(store_id, shop, data) for shop in shops]
    return ListAnswer(items=await answered(store_id, opened), next_cursor=None), 202


@routes.get("/<request_id>/file")
@session
async def get_answer(store_id: str, request_id: str) -> AddressAnswer:
    """Read where the answer to a customer is given for a minute; who fetches it is on record."""
    row = await store_of(store_id, at_least="admin")
    request = await compliance.find(service().database, request_id)
    file = await service().files.find(file_id_of(request, store_id)) if request else None
    if file is None or file.purpose != ANSWER_PURPOSE:
        raise NotFound(
            "No response is available. It is ready within an hour of the request and is deleted"
            " after 30 days."
        )
    async with service().database.transaction() as tx:
        await audit.write(
            tx,
            "compliance.fetched",
            store_id,
            actor=caller().user_id,
            organization_id=row.organization_id,
            request=request_id,
            file=file.id,
        )
    address: AddressAnswer = await file_routes.get_file(file.id)
    return address


async def _open(store_id: str, shop_domain: str, data: PrivacyBody) -> ComplianceRequest:
    running = service()
    wish = PrivacyWish(
        topic=TOPICS[data.action],
        source=RequestSource.MERCHANT,
        shop_domain=shop_domain,
        body=data.email.encode(),
        delivery_id=new_id("ask"),
        email=data.email,
        stores={store_id},
        asked_by=caller().user_id,
    )
    requests = PrivacyRequests(running.database, running.vault, running.clock)
    request, _ = await requests.open(wish)
    return request


async def answered(store_id: str, requests: list[ComplianceRequest]) -> list[PrivacyRequestAnswer]:
    """Show requests about a store, each with the file of its answer while that is kept."""
    names = {one.id: file_id_of(one, store_id) for one in requests}
    kept = await files.among(service().database, list(names.values()))
    return [PrivacyRequestAnswer.of(one, kept.get(names[one.id]), now()) for one in requests]
