"""The rows of an organization's books, and which of rules/credits#invariants they break.

Numbers are those of the page. Nothing here asks the code that wrote the rows what they mean.
"""

import hashlib
import json
from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC

from tests.campaigns.money.bank import Bank
from tolsey.storage.records.money.credits import (
    CreditAccount,
    CreditedPayment,
    CreditEntry,
    CreditHold,
    CreditLot,
    CreditPosting,
    DailyBonus,
    MonthlyReset,
)


@dataclass
class Rows:
    """What is written of one organization."""

    account: CreditAccount | None = None
    entries: list[CreditEntry] = field(default_factory=list)
    postings: list[CreditPosting] = field(default_factory=list)
    lots: list[CreditLot] = field(default_factory=list)
    holds: list[CreditHold] = field(default_factory=list)
    payments: list[CreditedPayment] = field(default_factory=list)
    resets: list[MonthlyReset] = field(default_factory=list)
    bonuses: list[DailyBonus] = field(default_factory=list)

    def accounts(self) -> Counter[str]:
        """Add the postings up."""
        came: Counter[str] = Counter()
        for one in self.postings:
            came[one.debit] += one.amount
            came[one.credit] -= one.amount
        return came


def broken(rows: Rows) -> Iterator[str]:
    """Name the invariants that the rows break, each with its number."""
    came = rows.accounts()
    yield from _balanced(rows, came)
    yield from _stored(rows, came)
    yield from _below_zero(rows, came)
    yield from _once(rows)
    yield from _taken_back(rows, came)
    yield from _chained(rows)


