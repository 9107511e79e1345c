"""A deal at which a store is handed over, and what of it was."""

import orjson

from tests.mcp.tools.two_stores import Owner, TwoStores
from tolsey.actors.listing.deals import ledger
from tolsey.storage.records.selling.deals import DealStage, DealThread
from tolsey.storage.records.selling.listing import ListingRecord, ListingStatus
from tolsey.storage.selling import deals
from tolsey.storage.tables import table_of

THINGS = ("The store", "The domain")


async def being_sold(
    two_stores: TwoStores, name: str, seller: Owner, buyer: Owner, stage: str = "TRANSFERRING"
) -> None:
    """Bring a deal about a seller's store to a stage, as rows."""
    at = two_stores.service.clock()
    items = [
        {"id": f"asset-{n}", "title": title, "deliveredAt": None, "verdict": None, "reason": None}
        for n, title in enumerate(THINGS, 1)
    ]
    for record in (
        ListingRecord(
            id=f"lst_{name}",
            organization_id=seller.organization_id,
            store_id=seller.store_id,
            slug=name,
            title=name,
            status=ListingStatus.UNDER_OFFER,
            created_by=seller.user_id,
            created_at=at,
            seller_active_at=at,
        ),
        DealThread(
            id=f"deal_{name}",
            listing_id=f"lst_{name}",
            seller_id=seller.organization_id,
            buyer_id=buyer.organization_id,
            requested_by=buyer.user_id,
            stage=DealStage(stage),
            entered_at=at,
            created_at=at,
            moved_at=at,
            hash=ledger.first_of(f"deal_{name}"),
            leads=orjson.dumps([[at.isoformat(), None]]).decode(),
            transfer=orjson.dumps(items).decode(),
        ),
    ):
        table = table_of(type(record))
        await two_stores.database.execute(table.insert, *table.values_of(record))


async def handed_over(two_stores: TwoStores, name: str) -> list[str]:
    """List what the service delivered of a deal by itself; nothing of it is accepted."""
    deal = await deals.find(two_stores.database, f"deal_{name}")
    assert deal is not None
    items = orjson.loads(deal.transfer)
    assert not any(one["verdict"] for one in items)
    for event in await deals.events(two_stores.database, deal.id, 0, 50):
        line = orjson.loads(event.body)
        assert (line["event"], line["actor"], line["by"]) == ("transfer.deliver", "X", "service")
    return [one["title"] for one in items if one["deliveredAt"]]
