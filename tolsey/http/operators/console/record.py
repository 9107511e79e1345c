"""Pages of what is on record: deliveries, and operators' acts."""

import orjson
from quart import Blueprint, Response

from tolsey.http.answers.operators.runtime import AuditAnswer, DeliveryAnswer
from tolsey.http.layout.answers import answer_with_pages, shown
from tolsey.http.layout.catalogue import _
from tolsey.http.operators import admin
from tolsey.http.operators.admin import AuditQuery, DeliveryQuery
from tolsey.http.operators.console.tables import (
    TableCell,
    TableFilter,
    TableLine,
    TablePage,
    asked_for,
)
from tolsey.http.web.access import page, require_administrator

routes = Blueprint("console_record", __name__, url_prefix="/admin")
answer_with_pages(routes)


def found_at(id: str | None) -> TableCell:
    """Lead to what an id stands for."""
    return TableCell(text=id, address=f"/admin/find?q={id}") if id else TableCell()


@routes.get("/webhooks")
@page
async def show_webhooks() -> Response:
    """Show what the commerce platform delivered, newest first."""
    await require_administrator()
    found = await admin.webhooks(query_args=asked_for(DeliveryQuery))
    return shown(
        TablePage(
            section="/admin/webhooks",
            title=_("Webhooks"),
            lead=_("What the commerce platform delivered and was taken, newest first."),
            choices=[
                TableFilter(name="storeId", label=_("Store")),
                TableFilter(name="topic", label=_("Topic")),
            ],
            columns=(_("Came"), _("Topic"), _("Shop"), _("Store"), _("Delivery")),
            lines=[_of_delivery(one) for one in found.items],
            nothing=_("Nothing was delivered."),
            following=found.next_cursor,
        )
    )


def _of_delivery(one: DeliveryAnswer) -> TableLine:
    return TableLine(
        (
            TableCell(at=one.created_at),
            TableCell(text=one.topic),
            TableCell(text=one.shop_domain),
            found_at(one.store_id),
            TableCell(text=one.delivery_id),
        )
    )


@routes.get("/audit")
@page
async def show_audit() -> Response:
    """Show who did what and why, newest first."""
    await require_administrator()
    found = await admin.audit_log(query_args=asked_for(AuditQuery))
    return shown(
        TablePage(
            section="/admin/audit",
            title=_("Audit"),
            lead=_("Who did what, when and why. No row is ever changed."),
            choices=[
                TableFilter(name="subject", label=_("What it was done to")),
                TableFilter(name="actor", label=_("Who did it")),
                TableFilter(name="organizationId", label=_("Organization")),
                TableFilter(name="event", label=_("Event")),
            ],
            columns=(_("When"), _("Event"), _("What it was done to"), _("Who did it"), _("Said")),
            lines=[_of_audit(one) for one in found.items],
            nothing=_("Nothing of this is on record."),
            following=found.next_cursor,
        )
    )


def _of_audit(one: AuditAnswer) -> TableLine:
    return TableLine(
        (
            TableCell(at=one.created_at),
            TableCell(text=one.event),
            TableCell(text=one.subject),
            found_at(one.actor),
            TableCell(text=orjson.dumps(one.metadata).decode() if one.metadata else ""),
        )
    )
