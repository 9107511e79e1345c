"""The chain of a ledger's entries: how each is hashed, and how a changed row is found."""

import hashlib
import json
from collections.abc import Iterable, Sequence
from datetime import UTC

from tolsey.actors.organization.credits import GENESIS
from tolsey.storage.records.credits import CreditEntry, CreditPosting

Move = tuple[str, str, int]
"""A debit account, a credit account, and the amount that goes from the latter to the former."""

Entry = tuple[CreditEntry, Sequence[CreditPosting]]


def sealed(previous: str, entry: CreditEntry, moves: Sequence[Move]) -> str:
    """Hash an entry onto the hash before it: sha256 of that and of the entry's canonical JSON."""
    row = (
        entry.organization_id,
        entry.seq,
        entry.key,
        entry.kind,
        entry.reference,
        entry.at.astimezone(UTC).isoformat(),
        moves,
    )
    text = previous + json.dumps(row, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()


def broken_at(entries: Iterable[Entry], last: str | None = None) -> int | None:
    """Find where a ledger, from its first entry on, is not what was written; None when it is.

    The answer is the entry that is missing or was changed. `last` is the hash the ledger ends in,
    by which entries that were cut off its end are missed.
    """
    expected, previous = 1, GENESIS
    for entry, postings in entries:
        moves = [(one.debit, one.credit, one.amount) for one in postings]
        numbered = all(one.n == n and one.seq == entry.seq for n, one in enumerate(postings))
        if entry.seq != expected or not numbered or entry.hash != sealed(previous, entry, moves):
            return expected
        expected, previous = expected + 1, entry.hash
    return expected if last is not None and previous != last else None


def replayed(postings: Iterable[CreditPosting]) -> dict[str, int]:
    """Add postings up to what each account came to; what came to nothing is left out."""
    accounts: dict[str, int] = {}
    for one in postings:
        accounts[one.debit] = accounts.get(one.debit, 0) + one.amount
        accounts[one.credit] = accounts.get(one.credit, 0) - one.amount
    return {name: amount for name, amount in accounts.items() if amount}


def balance_moved(moves: Iterable[Move]) -> int:
    """Tell by how much an entry moved the balance: lots, what is held, and the debt."""
    moved = 0
    for debit, credit, amount in moves:
        moved += amount * (_is_own(debit) - _is_own(credit))
    return moved


def _is_own(account: str) -> bool:
    return account == "debt" or account.startswith(("lot:", "held:"))
