"""What actors ask to be written to people: the event and its facts; the address book knows to whom."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import ClassVar

from tolsey.runtime.messages import Call, LaneName, Patience

KIND = "mail"


class MailEvent(StrEnum):
    """What people are written about."""

    INVITED = "invited"
    PASSWORD_FORGOTTEN = "password_forgotten"  # noqa: S105 - the name of an event
    PAYMENT_FAILED = "payment_failed"
    PAYOUT_FAILED = "payout_failed"
    CONNECTION_BROKEN = "connection_broken"
    DATA_REQUEST_ANSWERED = "data_request_answered"
    DEAL_MOVED = "deal_moved"
    SHOP_ERASURE_NEARS = "shop_erasure_nears"
    TRANSFER_REQUESTED = "transfer_requested"
    DEV_STORE_TRANSFERRED = "dev_store_transferred"
    LAUNCH_WAITS = "launch_waits"
    LAUNCH_FINISHED = "launch_finished"
    STORE_OPENED_EARLY = "store_opened_early"
    TEST_MODE_ON = "test_mode_on"


@dataclass(frozen=True, slots=True, kw_only=True)
class TellPeople(Call[None]):
    """Write to those of an organization whom the address book names for an event.

    `about` is the one thing it tells of: each person is written to once for it. `facts` hold no secret; an
    amount is told as `minor` units of a `currency`.
    """

    lane: ClassVar[LaneName] = "mail"

    event: MailEvent
    organization_id: str | None
    about: str
    facts: Mapping[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class MailReset(Call[None]):
    """Write a link that chooses a new password to whoever has an address, if anyone has.

    Who asks waits for none of it, so that no answer and no time tells whether anyone does.
    """

    lane: ClassVar[LaneName] = "mail"

    email: str


@dataclass(frozen=True, slots=True, kw_only=True)
class SendMail(Call[None]):
    """Hand a mail to the mail server; it may come twice, under one Message-ID."""

    lane: ClassVar[LaneName] = "mail"

    deadline_seconds: ClassVar[float] = 120.0
    # RFC 5321, section 4.5.4.1: a mail that is put off is tried for days.
    patience: ClassVar[Patience] = Patience(
        (60.0, 300.0, 1_800.0, 7_200.0, 21_600.0, 43_200.0, 86_400.0), tries=10
    )

    mail_id: str
    organization_id: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class WriteDigest(Call[None]):
    """Write the one mail of a day to whoever a mail waits for that it tells of, with all others of that day."""

    lane: ClassVar[LaneName] = "mail"

    mail_id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class TellStatusWebhook(Call[None]):
    """Tell a program how the service does, or ask it whether it wants to be told (`is_asked`)."""

    lane: ClassVar[LaneName] = "mail"

    deadline_seconds: ClassVar[float] = 20.0
    # So often an address may fail in a row before it is forgotten, which ends these tries.
    patience: ClassVar[Patience] = Patience((60.0, 300.0, 1_800.0, 7_200.0), tries=13)

    webhook_id: str
    url: str
    sealed_secret: str
    body: str
    is_asked: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class MarkAddresses(Call[None]):
    """Mark the addresses that a kept event of the mail provider says are not to be written to."""

    lane: ClassVar[LaneName] = "mail"

    event_id: str
