"""Who somebody is in a deal: a party, an operator, or nobody; and how its listing is asked about it."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from tolsey.actors.listing import machines
from tolsey.actors.listing.deals.cases import LETTERS
from tolsey.actors.listing.deals.messages import DealView, ReadDeals
from tolsey.actors.listing.machines import OPERATOR
from tolsey.actors.listing.messages import listing
from tolsey.actors.refusals import Forbidden, NotFound, Refusal
from tolsey.http.answers.market.deals import DealAnswer
from tolsey.http.billing.payout_accounts import require_seller_account
from tolsey.http.web.access import RANKS, caller, is_administrator
from tolsey.http.web.context import ask, new_id, now, service
from tolsey.runtime.errors import Duplicate
from tolsey.runtime.messages import ActorId, Message
from tolsey.storage.people import accounts
from tolsey.storage.records.selling.deals import DealThread, LegalSignature, Side
from tolsey.storage.runtime import journal_turns
from tolsey.storage.selling import deals

OF_OPERATOR: Final = "operator"
LAST_TURNS: Final = 200
"""Among so many turns of a listing the first attempt of a repeated act is looked for."""


@dataclass(frozen=True, slots=True)
class Party:
    """The caller in a deal: each side that they are of, with their role there; or an operator."""

    deal: DealThread
    roles: dict[Side, str]
    operates: bool

    @property
    def role(self) -> str:
        """Say as whom the caller sees the deal: as a party, if they are one."""
        return next(iter(self.roles), OF_OPERATOR)

    def acting(self, event: str) -> str:
        """Say as whom the caller makes a move: as the side that has it, and may speak for it.

        Who signs and acts for a party is one of its owners or admins; 403 for other members.
        """
        own = [side for side in self.roles if self._knows(LETTERS[side], event)]
        if not own and self.operates:
            return OPERATOR
        return LETTERS[self._speaking(own or list(self.roles))]

    def _knows(self, letter: str, event: str) -> bool:
        move = machines.DEAL.move(self.deal.stage, event)
        return letter in move.actors if move else machines.DEAL.knows(letter, event)

    def side(self) -> Side:
        """Say for which party the caller speaks in an offer; 403 for who speaks for none."""
        return self._speaking(list(self.roles))

    def _speaking(self, sides: Sequence[Side]) -> Side:
        may = [side for side in sides if RANKS[self.roles[side]] >= RANKS["admin"]]
        if not may:
            raise Forbidden(
                "Only an owner or admin can do this. Ask one of them to do it, or to change"
                " your role.",
                required="admin",
            )
        return may[0]


async def party_to(deal_id: str) -> Party:
    """Tell who the caller is in a deal; 404 for who is nobody in it, as for one that is not there."""
    database, user_id = service().database, caller().user_id
    deal = await deals.find(database, deal_id)
    if deal is None:
        raise NotFound(
            "This deal doesn't exist, or you don't have access to it. Check the link or the id."
        )
    roles: dict[Side, str] = {}
    for side, organization_id in ((Side.BUYER, deal.buyer_id), (Side.SELLER, deal.seller_id)):
        role = await accounts.role_in(database, user_id, organization_id)
        if role is not None:
            roles[side] = role
    operates = await is_administrator()
    if not roles and not operates:
        raise NotFound(
            "This deal doesn't exist, or you don't have access to it. Check the link or the id."
        )
    return Party(deal, roles, operates)


async def signature_of(signature_id: str) -> tuple[Party, LegalSignature]:
    """Tell who the caller is in the deal of a document; 404 for who is nobody in it."""
    found = await deals.deal_of_signature(service().database, signature_id)
    if found is None:
        raise NotFound(
            "This document doesn't exist, or you don't have access to it. Check the link or the id."
        )
    try:
        return await party_to(found[0].id), found[1]
    except NotFound as error:
        raise NotFound(
            "This document doesn't exist, or you don't have access to it. Check the link or the id."
        ) from error


async def may_sell(organization_id: str) -> bool:
    """Whether a seller can be paid, for the moves that hang on it."""
    try:
        await require_seller_account(organization_id)
    except Refusal:
        return False
    return True


async def told(party: Party, message: Message[DealView]) -> DealAnswer:
    """Send a deal's message to its listing, and return the deal; a repeat of a committed act returns it, too."""
    to, id = listing(party.deal.listing_id), new_id("move")
    try:
        view = await ask(to, message, id=id)
    except (Duplicate, Refusal) as error:
        # The first attempt under this Idempotency-Key moved the deal, so the repeat is refused at its new stage.
        if isinstance(error, Refusal) and not await _has_been_taken(to, id):
            raise
        (view,) = await ask(to, ReadDeals((party.deal.id,), now()))
    return DealAnswer.of(view, party.role)


async def _has_been_taken(to: ActorId, message_id: str) -> bool:
    """Return whether a message has taken effect, as the journal of its actor says."""
    turn = await journal_turns.turn_of(service().database, to.kind, to.key, message_id, LAST_TURNS)
    return turn is not None
