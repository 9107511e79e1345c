"""Decisions about what providers say: of documents that were signed there, and of money that they hold.

What arrives here was fetched from the provider again: an event alone counts for nothing (rules/marketplace#providers).
"""

import re
from dataclasses import replace
from typing import Final

import orjson

from tolsey.actors.listing.deals.cases import Stage, items
from tolsey.actors.listing.deals.messages import (
    CompleteEnvelope,
    DealFields,
    DealView,
    FollowEscrow,
    SignatureView,
    StoreHandedOver,
)
from tolsey.actors.listing.deals.moves import GuardFailed
from tolsey.actors.listing.deals.signatures import chain
from tolsey.actors.listing.deals.signatures.signing import (
    PLATFORM,
    answered,
    complete,
    last_document,
)
from tolsey.actors.listing.deals.turns import SERVICE, DealTurn
from tolsey.actors.listing.machines import CLOCK, DEAL, PROVIDER
from tolsey.actors.listing.state import ListingState
from tolsey.actors.refusals import Conflict, InvalidTransition
from tolsey.runtime.decision import Decision
from tolsey.storage.records.selling.deals import OPEN_SIGNATURES, DealThread, Side, SignatureStatus

STORE: Final = re.compile(
    r"((the|our|my) )?((shopify|online|web)[ -]?)?(store|shop)", re.IGNORECASE
)
"""What the store is called among the things that are sold, if not by its domain."""


def envelope(
    state: ListingState, message: CompleteEnvelope
) -> Decision[ListingState, SignatureView]:
    """Take all signatures of a document that was signed at its provider, at once."""
    turn = DealTurn(state, message.at)
    head, signature = last_document(turn, message.deal_id, message.signature_id)
    # What was signed there has to be what was put before both parties (rules/marketplace#providers).
    if message.document_sha256 != signature.document_sha256:
        raise Conflict(
            "The document that was signed at the provider isn't this one. Request the"
            " signatures again.",
            code="document_changed",
        )
    if signature.status is SignatureStatus.SIGNED:
        return answered(turn, signature)
    if signature.provider == PLATFORM:
        raise Conflict(
            "This document is signed on this site, not at a provider. Open the deal to sign it."
        )
    if signature.status not in OPEN_SIGNATURES:
        raise InvalidTransition(
            "This document can no longer be signed. Reload the deal to see its current document.",
            [],
        )
    if {one.side for one in message.signers} != set(Side):
        raise Conflict(
            "Not all parties have signed at the provider. Wait for the missing signatures."
        )
    given = {
        one.side: {
            "userId": f"envelope:{message.envelope_id}",
            "name": one.name,
            "emailSha256": one.email_sha256,
            "signedAt": chain.moment(one.signed_at),
        }
        for one in message.signers
    }
    signed = replace(signature, signers=orjson.dumps(given).decode())
    data = {"envelopeId": message.envelope_id, "provider": signature.provider, "signers": given}
    kept = turn.note(
        head, signed, "envelope.completed", by=SERVICE, role=signature.provider, data=data
    )
    complete(turn, kept, by=SERVICE, may_sell=message.may_sell)
    return answered(turn, kept)


def escrow(state: ListingState, message: FollowEscrow) -> Decision[ListingState, DealView]:
    """Move a deal as far as its transaction is: funded, handed over, closed; in one turn, and once."""
    turn = DealTurn(state, message.at)
    deal = turn.head(message.deal_id).deal
    if deal.escrow_id != message.escrow_id:
        raise Conflict(
            "The deal already uses a different escrow. Send the reference of that escrow."
        )
    # Escrow holds what the agreement says, to the cent (rules/marketplace#escrow).
    if (message.amount, message.currency) != (deal.price, deal.currency):
        raise GuardFailed(
            "The escrow's amount and currency don't match the purchase agreement. Correct them"
            " at the escrow provider.",
            allowed=[],
        )
    given = DealFields(evidence=message.escrow_id)
    if (message.is_funded or message.is_released) and deal.escrow_event_id is None:
        deal = _moved(turn, message.deal_id, "escrow.funded", given)
        if deal.stage is Stage.ESCROW_FUNDED:
            # What the provider says is two moves in one message (rules/marketplace#providers).
            deal = _moved(turn, message.deal_id, "transfer.start", given)
    if message.is_released and deal.escrow_released_at is None:
        _moved(turn, message.deal_id, "escrow.released", given)
    return turn.decision(message.deal_id)


def store(state: ListingState, message: StoreHandedOver) -> Decision[ListingState, DealView]:
    """Deliver the item that is the store; where none or several are called so it is left to the seller."""
    turn = DealTurn(state, message.at)
    deal = turn.head(message.deal_id).deal
    if state.listing is None or state.listing.store_id != message.store_id:
        raise Conflict(
            "This store isn't the one sold in the deal. Send the id of the deal's store."
        )
    shop = message.shop_domain.lower()
    found = [
        one
        for one in items(deal.transfer)
        if STORE.fullmatch(one["title"].strip()) or one["title"].strip().lower() == shop
    ]
    if deal.stage is Stage.TRANSFERRING and len(found) == 1 and not found[0]["deliveredAt"]:
        # The buyer still looks at it: nothing is accepted by itself (rules/marketplace#escrow).
        given = DealFields(item=found[0]["id"], evidence=message.shop_domain)
        turn.move(deal.id, "transfer.deliver", actor=CLOCK, given=given)
    return turn.decision(deal.id)


def _moved(turn: DealTurn, deal_id: str, event: str, given: DealFields) -> DealThread:
    """Make a move that the provider may make; a deal that is further or over stays as it is."""
    deal = turn.head(deal_id).deal
    move = DEAL.move(deal.stage, event)
    if move is None or PROVIDER not in move.actors:
        return deal
    return turn.move(deal_id, event, actor=PROVIDER, given=given)
