"""Asks the providers of deals again what their events say, and tells the listing what is so (rules/marketplace#providers)."""

import hashlib
from collections.abc import Awaitable, Callable, Mapping
from datetime import datetime
from typing import Any, Final

import structlog

from tolsey.actors.listing.deals.messages import (
    AskProvider,
    CompleteEnvelope,
    EnvelopeSigner,
    FollowEscrow,
)
from tolsey.actors.listing.messages import listing
from tolsey.actors.listing.verification.revenue import minor_units
from tolsey.actors.reach import Ask
from tolsey.actors.refusals import MissingCredential, Refusal
from tolsey.http.clients.closing import COMPLETED, EnvelopeProvider, EscrowProvider, ProviderAway
from tolsey.http.webhooks.payloads import parse
from tolsey.http.webhooks.providers.kinds import FUNDED
from tolsey.runtime.messages import Call
from tolsey.storage.database import Database
from tolsey.storage.money import payouts
from tolsey.storage.records.provider_events import ProviderEvent, ProviderEventState
from tolsey.storage.sealing.sealed import SealBroken, Vault
from tolsey.storage.selling import deals
from tolsey.storage.webhooks import provider_events

log = structlog.get_logger()

WHY_CHARACTERS: Final = 500


class NotSaid(Exception):  # noqa: N818 - what the provider did
    """The provider, asked again, does not say what its event said, or says it of nothing that is ours."""


class DealProviders:
    """Does what a kept event of a deal's provider says, once or again, when the provider says so too."""

    def __init__(
        self,
        ask: Ask,
        database: Database,
        vault: Vault,
        clock: Callable[[], datetime],
        *,
        envelopes: EnvelopeProvider | None,
        escrow: EscrowProvider | None,
        pays_sellers: bool,
    ) -> None:
        self._ask = ask
        self._database = database
        self._vault = vault
        self._clock = clock
        self._envelopes = envelopes
        self._escrow = escrow
        self._pays_sellers = pays_sellers

    def handlers(self) -> Mapping[type[Call[Any]], Callable[[Any], Awaitable[None]]]:
        """Say which call this performs."""
        return {AskProvider: self.follow}

    async def follow(self, call: AskProvider) -> None:
        """Fetch what an event is about and tell its listing; why that failed stands with the event."""
        event = await provider_events.find(self._database, call.provider, call.event_id)
        if event is None or event.state is ProviderEventState.APPLIED:
            return
        try:
            told = parse(provider_events.body_of(self._vault, event).encode())
            if call.provider == "escrow":
                await self._follow_escrow(str(told["transaction_id"]), event.type)
            else:
                await self._follow_envelope(str(told["data"]["envelopeId"]))
        except (NotSaid, ProviderAway, Refusal, SealBroken) as error:
            await self._settle(event, ProviderEventState.FAILED, str(error)[:WHY_CHARACTERS])
            raise
        await self._settle(event, ProviderEventState.APPLIED, None)
        log.info("deals.provider_followed", provider=call.provider, event_id=event.event_id)

    async def _settle(
        self, event: ProviderEvent, state: ProviderEventState, why: str | None
    ) -> None:
        async with self._database.transaction() as tx:
            await provider_events.settle(tx, event, state, why=why, at=self._clock())

    async def _follow_envelope(self, id: str) -> None:
        if self._envelopes is None:
            raise MissingCredential("ESIGN_API_URL")
        envelope = await self._envelopes.envelope(id)
        if envelope.id != id or envelope.status != COMPLETED:
            raise NotSaid(
                f"The provider's envelope has the status {envelope.status}. Wait until it is completed."
            )
        found = await deals.deal_of_signature(self._database, envelope.reference)
        if found is None:
            raise NotSaid(
                "The envelope doesn't belong to a document of this service. Send the envelope"
                " of this deal's document."
            )
        deal, signature = found
        message = CompleteEnvelope(
            deal_id=deal.id,
            signature_id=signature.id,
            envelope_id=id,
            document_sha256=envelope.document_sha256,
            signers=tuple(
                EnvelopeSigner(
                    side=side,
                    name=name[:200],
                    email_sha256=hashlib.sha256(email.lower().encode()).hexdigest(),
                    signed_at=signed_at,
                )
                for side, name, email, signed_at in envelope.signers
            ),
            at=self._clock(),
            may_sell=not self._pays_sellers
            or await payouts.may_sell(self._database, deal.seller_id),
        )
        await self._ask(listing(deal.listing_id), message)

    async def _follow_escrow(self, id: str, said: str) -> None:
        if self._escrow is None:
            raise MissingCredential("ESCROW_API_URL")
        transaction = await self._escrow.transaction(id)
        is_so = transaction.is_disbursed or (said in FUNDED and transaction.is_secured)
        # Anybody can post an event: the provider's own word is what counts (rules/marketplace#providers).
        if transaction.id != id or not is_so:
            raise NotSaid(
                "The provider's transaction doesn't have this status. Check it at the provider."
            )
        named = await deals.of_escrow(self._database, id)
        # A seller names the escrow: of two who name the same one, neither is believed.
        if len(named) != 1:
            raise NotSaid(f"{len(named)} deals name this transaction.")
        (deal,) = named
        message = FollowEscrow(
            deal_id=deal.id,
            escrow_id=id,
            amount=minor_units(transaction.amount, transaction.currency),
            currency=transaction.currency,
            is_funded=transaction.is_secured,
            is_released=transaction.is_disbursed,
            at=self._clock(),
        )
        await self._ask(listing(deal.listing_id), message)
