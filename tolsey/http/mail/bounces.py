"""What the mail provider says of addresses: those that bounce are written to no more (rules/service#provider-events)."""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from email.utils import parseaddr
from typing import Any, Final

import structlog

from tolsey.actors.bodies import Body, Unreadable, short_texts, table, text
from tolsey.actors.mail import MarkAddresses
from tolsey.http.mail.book import KINDS
from tolsey.http.webhooks.payloads import MalformedPayload, parse
from tolsey.runtime.messages import Call
from tolsey.storage.database import Database, Transaction
from tolsey.storage.people import mail as mails
from tolsey.storage.records.mail import BounceKind, MailBounce, MailPace
from tolsey.storage.records.provider_events import ProviderEventState
from tolsey.storage.sealing.sealed import SealBroken, Vault
from tolsey.storage.status import incidents
from tolsey.storage.webhooks import provider_events

log = structlog.get_logger()

PROVIDER: Final = "mail"
WHY_CHARACTERS: Final = 500
MOST_RECIPIENTS: Final = 100
ENDED: Final = frozenset({ProviderEventState.APPLIED, ProviderEventState.KEPT})


@dataclass(frozen=True, slots=True, kw_only=True)
class AddressNotice:
    """What an event says of addresses."""

    kind: BounceKind
    recipients: tuple[str, ...]
    why: str


def notice_of(parsed: Body) -> AddressNotice | None:
    """Read a bounce or a complaint; None for one that is over by itself. Raises Unreadable."""
    data = table(parsed, "data")
    recipients = tuple(dict.fromkeys(parseaddr(one)[1].lower() for one in short_texts(data, "to")))
    if not recipients or not all(recipients) or len(recipients) > MOST_RECIPIENTS:
        raise Unreadable("data.to", "not one to a hundred addresses")
    if parsed.get("type") == "email.complained":
        why = "The reader called a mail of ours spam."
        return AddressNotice(kind=BounceKind.COMPLAINED, recipients=recipients, why=why)
    bounce = table(data, "bounce")
    # A full mailbox is full today: only what will not be better marks an address.
    if (text(bounce, "type") or "").lower() == "transient":
        return None
    why = text(bounce, "message", WHY_CHARACTERS) or "The mail server took no mail for it."
    return AddressNotice(kind=BounceKind.BOUNCED, recipients=recipients, why=why)


class AddressMarks:
    """Does what a kept event of the mail provider says, once or again."""

    def __init__(self, database: Database, vault: Vault, clock: Callable[[], datetime]) -> None:
        self._database = database
        self._vault = vault
        self._clock = clock

    def handlers(self) -> Mapping[type[Call[Any]], Callable[[Any], Awaitable[None]]]:
        """Say which calls this performs."""
        return {MarkAddresses: self.mark}

    async def mark(self, call: MarkAddresses) -> None:
        """Mark the addresses of an event; one that cannot be read fails for good, and says why."""
        event = await provider_events.find(self._database, PROVIDER, call.event_id)
        if event is None or event.state in ENDED:
            return
        at = self._clock()
        try:
            notice = notice_of(parse(provider_events.body_of(self._vault, event).encode()))
        except (Unreadable, MalformedPayload, SealBroken) as error:
            failed, why = ProviderEventState.FAILED, str(error)[:WHY_CHARACTERS]
            async with self._database.transaction() as tx:
                await provider_events.settle(tx, event, failed, why=why, at=at)
            raise
        async with self._database.transaction() as tx:
            if notice is not None:
                await self._mark(tx, notice, at)
            await provider_events.settle(tx, event, ProviderEventState.APPLIED, why=None, at=at)
        log.info("mail.addresses_marked", event_id=event.event_id, kind=notice and notice.kind)

    async def _mark(self, tx: Transaction, notice: AddressNotice, at: datetime) -> None:
        for recipient in notice.recipients:
            bounce = MailBounce(recipient=recipient, kind=notice.kind, why=notice.why, since=at)
            await mails.mark(tx, bounce)
            # Who subscribed without an account is told no more either way, and has to ask anew.
            await incidents.unsubscribe(tx, recipient)
            if notice.kind is BounceKind.COMPLAINED:
                for topic in KINDS:
                    await mails.choose(tx, recipient, topic, MailPace.NEVER, at)