def unproven(rows: Rows, bank: Bank) -> Iterator[str]:
    """Name what is granted or taken without what happened at the bank, once all of it is told."""
    bought = sum(lot.amount for lot in rows.lots if lot.kind == "purchase" and _is_grant(lot))
    if bought != bank.credits_sold:
        yield f"11 credits granted {bought}, sold {bank.credits_sold}"
    truth = {one.name: one for one in bank.payments}
    for one in rows.payments:
        if one.granted and (one.payment_ref not in truth or not truth[one.payment_ref].paid):
            yield f"11 nothing proves {one.payment_ref} paid"
            continue
        paid = truth[one.payment_ref]
        lost = sum(n for n, status in paid.disputes.values() if _is_lost(status))
        refunded = -(-one.granted * paid.refunded // paid.total)
        gone = min(paid.total, paid.refunded + lost)
        removed = -(-one.granted * gone // paid.total)
        if one.refund_removed != refunded:
            yield f"7 refunds took {one.refund_removed} of {one.payment_ref}, not {refunded}"
        if one.refund_removed + one.dispute_removed != removed:
            yield f"7 {one.payment_ref} lost {one.refund_removed + one.dispute_removed}, not {removed}"


def _is_lost(status: str) -> bool:
    return status == "lost" or status.endswith("needs_response")


def _is_grant(lot: CreditLot) -> bool:
    return not lot.id.startswith("restored:")


def _balanced(rows: Rows, came: Counter[str]) -> Iterator[str]:
    if sum(came.values()):
        yield f"1 the accounts sum to {sum(came.values())}"
    for one in rows.postings:
        if one.amount <= 0 or one.debit == one.credit:
            yield f"1 posting {one.seq}.{one.n} moves {one.amount} from {one.credit}"
    moved = {one.seq for one in rows.postings}
    if idle := [one.seq for one in rows.entries if one.seq not in moved and one.kind != "reset"]:
        yield f"1 entries {idle} move nothing"


def _stored(rows: Rows, came: Counter[str]) -> Iterator[str]:
    """Judge 2, 6 and 9: what stands beside the ledger is what its postings come to."""
    pinned = _pinned(rows)
    for lot in rows.lots:
        free = lot.remaining - lot.pinned
        if not 0 <= lot.pinned <= lot.remaining <= lot.amount:
            yield f"2 lot {lot.id}: {lot.pinned} of {lot.remaining} of {lot.amount}"
        if lot.pinned != pinned[lot.id]:
            yield f"2 lot {lot.id} is pinned for {lot.pinned}, holds say {pinned[lot.id]}"
        if came[f"lot:{lot.id}"] != free:
            yield f"9 lot {lot.id} has {free}, was moved {came[f'lot:{lot.id}']}"
    for one in rows.holds:
        if came[f"held:{one.id}"] != (one.amount if one.closed_at is None else 0):
            yield f"9 hold {one.id} has {came[f'held:{one.id}']}"
    known = {f"lot:{lot.id}" for lot in rows.lots} | {f"held:{one.id}" for one in rows.holds}
    own = {name for name in came if name.startswith(("lot:", "held:"))}
    if own - known:
        yield f"9 nobody knows {sorted(own - known)}"
    debt = rows.account.debt if rows.account else 0
    if -came["debt"] != debt:
        yield f"9 the debt is {debt}, was moved {-came['debt']}"
    used = sum(one.used for one in rows.holds if one.closed_at is not None)
    used += sum(
        one.amount
        for one in rows.postings
        if one.debit == "usage" and one.credit.startswith("lot:")
    )
    if came["usage"] != used:
        yield f"6 usage is {came['usage']}, {used} was spent and settled"


def _pinned(rows: Rows) -> Counter[str]:
    """Sum up what live holds say that they have of each lot."""
    pinned: Counter[str] = Counter()
    for one in rows.holds:
        if one.closed_at is None:
            for lot, amount in json.loads(one.lines):
                pinned[lot] += amount
    return pinned


def _below_zero(rows: Rows, came: Counter[str]) -> Iterator[str]:
    free = sum(lot.remaining - lot.pinned for lot in rows.lots)
    debt = -came["debt"]
    if debt < 0 or (debt and free):
        yield f"3 a debt of {debt} beside {free}"
    if debt > came["refunded"] + came["clawback"]:
        yield f"3 a debt of {debt}, of which {came['refunded'] + came['clawback']} was taken back"
    if any(one.credit == "debt" and one.debit not in TAKEN for one in rows.postings):
        yield "3 a debt that no removal made"


TAKEN = frozenset({"refunded", "clawback"})


def _once(rows: Rows) -> Iterator[str]:
    for what, keys in (
        ("entry", [one.key for one in rows.entries]),
        ("reset", [f"{one.period_start} to {one.period_end}" for one in rows.resets]),
        ("bonus", [one.day.isoformat() for one in rows.bonuses]),
        ("hold", [one.id for one in rows.holds]),
    ):
        for key, times in Counter(keys).items():
            if times > 1:
                yield f"4 {what} {key} stands {times} times"
    bought = Counter(
        one.reference for one in rows.lots if one.kind == "purchase" and _is_grant(one)
    )
    for payment, times in bought.items():
        if times > 1:
            yield f"4 {payment} was granted {times} times"


def _taken_back(rows: Rows, came: Counter[str]) -> Iterator[str]:
    """Judge 7 and 8: what was taken back of payments, and that nothing pinned expired."""
    granted: Counter[str | None] = Counter()
    for lot in rows.lots:
        if _is_grant(lot):
            granted[lot.reference] += lot.amount
    for one in rows.payments:
        if min(one.refund_removed, one.dispute_removed) < 0:
            yield f"7 {one.payment_ref} had less than nothing taken back"
        if one.refund_removed + one.dispute_removed > one.granted:
            yield f"7 more than {one.granted} was taken back of {one.payment_ref}"
        if one.granted != granted[one.payment_ref]:
            yield f"7 {one.payment_ref} granted {granted[one.payment_ref]}, is said {one.granted}"
        open_ = [status for _, _, status in json.loads(one.disputes) if status != "won"]
        if not open_ and one.dispute_removed:
            yield f"7 every dispute of {one.payment_ref} is won, {one.dispute_removed} is gone"
    if any(one.debit == "expired" and one.credit.startswith("held:") for one in rows.postings):
        yield "8 something expired that was pinned"
    yield from _accounted(rows, came)


def _accounted(rows: Rows, came: Counter[str]) -> Iterator[str]:
    for name, part in (("refunded", "refund_removed"), ("clawback", "dispute_removed")):
        said = sum(getattr(one, part) for one in rows.payments)
        if came[name] != said:
            yield f"7 {name} is {came[name]}, payments say {said}"


def _chained(rows: Rows) -> Iterator[str]:
    moves = defaultdict(list)
    for one in sorted(rows.postings, key=lambda one: (one.seq, one.n)):
        moves[one.seq].append([one.debit, one.credit, one.amount])
    last, number = "0" * 64, 0
    for entry in sorted(rows.entries, key=lambda one: one.seq):
        number += 1
        if entry.seq != number:
            yield f"10 entry {number} is missing"
            return
        at = entry.at.astimezone(UTC).isoformat()
        said = [
            *(entry.organization_id, entry.seq, entry.key, entry.kind, entry.reference),
            *(at, moves[entry.seq]),
        ]
        text = last + json.dumps(said, ensure_ascii=False, separators=(",", ":"))
        last = hashlib.sha256(text.encode()).hexdigest()
        if entry.hash != last:
            yield f"10 entry {number} is not what was written"
            return
    account = rows.account
    if (account.seq, account.hash) != (number, last) if account else number:
        yield f"10 the account does not stand at entry {number}"
