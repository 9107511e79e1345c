"""Who may look at what of a deal, and that they did."""

from dataclasses import dataclass

from tolsey.actors.listing.deals.messages import DealView, ReadDeals
from tolsey.actors.listing.deals.rooms import BASIC, FULL, level_of, may_read
from tolsey.actors.listing.messages import listing
from tolsey.actors.refusals import Forbidden
from tolsey.http.deals.parties import Party, party_to
from tolsey.http.web.access import caller
from tolsey.http.web.context import ask, new_id, now, service
from tolsey.storage.records.selling.deals import DealFile, DealViewing, Side
from tolsey.storage.selling import deals


@dataclass(frozen=True, slots=True)
class RoomVisit:
    """The caller in a data room: a seller and an operator read all of it, a buyer what the stage opens."""

    party: Party
    view: DealView
    level: int

    def may_read(self, file: DealFile) -> bool:
        """Whether the caller may read a file."""
        sides = self.party.roles or (Side.SELLER,)
        return any(may_read(file, side, self.level) for side in sides)

    async def note(self, what: str) -> None:
        """Write down that the caller looks at something, before they do."""
        viewing = DealViewing(
            id=new_id("view"),
            deal_id=self.party.deal.id,
            role=self.party.role,
            user_id=caller().user_id,
            what=what,
            at=now(),
        )
        await deals.note_viewing(service().database, viewing)


async def visit(deal_id: str) -> RoomVisit:
    """Enter the data room of a deal; 403 for a buyer to whom the stage opens nothing."""
    party = await party_to(deal_id)
    (view,) = await ask(listing(party.deal.listing_id), ReadDeals((deal_id,), now()))
    is_buyer = set(party.roles) == {Side.BUYER}
    level = level_of(view.deal, paused=view.paused) if is_buyer else FULL
    # Nothing private before the NDA (rules/marketplace#data-room).
    if level < BASIC:
        raise Forbidden(
            "The data room is available after the NDA is signed and while the deal is open."
            " Sign the NDA first."
        )
    return RoomVisit(party, view, level)
