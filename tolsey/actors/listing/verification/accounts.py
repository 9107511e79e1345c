"""What a listing asks of a seller's account at the payment processor: a port, and its answers.

Every call is made with the seller's own restricted key; no credential of the service is needed.
"""

from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final, Protocol

from tolsey.storage.records.selling.revenue import PulledCharge, PulledSubscription

READS: Final = ("account", "charges", "subscriptions")
"""What a restricted key must be allowed to read, by the names that sellers are told."""


class AccountError(Exception):
    """The account could not be read; `message` is safe to show its seller."""

    def __init__(self, message: str) -> None:
        super().__init__(message)
        self.message = message


class KeyRefused(AccountError):  # noqa: N818 - the processor's answer
    """The processor does not honour the key; `code` is its own, else `key_refused`."""

    def __init__(self, message: str, code: str = "key_refused") -> None:
        super().__init__(message)
        self.code = code


class ReadDenied(AccountError):  # noqa: N818 - the processor's answer
    """The key lacks a permission: `read` is one of READS, `permission` the processor's own name."""

    def __init__(self, message: str, read: str, permission: str | None = None) -> None:
        super().__init__(message)
        self.read = read
        self.permission = permission


class AccountUnreachable(AccountError):  # noqa: N818 - a state of the world, not our fault
    """No usable answer after the retries: trying later may help."""


class TooMuch(AccountError):  # noqa: N818 - the account is what it is
    """The account has more payments or subscriptions than one sync reads."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SellerAccount:
    """What the processor says of an account; `domain` is the host of its business address."""

    account_id: str
    currency: str
    is_live: bool
    """Whether it may take money, and its owner has said who they are."""
    domain: str | None = None


class SellerAccounts(Protocol):
    """The processor's accounts of sellers, read with restricted keys.

    Every method may raise KeyRefused, ReadDenied and AccountUnreachable, and those that list TooMuch.
    """

    async def account(self, key: str) -> SellerAccount:
        """Read whose key it is."""
        ...

    async def probe(self, key: str) -> None:
        """Try the two other reads, so that a key that cannot be synced with is told at once."""
        ...

    async def subscriptions(self, key: str) -> Sequence[PulledSubscription]:
        """Read every subscription that goes on, with tiers and discounts as far as they are shown."""
        ...

    def charges(self, key: str, since: datetime) -> AsyncIterator[PulledCharge]:
        """Every payment made since a moment, each once."""
        ...

    async def was_paid_before(self, key: str, at: datetime) -> bool:
        """Whether a payment from before a moment is among the latest ones there."""
        ...
