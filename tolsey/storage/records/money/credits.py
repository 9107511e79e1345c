"""An organization's credits as its turns write them down; amounts in micro-USD.

What every spend makes anew is not frozen, for that costs a call for each field; nobody changes it.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import date, datetime
from typing import Annotated, Final

from tolsey.storage.owners import EVIDENCE_OF_ORGANIZATION
from tolsey.storage.tables import Integer, Jsonb, stored

OWN_ACCOUNTS: Final = "^(debt$|lot:|held:)"
"""The accounts of what an organization has and owes, as Python and PostgreSQL both read it."""


@stored(
    "credit_accounts",
    key=("organization_id",),
    belongs=EVIDENCE_OF_ORGANIZATION,
    export="creditAccounts",
)
@dataclass(slots=True, kw_only=True)
class CreditAccount:
    """Where an organization's ledger stands: its last entry, its debt, its plan's allowance."""

    organization_id: str
    seq: int
    hash: str
    debt: int
    period_start: datetime | None
    period_end: datetime | None
    allowance: int
    renewed_by: str | None


@stored(
    "credit_entries",
    key=("organization_id", "key"),
    claim=True,
    belongs=EVIDENCE_OF_ORGANIZATION,
    export="creditEntries",
)
@dataclass(slots=True, kw_only=True)
class CreditEntry:
    """One entry of an organization's ledger; written once ever, by its key.

    `hash` is the sha256 of the hash before it and of everything else the entry and its postings
    say, so that no row can be changed later without breaking the chain.
    """

    organization_id: str
    seq: int
    key: str
    kind: str
    reference: str | None
    at: datetime
    hash: str


@stored(
    "credit_postings",
    belongs=EVIDENCE_OF_ORGANIZATION,
    export="creditPostings",
    appended=("seq", "n"),
)
@dataclass(slots=True, kw_only=True)
class CreditPosting:
    """One movement of an entry: `amount` goes out of account `credit` into account `debit`."""

    organization_id: str
    seq: int
    n: Annotated[int, Integer]
    debit: str
    credit: str
    amount: int


def postings(
    organization_id: str, seq: int, moves: Iterable[tuple[str, str, int]]
) -> list[CreditPosting]:
    """Make the postings of an entry, of what moved: into which account, out of which, how much."""
    return [
        CreditPosting(
            organization_id=organization_id, seq=seq, n=n, debit=debit, credit=credit, amount=amount
        )
        for n, (debit, credit, amount) in enumerate(moves)
    ]


@stored(
    "credit_lots",
    key=("organization_id", "id"),
    newest=("seq",),
    replaces=("amount", "remaining", "pinned", "expires_at", "seq"),
    besides={"spent": bool | None},
    belongs=EVIDENCE_OF_ORGANIZATION,
    export="creditLots",
)
@dataclass(slots=True, kw_only=True)
class CreditLot:
    """Credits granted together. `remaining` counts what holds pin; a lot without any is spent.

    `seq` is the entry that touched it last.
    """

    organization_id: str
    id: str
    kind: str
    reference: str | None
    amount: int
    remaining: int
    pinned: int
    granted_at: datetime
    expires_at: datetime
    seq: int

    @property
    def free(self) -> int:
        """What can be spent of it."""
        return self.remaining - self.pinned


@stored(
    "credit_holds",
    key=("organization_id", "id"),
    belongs=EVIDENCE_OF_ORGANIZATION,
    export="creditHolds",
)
@dataclass(frozen=True, slots=True, kw_only=True)
class CreditHold:
    """Credits pinned for something that is being used; `lines` is JSON of [lot id, amount] pairs.

    `used` is the cost last reported, then what it was settled at.
    """

    organization_id: str
    id: str
    amount: int
    lines: Annotated[str, Jsonb]
    used: int
    lease_until: datetime
    closed_at: datetime | None


@stored(
    "payment_facts",
    key=("organization_id", "payment_ref"),
    belongs=EVIDENCE_OF_ORGANIZATION,
    export="payments",
)
@dataclass(frozen=True, slots=True, kw_only=True)
class CreditedPayment:
    """What is known of a payment, and what it did to the credits.

    `total`, `refunded` and `disputes` (JSON of [id, amount, status] triples) are the processor's
    cents; `granted`, `refund_removed` and `dispute_removed` are micro-USD of credits. `refund_asked_at`
    is when an operator of ours decided to give it back, unless the processor refused. `parts` (JSON)
    says of each of its grants what was taken back, owed, and expired unspent.
    """

    organization_id: str
    payment_ref: str
    kind: str | None
    granted: int
    granted_at: datetime | None
    expires_at: datetime | None
    credits: int
    total: int
    refunded: int
    disputes: Annotated[str, Jsonb]
    refund_removed: int
    dispute_removed: int
    refund_asked_at: datetime | None = None
    parts: Annotated[str, Jsonb] = "[]"


@stored(
    "monthly_resets",
    key=("organization_id", "period_end", "period_start"),
    claim=True,
    belongs=EVIDENCE_OF_ORGANIZATION,
    export="monthlyResets",
)
@dataclass(frozen=True, slots=True, kw_only=True)
class MonthlyReset:
    """A period of a plan has been granted its allowance: a claim."""

    organization_id: str
    period_start: datetime
    period_end: datetime
    plan: str
    at: datetime


@stored(
    "daily_bonuses",
    key=("organization_id", "day"),
    claim=True,
    belongs=EVIDENCE_OF_ORGANIZATION,
    export="dailyBonuses",
)
@dataclass(frozen=True, slots=True, kw_only=True)
class DailyBonus:
    """A day's bonus was granted: a claim."""

    organization_id: str
    day: date
    plan: str
    amount: int
    at: datetime
