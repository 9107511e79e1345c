"""What is written to people, and who wants no more of it."""

from dataclasses import dataclass, field
from datetime import date, datetime
from enum import StrEnum
from typing import Annotated, Final

from tolsey.storage.owners import ADDRESS_OF_USER, OF_ORGANIZATION, Belongs, RowOwner
from tolsey.storage.tables import Age, Integer, Personal, Sealed, bare, stored


@stored(
    "outbound_mail",
    key=("id",),
    retention=Age(column="created_at", interval="90 days"),
    swept="mails",
    belongs=(Belongs(to=RowOwner.USER, by=f"recipient = {ADDRESS_OF_USER}"), OF_ORGANIZATION),
    export="mails",
)
@dataclass(frozen=True, slots=True, kw_only=True)
class OutboundMail:
    """A mail to one person; its content, a JSON text, is sealed and goes when it is over."""

    id: str
    event: str
    about: str
    organization_id: str | None
    recipient: Annotated[str, Personal.EMAIL]
    subject: Annotated[str, Personal.FREE_TEXT]
    sealed_content: Annotated[str | None, Sealed] = field(repr=False)
    state: str = "waiting"
    attempts: Annotated[int, Integer] = 0
    next_try_at: datetime | None = None
    answer: Annotated[str | None, Personal.FREE_TEXT] = None
    created_at: datetime
    ended_at: datetime | None = None
    digest_on: date | None = None
    """The day whose one mail tells of it; None for a mail that is sent by itself."""


class MailPace(StrEnum):
    """How somebody wants the mails of a topic."""

    AT_ONCE = "at_once"
    DAILY = "daily"
    NEVER = "never"


DAILY_MAILS: Final = bare(
    "daily_mails",
    {"recipient": Annotated[str, Personal.EMAIL], "topic": str, "since": datetime},
    key=("recipient", "topic"),
    belongs=Belongs(to=RowOwner.USER, by=f"recipient = {ADDRESS_OF_USER}"),
    export="dailyMails",
)
MAIL_REFUSALS: Final = bare(
    "mail_refusals",
    {"recipient": Annotated[str, Personal.EMAIL], "topic": str, "since": datetime},
    key=("recipient", "topic"),
    belongs=Belongs(to=RowOwner.USER, by=f"recipient = {ADDRESS_OF_USER}"),
    export="mailRefusals",
)


class BounceKind(StrEnum):
    """Why an address is marked."""

    BOUNCED = "bounced"
    """Its server takes no mail for it: nothing is sent there any more."""
    COMPLAINED = "complained"
    """Its reader called a mail of ours spam: only what must be said is sent there."""


@stored(
    "mail_bounces",
    key=("recipient",),
    retention=Age(column="since", interval="365 days"),
    swept="mailBounces",
    belongs=Belongs(to=RowOwner.USER, by=f"recipient = {ADDRESS_OF_USER}"),
    export="mailBounces",
)
@dataclass(frozen=True, slots=True, kw_only=True)
class MailBounce:
    """An address that the mail provider told us of."""

    recipient: Annotated[str, Personal.EMAIL]
    kind: BounceKind
    why: Annotated[str, Personal.FREE_TEXT]
    since: datetime
