"""How a deal moves: by the machine, its guards and its marks, and what follows for its listing.

A turn may move several deals: whatever it comes to is one commit.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any, Final

from tolsey.actors.listing import lifecycle, machines
from tolsey.actors.listing.deals import ledger, marks, timers
from tolsey.actors.listing.deals.cases import LEADING, DealCase, Stage
from tolsey.actors.listing.deals.ledger import Happening
from tolsey.actors.listing.deals.messages import NO_FIELDS, DealFields, DealView, LookForOwner
from tolsey.actors.listing.deals.moves import target_of
from tolsey.actors.listing.deals.signatures import chain
from tolsey.actors.listing.deals.views import turn_of, view_of
from tolsey.actors.listing.lifecycle import ListingEvent
from tolsey.actors.listing.machines import BUYER, CLOCK, OPERATOR, SELLER
from tolsey.actors.listing.state import DealHead, ListingState
from tolsey.actors.listing.verification import source
from tolsey.actors.mail import MailEvent, TellPeople
from tolsey.actors.refusals import NotFound
from tolsey.runtime.decision import Decision, Effect, Perform
from tolsey.storage.records.journal import audit_record
from tolsey.storage.records.selling.deals import (
    BINDING,
    OPEN_SIGNATURES,
    DealOffer,
    DealThread,
    LegalSignature,
    OfferStatus,
    Side,
)
from tolsey.storage.records.selling.listing import ListingRecord

SERVICE: Final = "service"
"""Who moves what nobody moves."""


@dataclass(slots=True)
class DealTurn:
    """What one turn does to the deals of a listing: the state after it, what is written, what follows."""

    state: ListingState
    at: datetime
    records: list[Any] = field(init=False, default_factory=list)
    effects: list[Effect] = field(init=False, default_factory=list)

    def head(self, deal_id: str) -> DealHead:
        """Find a thread. Raises NotFound."""
        found = self.state.deals.get(deal_id)
        if found is None:
            raise NotFound(
                "This deal doesn't exist, or you don't have access to it. Check the link or the id."
            )
        return found

    def put(self, head: DealHead) -> None:
        """Keep a thread as it is now."""
        self.state = self.state.with_deal(head)

    def enter(
        self,
        head: DealHead,
        after: DealThread,
        *,
        event: str,
        actor: str,
        by: str,
        given: DealFields = NO_FIELDS,
        offer: DealOffer | None = None,
        facts: Mapping[str, Any] | None = None,
    ) -> DealThread:
        """Write a line of a deal's ledger, and keep the deal as it is after it."""
        happening = Happening(
            event=event,
            actor=actor,
            by=by,
            # A timer that comes late says when it was due: its line is no older than the one before.
            at=max(self.at, head.deal.moved_at),
            before=head.deal,
            after=after,
            given=given,
            offer=offer,
            facts=facts,
        )
        kept, line = ledger.written(happening)
        self.records.append(line)
        if offer is not None:
            self.records.append(offer)
        self.put(replace(head, deal=kept, offer=offer or head.offer))
        return kept

    def note(
        self,
        head: DealHead,
        signature: LegalSignature,
        event: str,
        *,
        by: str,
        role: str,
        data: Mapping[str, Any],
    ) -> LegalSignature:
        """Move a signature, write the line of its chain, and keep it as it is after it."""
        kept, line = chain.happened(signature, event, at=self.at, by=by, role=role, data=data)
        self.records += [line, kept]
        self.put(replace(head, signature=kept))
        return kept

    def move(
        self,
        deal_id: str,
        event: str,
        *,
        actor: str,
        by: str = SERVICE,
        given: DealFields = NO_FIELDS,
        may_sell: bool = True,
        offer: DealOffer | None = None,
        facts: Mapping[str, Any] | None = None,
    ) -> DealThread:
        """Move a deal, and whatever follows from that. Raises what refuses it."""
        head = self.head(deal_id)
        case = DealCase(
            state=self.state,
            deal=head.deal,
            offer=offer or head.offer,
            actor=actor,
            at=self.at,
            given=given,
            may_sell=may_sell,
        )
        to = target_of(case, event)
        before = head.deal
        made = marks.of(case, event, to)
        entered = before.entered_at if to is before.stage else self.at
        after = replace(before, stage=to, entered_at=entered, **made)
        kept = self.enter(
            head,
            after,
            event=event,
            actor=actor,
            by=by,
            given=case.given,
            offer=offer,
            facts=facts,
        )
        if timers.timer_of(kept) != timers.timer_of(before):
            self.effects += timers.set_for(kept)
        self.tell(kept, event, actor)
        self._note(before, kept, event, actor, by)
        self._follow(before, kept, event, by)
        return self.head(deal_id).deal

    def tell(self, deal: DealThread, event: str, actor: str) -> None:
        """Write to the party that did not act, or to both."""
        listing = self.state.listing
        for side, letter in ((Side.BUYER, BUYER), (Side.SELLER, SELLER)):
            # A seller who sold knows what became of everyone else.
            is_known = letter == actor or (event == "listing.gone" and side is Side.SELLER)
            if is_known or listing is None:
                continue
            call = TellPeople(
                event=MailEvent.DEAL_MOVED,
                organization_id=deal.buyer_id if side is Side.BUYER else deal.seller_id,
                about=f"{deal.id}/{deal.seq}/{event}",
                facts={
                    "deal": deal.id,
                    "title": listing.title,
                    "stage": deal.stage,
                    "event": event,
                    "yours": "yes" if turn_of(self.head(deal.id)) in (side, "both") else "",
                },
            )
            self.effects.append(Perform(call, key=f"{deal.id}/{deal.seq}/{event}/{side}"))

    def _follow(self, before: DealThread, after: DealThread, event: str, by: str) -> None:
        """Do what a move means for offers, for the listing and for the other threads."""
        if before.stage is after.stage:
            return
        if event == "offer.reopen":
            self._end_offer(after, "supersede")
        elif after.stage in machines.DEAL.final:
            self._end_offer(after, "timer")
        self._void_document(after, event)
        if after.stage is Stage.TRANSFERRING:
            self._look_for_owner(after)
        if after.stage is Stage.REFUNDED:
            self._audit(after, by, "refunded")
        was, now = before.stage in BINDING, after.stage in BINDING
        if now and not was:
            self._list(ListingEvent.OFFER_ACCEPTED)
        elif after.stage is Stage.CLOSED and was:
            self._sell(after, by)
        elif after.stage is Stage.REFUNDED and before.stage is not Stage.ESCROW_FUNDED:
            self._list(ListingEvent.DEAL_REFUNDED)
        elif was and not now:
            self._list(ListingEvent.DEAL_LOST)

    def _look_for_owner(self, deal: DealThread) -> None:
        """Let the platform say whether the buyer owns the shop already; later it says so by itself."""
        store_id = lifecycle.existing(self.state).store_id
        if store_id is not None:
            call = LookForOwner(store_id=store_id, organization_id=deal.seller_id)
            self.effects.append(Perform(call, key=f"{deal.id}/{deal.seq}/owner"))

    def _end_offer(self, deal: DealThread, event: str) -> None:
        """End the offer that stands when its deal ends or is opened again."""
        head = self.head(deal.id)
        offer = head.offer
        move = machines.OFFER.move(offer.status, event) if offer is not None else None
        if offer is not None and move is not None:
            ended = replace(offer, status=OfferStatus(move.to), ended_at=self.at)
            self.enter(head, deal, event=f"offer.{event}", actor=CLOCK, by=SERVICE, offer=ended)

    def _void_document(self, deal: DealThread, event: str) -> None:
        """End the document that waits for signatures when its deal goes elsewhere."""
        head = self.head(deal.id)
        if head.signature is not None and head.signature.status in OPEN_SIGNATURES:
            data = {"reason": event}
            self.note(head, head.signature, "void", by=SERVICE, role="service", data=data)

    def _list(self, event: ListingEvent) -> ListingRecord:
        """Move the listing as its deal moved."""
        record = lifecycle.existing(self.state)
        moved = lifecycle.moved(record, event, CLOCK)
        self.state = replace(self.state, listing=moved)
        return moved

    def _sell(self, deal: DealThread, by: str) -> None:
        """Take the business off the market: others lose, and its shop is read no more."""
        self._list(ListingEvent.DEAL_CLOSED)
        self.state, ended = source.released(self.state, self.at, reason="sold", by=by)
        self.records += ended
        self._audit(deal, by, "closed")
        self.close_others()

    def close_others(self) -> None:
        """End the threads that wait for nothing any more, now that the listing is gone."""
        for id, head in self.state.deals.items():
            if machines.DEAL.move(head.deal.stage, "listing.gone") is not None:
                self.move(id, "listing.gone", actor=CLOCK)

    def _note(self, before: DealThread, after: DealThread, event: str, actor: str, by: str) -> None:
        """Put on record what an operator decided, and whoever left a deal that they were bound by."""
        said = {"move": event, "from": before.stage, "to": after.stage}
        if actor == OPERATOR:
            said["reason"] = after.reason or ""
            self.records.append(audit_record("admin.deal.moved", after.id, None, by, **said))
        elif event == "decline" and before.stage in LEADING:
            broken = audit_record(
                "marketplace.exclusivity_broken", after.id, after.seller_id, by, **said
            )
            self.records.append(broken)
        elif event == "timer.21d_unfunded":
            unfunded = audit_record("marketplace.unfunded", after.id, after.buyer_id, by, **said)
            self.records.append(unfunded)

    def _audit(self, deal: DealThread, by: str, outcome: str) -> None:
        for organization_id in (deal.seller_id, deal.buyer_id):
            record = audit_record(
                "marketplace.transaction",
                deal.id,
                organization_id,
                by,
                outcome=outcome,
                amount=deal.price,
                currency=deal.currency,
            )
            self.records.append(record)

    def decision(self, deal_id: str) -> Decision[ListingState, DealView]:
        """Answer with a deal as it is after the turn."""
        return Decision(
            self.state, view_of(self.state, deal_id, self.at), self.records, self.effects
        )
