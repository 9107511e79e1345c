"""The address book: which event is written to whom, and of which of them one may have no more.

A new mail is an entry here and a template of the event's name in `templates/mail`.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from tolsey.actors.mail import MailEvent
from tolsey.http.layout.catalogue import _


class Role(StrEnum):
    """Who gets a mail."""

    PERSON = "person"
    """One address: whoever asks for the mail names it."""
    KEEPERS = "keepers"
    """The owners and admins of the organization."""
    PAYEE = "payee"
    """Whose payout account it is."""
    OPERATORS = "operators"
    """The owners and admins of the administrators' organization."""


class MailTopic(StrEnum):
    """What one may want no more mail about (RFC 8058)."""

    INVITATIONS = "invitations"
    LAUNCHES = "launches"
    STORES = "stores"
    STATUS = "status"
    DAILY = "daily"
    """All that somebody wants once a day."""

    @property
    def words(self) -> str:
        """Return the topic's name for the unsubscribe page."""
        match self:
            case MailTopic.INVITATIONS:
                return _("invitations")
            case MailTopic.LAUNCHES:
                return _("store launches")
            case MailTopic.STORES:
                return _("store connections")
            case MailTopic.STATUS:
                return _("service status")
            case MailTopic.DAILY:
                return _("your daily summary")


KINDS: Final = tuple(one for one in MailTopic if one is not MailTopic.DAILY)
"""What mails are about, each of which one may want otherwise than the others."""


class StatusMail(StrEnum):
    """What people are written that no actor asks for: how the service does, and the day in one mail."""

    STATUS_WANTED = "status_wanted"
    STATUS_CHANGED = "status_changed"
    ALERT_RAISED = "alert_raised"
    DAILY_DIGEST = "daily_digest"


@dataclass(frozen=True, slots=True)
class Entry:
    """Who gets the mail of an event; one without a topic is about security, money or law."""

    role: Role
    topic: MailTopic | None = None
    path: str = ""
    """Where its link leads, with facts of the mail in braces, unless whoever asks for it says so."""


BOOK: Final[Mapping[MailEvent | StatusMail, Entry]] = {
    MailEvent.INVITED: Entry(Role.PERSON, MailTopic.INVITATIONS),
    MailEvent.PASSWORD_FORGOTTEN: Entry(Role.PERSON),
    MailEvent.PAYMENT_FAILED: Entry(Role.KEEPERS, path="/billing"),
    MailEvent.PAYOUT_FAILED: Entry(Role.PAYEE),
    MailEvent.CONNECTION_BROKEN: Entry(Role.KEEPERS, MailTopic.STORES, path="/stores/{store}"),
    MailEvent.SHOP_ERASURE_NEARS: Entry(Role.KEEPERS, path="/stores/{store}"),
    MailEvent.DATA_REQUEST_ANSWERED: Entry(Role.KEEPERS, path="/stores/{store}/privacy"),
    MailEvent.DEAL_MOVED: Entry(Role.KEEPERS, path="/deals/{deal}"),
    MailEvent.TRANSFER_REQUESTED: Entry(Role.OPERATORS, path="/admin/devstores"),
    MailEvent.DEV_STORE_TRANSFERRED: Entry(Role.KEEPERS, path="/stores/{store}/launch"),
    MailEvent.LAUNCH_WAITS: Entry(Role.KEEPERS, MailTopic.LAUNCHES, path="/stores/{store}/launch"),
    MailEvent.LAUNCH_FINISHED: Entry(
        Role.KEEPERS, MailTopic.LAUNCHES, path="/stores/{store}/launch"
    ),
    MailEvent.STORE_OPENED_EARLY: Entry(Role.KEEPERS, path="/stores/{store}/launch"),
    MailEvent.TEST_MODE_ON: Entry(Role.KEEPERS, path="/stores/{store}/launch"),
    StatusMail.STATUS_WANTED: Entry(Role.PERSON),
    StatusMail.STATUS_CHANGED: Entry(Role.PERSON, MailTopic.STATUS),
    StatusMail.ALERT_RAISED: Entry(Role.PERSON),
    StatusMail.DAILY_DIGEST: Entry(Role.PERSON, MailTopic.DAILY),
}
