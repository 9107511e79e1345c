"""Decisions about deals: who is let in, what is offered, and what time does."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from functools import wraps
from typing import Final, NoReturn, TypeVar

import orjson

from tolsey.actors.listing import lifecycle, machines
from tolsey.actors.listing.deals import ledger, timers
from tolsey.actors.listing.deals.cases import (
    LETTERS,
    DealCase,
    Stage,
    is_paused,
    open_offer,
)
from tolsey.actors.listing.deals.ledger import Happening
from tolsey.actors.listing.deals.messages import (
    AdvanceDeal,
    AnswerOffer,
    DealDue,
    DealView,
    MakeOffer,
    OfferDue,
    OfferTerms,
    ReadDeals,
    RequestAccess,
)
from tolsey.actors.listing.deals.moves import GuardFailed, allowed, target_of
from tolsey.actors.listing.deals.signatures.signing import WriteNda, add_nda
from tolsey.actors.listing.deals.turns import SERVICE, DealTurn
from tolsey.actors.listing.deals.views import offer_verbs, view_of
from tolsey.actors.listing.machines import BUYER, CLOCK, SELLER
from tolsey.actors.listing.messages import (
    ClockTick,
    RemoveListing,
    ReviewListing,
    WithdrawListing,
)
from tolsey.actors.listing.state import DealHead, ListingState
from tolsey.actors.refusals import Conflict, Forbidden, InvalidTransition, Unprocessable
from tolsey.runtime.decision import Decision
from tolsey.storage.records.selling.deals import (
    BINDING,
    DealOffer,
    DealThread,
    OfferStatus,
    Side,
)
from tolsey.storage.records.selling.listing import ListingRecord, ListingStatus

Answer = Decision[ListingState, DealView]
Silence = Decision[ListingState, None]
Ending = TypeVar("Ending", WithdrawListing, RemoveListing, ReviewListing, ClockTick)
Reply = TypeVar("Reply")

FIRST_STAGE: Final = Stage.INQUIRY
VALID_FOR: Final = timedelta(hours=72)
SHORTEST_OFFER: Final = timedelta(hours=24)
LONGEST_OFFER: Final = timedelta(days=14)
LEAST_PERCENT: Final = 15
GONE: Final = (
    ListingStatus.SOLD,
    ListingStatus.WITHDRAWN,
    ListingStatus.SUSPENDED,
    ListingStatus.EXPIRED,
)


def request(state: ListingState, message: RequestAccess, write_nda: WriteNda) -> Answer:
    """Begin a thread; where the seller lets everyone in, approve it and draw up the NDA in the same turn."""
    listing = lifecycle.existing(state)
    if message.deal_id in state.deals:
        return Decision(state, view_of(state, message.deal_id, message.at))
    # Nobody buys from themselves, or twice at once (rules/marketplace#access).
    if listing.organization_id == message.buyer_id:
        raise Conflict(
            "This listing is your own, so you can't open a deal on it.", code="own_listing"
        )
    if listing.status is not ListingStatus.ACTIVE or listing.asking_price is None:
        raise Conflict(
            "This business isn't for sale at the moment. Add its listing to your watchlist to"
            " see when that changes.",
            code="not_for_sale",
        )
    for head in state.deals.values():
        mine = head.deal.buyer_id == message.buyer_id
        if mine and head.deal.stage not in (*machines.DEAL.final, Stage.CLOSED):
            raise Conflict(
                "You already have an open deal on this listing. Continue with that deal.",
                code="deal_open",
                deal=head.deal.id,
            )
    deal = DealThread(
        id=message.deal_id,
        listing_id=state.id,
        seller_id=listing.organization_id,
        buyer_id=message.buyer_id,
        requested_by=message.by,
        stage=FIRST_STAGE,
        entered_at=message.at,
        created_at=message.at,
        moved_at=message.at,
        message=message.message,
    )
    first = Happening(
        event="access.request",
        actor=BUYER,
        by=message.by,
        at=message.at,
        before=None,
        after=deal,
    )
    kept, line = ledger.written(first)
    turn = DealTurn(state, message.at)
    turn.records.append(line)
    turn.effects += timers.set_for(kept)
    turn.put(DealHead(deal=kept))
    turn.tell(kept, "access.request", BUYER)
    if listing.auto_approve_access and message.may_sell:
        turn.move(kept.id, "access.approve", actor=SELLER)
        add_nda(turn, kept.id, write_nda, actor=SELLER, by=SERVICE)
    return turn.decision(kept.id)


def approve(state: ListingState, message: AdvanceDeal, write_nda: WriteNda) -> Answer:
    """Let a buyer in, and draw up the NDA in the same turn (rules/marketplace#access)."""
    turn = _advanced(state, message)
    add_nda(turn, message.deal_id, write_nda, actor=message.actor, by=message.by)
    return turn.decision(message.deal_id)


def advance(state: ListingState, message: AdvanceDeal) -> Answer:
    """Make a move that somebody asks for, if the deal is where they believe it to be."""
    return _advanced(state, message).decision(message.deal_id)


def _advanced(state: ListingState, message: AdvanceDeal) -> DealTurn:
    turn = DealTurn(state, message.at)
    head = turn.head(message.deal_id)
    case = DealCase(
        state=state,
        deal=head.deal,
        offer=head.offer,
        actor=message.actor,
        at=message.at,
        given=message.fields,
        may_sell=message.may_sell,
    )
    if message.expected_stage not in (None, head.deal.stage):
        view = view_of(state, message.deal_id, message.at)
        names = {BUYER: view.of_buyer, SELLER: view.of_seller}.get(message.actor, view.of_operator)
        raise InvalidTransition(
            f"The deal is now at the stage {head.deal.stage}, not {message.expected_stage}. Reload it and try again.",
            list(names),
        )
    if message.event == "diligence.open":
        # A move that isn't allowed is refused before its documents are checked.
        target_of(case, message.event)
        _check_documents(state, case, message.documents)
    turn.move(
        message.deal_id,
        message.event,
        actor=message.actor,
        by=message.by,
        given=message.fields,
        may_sell=message.may_sell,
    )
    return turn


def _check_documents(state: ListingState, case: DealCase, documents: Sequence[str]) -> None:
    """Refuse to begin due diligence before the data room has what the listing says (rules/marketplace#data-room)."""
    wanted = set(orjson.loads(lifecycle.existing(state).required_documents))
    if missing := sorted(wanted - set(documents)):
        raise GuardFailed(
            f"The data room is missing {', '.join(missing)}. Upload these documents, then try again.",
            allowed=list(allowed(case)),
            missing=missing,
        )


def offer(state: ListingState, message: MakeOffer) -> Answer:
    """Put a buyer's offer on the table."""
    turn = DealTurn(state, message.at)
    head = turn.head(message.deal_id)
    if head.offer is not None and head.offer.id == message.offer_id:
        return Decision(state, view_of(state, message.deal_id, message.at))
    if head.deal.stage is not Stage.NDA_SIGNED:
        raise InvalidTransition(
            f"Offers can't be made at the stage {head.deal.stage}. Choose one of the actions in `allowed`.",
            [],
        )
    if is_paused(state, message.deal_id):
        raise InvalidTransition(
            "Another buyer has exclusivity. Wait until it ends, then try again.", []
        )
    # One offer of a thread is open at a time (rules/marketplace#offers).
    if open_offer(head) is not None:
        raise InvalidTransition(
            "The deal already has an open offer. Answer or withdraw it before you make another.", []
        )
    made = offer_of(lifecycle.existing(state), message.terms, message.at, least=True)
    made = replace(
        made,
        id=message.offer_id,
        deal_id=message.deal_id,
        side=Side.BUYER,
        status=OfferStatus.PENDING,
        made_by=message.by,
    )
    _put(turn, head, made, event="offer.submit", actor=BUYER, by=message.by)
    return turn.decision(message.deal_id)


def answer(state: ListingState, message: AnswerOffer) -> Answer:
    """Accept, reject, counter or withdraw the offer that is open."""
    turn = DealTurn(state, message.at)
    head = turn.head(message.deal_id)
    found = open_offer(head)
    if message.counter_id is not None and head.offer and head.offer.id == message.counter_id:
        return Decision(state, view_of(state, message.deal_id, message.at))
    if found is None or found.id != message.offer_id:
        raise InvalidTransition(
            "This offer is no longer open. Reload the deal to see its current offer.", []
        )
    side = Side(message.side)
    # Who made an offer takes it back; who got it answers it (rules/marketplace#answers).
    if (side is found.side) != (message.verb == "withdraw"):
        raise Forbidden(
            "Only the other party can do this. Wait for their answer.",
            allowed=offer_verbs(found, side),
        )
    move = machines.OFFER.moves[found.status, message.verb]
    if message.verb != "withdraw" and timers.ends(state, found, message.at) <= message.at:
        raise InvalidTransition(
            "The offer has expired. Make a new offer, or ask the other party for one.", []
        )
    if message.verb in ("accept", "counter") and is_paused(state, message.deal_id):
        raise InvalidTransition(
            "Another buyer has exclusivity. Wait until it ends, then try again.", []
        )
    actor = LETTERS[side]
    ended = replace(found, status=OfferStatus(move.to), ended_at=message.at)
    match message.verb:
        case "accept":
            turn.move(message.deal_id, "offer.accepted", actor=CLOCK, by=message.by, offer=ended)
        case "counter" if message.counter is not None and message.counter_id is not None:
            _put(turn, head, ended, event="offer.counter", actor=actor, by=message.by, quiet=True)
            least = side is Side.BUYER
            child = offer_of(lifecycle.existing(state), message.counter, message.at, least=least)
            child = replace(
                child,
                id=message.counter_id,
                deal_id=message.deal_id,
                parent_id=found.id,
                side=side,
                status=OfferStatus.PENDING_COUNTER,
                made_by=message.by,
            )
            head = turn.head(message.deal_id)
            _put(turn, head, child, event="offer.counter_created", actor=actor, by=message.by)
        case verb:
            _put(turn, head, ended, event=f"offer.{verb}", actor=actor, by=message.by)
    return turn.decision(message.deal_id)


def _put(
    turn: DealTurn,
    head: DealHead,
    made: DealOffer,
    *,
    event: str,
    actor: str,
    by: str,
    quiet: bool = False,
) -> None:
    deal = turn.enter(head, head.deal, event=event, actor=actor, by=by, offer=made)
    turn.effects += timers.set_for_offer(deal.listing_id, made)
    if not quiet:
        turn.tell(deal, event, actor)


def offer_of(listing: ListingRecord, terms: OfferTerms, at: datetime, *, least: bool) -> DealOffer:
    """Make an offer of its terms. Raises Unprocessable for one that the listing does not take."""
    if terms.currency != listing.currency:
        _wrong("amount.currency", f"must be {listing.currency}")
    price = listing.asking_price or 0
    # A buyer offers what the seller wants at least, or 15% of the price (rules/marketplace#offers).
    floor = listing.min_offer or -(-price * LEAST_PERCENT // 100)
    if least and terms.amount < floor:
        _wrong("amount.amount", f"must be at least {floor}")
    until = terms.valid_until or at + VALID_FOR
    # An offer stands for a day at least and two weeks at most.
    if not SHORTEST_OFFER <= until - at <= LONGEST_OFFER:
        _wrong("validUntil", "must be 24 hours to 14 days ahead")
    return DealOffer(
        id="",
        deal_id="",
        side=Side.BUYER,
        status=OfferStatus.PENDING,
        amount=terms.amount,
        currency=terms.currency,
        type=terms.type,
        terms=terms.terms,
        inventory=terms.inventory,
        contingencies=terms.contingencies,
        closing_by=terms.closing_by,
        proof_of_funds=terms.proof_of_funds,
        message=terms.message,
        valid_until=until,
        made_by="",
        made_at=at,
    )


def _wrong(name: str, said: str) -> NoReturn:
    raise Unprocessable(
        f"The field {name} {said}. Correct it and try again.",
        code="invalid_request",
        errors=[{"field": name, "message": said}],
    )


def read(state: ListingState, message: ReadDeals) -> Decision[ListingState, Sequence[DealView]]:
    """Show deals as they stand."""
    known = [id for id in message.deal_ids if id in state.deals]
    return Decision(state, [view_of(state, id, message.at) for id in known])


def due(state: ListingState, message: DealDue) -> Silence:
    """Let time move a deal, unless somebody did, or it stood still and has time left."""
    head = state.deals.get(message.deal_id)
    timer = timers.due(state, head.deal, message.at) if head is not None else None
    if head is None or timer is None or timer.event != message.event:
        return Decision(state, None)
    turn = DealTurn(state, max(message.at, head.deal.moved_at))
    again = timers.later(state, message.deal_id, timer.due_at, message.at)
    if again is not None:
        return Decision(state, None, effects=timers.set_for(head.deal, again))
    turn.move(message.deal_id, message.event, actor=CLOCK)
    return Decision(turn.state, None, turn.records, turn.effects)


def offer_due(state: ListingState, message: OfferDue) -> Silence:
    """End an offer that nobody answered in time."""
    head = state.deals.get(message.deal_id)
    found = open_offer(head) if head is not None else None
    if head is None or found is None or found.id != message.offer_id:
        return Decision(state, None)
    until = timers.ends(state, found, message.at)
    again = timers.later(state, message.deal_id, until, message.at)
    if again is not None:
        return Decision(state, None, effects=timers.set_for_offer(state.id, found, again))
    turn = DealTurn(state, max(message.at, head.deal.moved_at))
    expired = replace(found, status=OfferStatus.EXPIRED, ended_at=turn.at)
    _put(turn, head, expired, event="offer.timer", actor=CLOCK, by=SERVICE)
    return Decision(turn.state, None, turn.records, turn.effects)


def following(
    decide: Callable[[ListingState, Ending], Decision[ListingState, Reply]],
) -> Callable[[ListingState, Ending], Decision[ListingState, Reply]]:
    """End the threads of a listing whose seller, operator or time took it off the market."""

    @wraps(decide)
    def followed(state: ListingState, message: Ending) -> Decision[ListingState, Reply]:
        decision = decide(state, message)
        before, after = state.listing, decision.state.listing
        is_gone = after is not None and (after.status in GONE or after.deleted_at is not None)
        if before is after or not is_gone or not decision.state.deals:
            return decision
        turn = DealTurn(decision.state, message.at)
        turn.records += decision.records
        turn.effects += decision.effects
        turn.close_others()
        return Decision(turn.state, decision.reply, turn.records, turn.effects, decision.resolve)

    return followed


def reviewed(state: ListingState, message: ReviewListing) -> Decision[ListingState, str]:
    """Carry out an administrator's verdict, unless a deal has to end before."""
    # A suspended listing comes back when nobody is buying it (rules/marketplace#one-buyer).
    if message.verdict == "reinstate" and any(
        head.deal.stage in BINDING for head in state.deals.values()
    ):
        raise Conflict(
            "This listing has an open deal. End the deal, then try again.", code="open_deals"
        )
    return lifecycle.review(state, message)
