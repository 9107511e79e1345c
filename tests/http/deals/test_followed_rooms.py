"""The room of a deal is told when something of it moved, for each party what that party sees."""

import re

from tests.http.deals.table import Table
from tests.http.people import Person
from tolsey.storage.database import Database
from tolsey.storage.records.selling.deals import Side
from tolsey.storage.selling import deals


async def seen_by(who: Person, deal_id: str) -> str:
    """Open the room; answer what its page says that it shows."""
    page = await who.browser.get(f"/deals/{deal_id}", headers={"Accept": "text/html"})
    assert page.status_code == 200, page.text
    (seen,) = re.findall(rf'data-follows="/deals/{deal_id}/events\?seen=(\w+)"', page.text)
    return str(seen)


async def test_a_room_is_another_once_the_other_party_moved_and_the_same_until_then(
    table: Table,
) -> None:
    deal = (await table.access(table.ben)).json()
    before = {who.email: await seen_by(who, deal["id"]) for who in (table.ann, table.ben)}
    for who in (table.ann, table.ben):
        assert await seen_by(who, deal["id"]) == before[who.email], "to look at it moves nothing"
    let_in = await table.advance(table.ann, deal, "access.approve")
    assert let_in.status_code == 200, let_in.text
    for who in (table.ann, table.ben):
        assert await seen_by(who, deal["id"]) != before[who.email], who.email


async def test_a_room_is_another_for_the_party_alone_whose_agent_prepared_an_answer(
    table: Table, database: Database
) -> None:
    deal = (await table.access(table.ben)).json()["id"]
    sides = {side: await deals.version(database, deal, [side]) for side in Side}
    await database.execute(
        "INSERT INTO deal_offers (id, deal_id, side, status, amount, currency, type, terms, inventory, contingencies, valid_until, made_by, made_at)"
        " VALUES ('offer_1', $1, 'buyer', 'PENDING', 1, 'USD', 'CASH', '{}', 'INCLUDED', '[]', now(), $2, now())",
        deal,
        table.ben.user_id,
    )
    await database.execute(
        "INSERT INTO offer_drafts (offer_id, deal_id, side, organization_id, reply, drafted_by, drafted_at)"
        " VALUES ('offer_1', $1, 'seller', $2, 'accept', $3, now())",
        deal,
        table.ann.organization_id,
        table.ann.user_id,
    )
    assert await deals.version(database, deal, [Side.SELLER]) != sides[Side.SELLER]
    assert await deals.version(database, deal, [Side.BUYER]) == sides[Side.BUYER]


async def test_who_is_no_party_is_told_of_no_room(table: Table) -> None:
    deal = (await table.access(table.ben)).json()["id"]
    for path in (f"/deals/{deal}/events", "/deals/deal_none/events"):
        answer = await table.eve.browser.get(path, headers={"Accept": "text/html"})
        assert answer.status_code == 404, answer.text
