"""Pages of what failed for good: dead letters by their cause, and the letters of one."""

from urllib.parse import quote

from quart import Blueprint, Response

from tolsey.http.answers.operators.diagnosis import DeadLetterAnswer, DeadLetterGroupAnswer
from tolsey.http.layout.answers import answer_with_pages, shown
from tolsey.http.layout.catalogue import _
from tolsey.http.operators import dead_letters
from tolsey.http.operators.console.tables import (
    TableCell,
    TableLine,
    TablePage,
    actor_address,
    asked_for,
    number,
    state_cell,
)
from tolsey.http.operators.dead_letters import DeadLetterQuery
from tolsey.http.web.access import page, require_administrator
from tolsey.http.web.paging import PageQuery

routes = Blueprint("console_letters", __name__, url_prefix="/admin")
answer_with_pages(routes)


@routes.get("/dead-letters")
@page
async def show_dead_letters() -> Response:
    """Show what failed for good by its cause, or the letters of one cause."""
    await require_administrator()
    asked = asked_for(DeadLetterQuery)
    if asked.fingerprint is not None or asked.status != "dead":
        return shown(await _letters(asked))
    found = await dead_letters.list_groups(
        query_args=PageQuery(limit=asked.limit, cursor=asked.cursor)
    )
    return shown(
        TablePage(
            section="/admin/dead-letters",
            is_live=True,
            title=_("Dead letters, by what went wrong"),
            lead=_(
                "Messages and calls that failed for good. Nothing of them is lost: send them again once it is mended."
            ),
            columns=(_("Letters"), _("Error"), _("Message"), _("Actor"), _("First"), _("Last")),
            lines=[_of_group(one) for one in found.items],
            nothing=_("Nothing failed for good."),
            following=found.next_cursor,
        )
    )


def _of_group(one: DeadLetterGroupAnswer) -> TableLine:
    address = f"/admin/dead-letters/groups/{one.fingerprint}"
    return TableLine(
        (
            TableCell(
                text=f"{one.letters:,}{'+' if one.more else ''}",
                address=f"/admin/dead-letters?fingerprint={one.fingerprint}",
                is_amount=True,
            ),
            TableCell(text=one.error),
            TableCell(text=one.message),
            TableCell(text=one.kind),
            TableCell(at=one.first_died_at),
            TableCell(at=one.last_died_at),
        ),
        ((_("Replay…"), f"{address}/replay"), (_("Discard…"), f"{address}/discard")),
    )


async def _letters(asked: DeadLetterQuery) -> TablePage:
    found = await dead_letters.list_letters(query_args=asked)
    return TablePage(
        section="/admin/dead-letters",
        title=_("Dead letters of one cause"),
        lead=_(
            "Newest first. A replay keeps the message's own key, so that nothing is done twice."
        ),
        columns=(
            _("Letter"),
            _("Actor"),
            _("Message"),
            _("About"),
            _("Behind it"),
            _("State"),
            _("Tries"),
            _("Error"),
            _("Failed"),
        ),
        lines=[_of_letter(one) for one in found.items],
        nothing=_("No letter of this cause is left."),
        following=found.next_cursor,
    )


def _of_letter(one: DeadLetterAnswer) -> TableLine:
    address = f"/admin/dead-letters/{quote(one.id, safe='')}"
    acts = (
        (_("Replay…"), f"{address}/replay"),
        (_("Edit…"), f"{address}/edit"),
        (_("Discard…"), f"{address}/discard"),
    )
    return TableLine(
        (
            TableCell(text=one.id),
            TableCell(text=one.actor_id, address=actor_address(one.kind, one.actor_id)),
            TableCell(text=one.message),
            TableCell(text=one.about),
            number(one.behind),
            state_cell(one.status),
            number(one.attempts),
            TableCell(text=one.error),
            TableCell(at=one.died_at),
        ),
        acts if one.status == "dead" else (),
    )
