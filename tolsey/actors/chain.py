"""The chain of a ledger's entries: how each is hashed, and how a changed row is found."""

import hashlib
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Final

import orjson

from tolsey.storage.records.money.credits import OWN_ACCOUNTS, CreditEntry, CreditPosting

GENESIS: Final = "0" * 64
"""What the first entry of a ledger follows."""
OWN: Final = re.compile(OWN_ACCOUNTS)

Move = tuple[str, str, int]
"""A debit account, a credit account, and the amount that goes from the latter to the former."""

Entry = tuple[CreditEntry, Sequence[CreditPosting]]


Row = tuple[str, int, str, str, str | None, datetime]
"""What an entry says beside its movements: whose, which, its key, kind, reference and time."""


def sealed(previous: str, row: Row, moves: Sequence[Move]) -> str:
    """Hash an entry onto the hash before it: sha256 of that and of the entry as a JSON list.

    The list is of text, integers and null, in the one form that RFC 8785 has for them, in UTF-8.
    """
    *said, at = row
    entry = orjson.dumps((*said, at.astimezone(UTC), moves))
    return hashlib.sha256(previous.encode() + entry).hexdigest()


@dataclass(slots=True)
class Replay:
    """A ledger that is read again, from its first entry or from one that was right before."""

    seq: int = 0
    hash: str = GENESIS
    accounts: dict[str, int] = field(default_factory=dict)
    """What each account came to; some to nothing."""

    def follow(self, entry: CreditEntry, postings: Sequence[CreditPosting]) -> bool:
        """Add the next entry; False when it is another one, or not what was written."""
        moves = [(one.debit, one.credit, one.amount) for one in postings]
        row = (
            entry.organization_id,
            entry.seq,
            entry.key,
            entry.kind,
            entry.reference,
            entry.at,
        )
        numbered = all(one.n == n and one.seq == entry.seq for n, one in enumerate(postings))
        if entry.seq != self.seq + 1 or not numbered or entry.hash != sealed(self.hash, row, moves):
            return False
        for debit, credit, amount in moves:
            self.accounts[debit] = self.accounts.get(debit, 0) + amount
            self.accounts[credit] = self.accounts.get(credit, 0) - amount
        self.seq, self.hash = entry.seq, entry.hash
        return True


def broken_at(entries: Iterable[Entry], last: str | None = None) -> int | None:
    """Find where a ledger, from its first entry on, is not what was written; None when it is.

    The answer is the entry that is missing or was changed. `last` is the hash the ledger ends in,
    by which entries that were cut off its end are missed.
    """
    replay = Replay()
    if not all(replay.follow(*pair) for pair in entries):
        return replay.seq + 1
    return replay.seq + 1 if last is not None and replay.hash != last else None


def replayed(postings: Iterable[CreditPosting]) -> dict[str, int]:
    """Add postings up to what each account came to; what came to nothing is left out."""
    accounts: dict[str, int] = {}
    for one in postings:
        accounts[one.debit] = accounts.get(one.debit, 0) + one.amount
        accounts[one.credit] = accounts.get(one.credit, 0) - one.amount
    return {name: amount for name, amount in accounts.items() if amount}


def own(accounts: Mapping[str, int]) -> dict[str, int]:
    """Keep the accounts of what an organization has and owes: its lots, holds and debt."""
    return {name: amount for name, amount in accounts.items() if amount and _is_own(name)}


def balance_moved(moves: Iterable[Move]) -> int:
    """Tell by how much an entry moved the balance: lots, what is held, and the debt."""
    moved = 0
    for debit, credit, amount in moves:
        moved += amount * (_is_own(debit) - _is_own(credit))
    return moved


def _is_own(account: str) -> bool:
    return OWN.match(account) is not None
