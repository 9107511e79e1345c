"""What operators are told: what something is, why it does not work, what is asked of the outside and failed."""

import json
from collections.abc import Container
from typing import Any, Self

from tolsey.http.answers.base import ApiAnswer, Omittable, Timestamp
from tolsey.http.answers.stores.connection import StoreAnswer
from tolsey.runtime.messages import ActorId
from tolsey.storage.database import Row
from tolsey.storage.finding import Found
from tolsey.storage.lifecycle.retention import RetentionRule
from tolsey.storage.runtime.dead_letters import MOST_COUNTED
from tolsey.storage.selling.listings import ListingView


class CallAnswer(ApiAnswer):
    """A call to the outside, and whose it is: how far, tries, when the next one comes, the last error."""

    kind: str
    actor_id: str
    key: str
    call: str
    lane: str
    state: str
    attempts: int
    next_try_at: Timestamp | None
    last_error: str | None
    request_id: str | None
    created_at: Timestamp
    finished_at: Timestamp | None

    @classmethod
    def of(cls, to: ActorId, row: Any, being_made: Container[str]) -> Self:
        """Show a call. A try counts when it begins; the first one of what may be repeated is not on disk."""
        is_begun = row["state"] == "sent" or row["key"] in being_made
        return cls.read(
            row,
            kind=to.kind,
            actor_id=to.key,
            call=row["name"],
            state="sent" if is_begun else row["state"],
            attempts=row["attempts"] + (is_begun or row["state"] == "done"),
            next_try_at=None if is_begun else row["due_at"],
        )


class ProofStateAnswer(ApiAnswer):
    """How far the revenue of a listing is proven by one provider, and what was wrong last."""

    provider: str
    state: str
    since: Timestamp | None
    last_ok_at: Timestamp | None
    reason: str | None


class SoldAnswer(ApiAnswer):
    """A listing that sells a store, as its operators need it."""

    id: str
    title: str
    slug: str
    status: str
    proofs: list[ProofStateAnswer]

    @classmethod
    def of(cls, view: ListingView) -> Self:
        """Show a listing and each source that was ever given."""
        return cls.read(
            view.listing,
            proofs=[
                ProofStateAnswer.read(
                    machine,
                    reason=machine.missing_permission
                    or machine.suspended_for
                    or machine.last_error,
                )
                for machine in (proof.verification for proof in view.proofs)
                if machine.since is not None
            ],
        )


class CauseAnswer(ApiAnswer):
    """Something that keeps a store from working, what to do about it, the operators' page where it is done, and what is done there."""

    cause: str
    why: str
    do: str
    since: Timestamp | None = None
    page: Omittable[str] = None
    act: Omittable[str] = None


class DiagnosisAnswer(ApiAnswer):
    """Why a store does not work: causes, worst first, and the calls that say so."""

    store: StoreAnswer
    shop_domain: str | None
    listings: list[SoldAnswer]
    causes: list[CauseAnswer]
    calls: list[CallAnswer]
    mailbox_depth: int
    oldest_message_seconds: float


class FoundAnswer(ApiAnswer):
    """A user, an organization, a store or a listing; `matched` says by what it was found."""

    kind: str
    id: str
    name: str | None
    organization_id: str | None
    shop_domain: str | None
    matched: str
    deleted: bool

    @classmethod
    def of(cls, found: Found) -> Self:
        """Show what was found."""
        return cls.read(found, deleted=found.is_deleted)


class FindAnswer(ApiAnswer):
    """What was found; where that is one store and what belongs to it, `diagnosis` says how it is."""

    items: list[FoundAnswer]
    next_cursor: None = None
    diagnosis: DiagnosisAnswer | None


class RetentionAnswer(ApiAnswer):
    """Which rows go when they are so old, by which job, and how many a run would let go now."""

    table: str
    column: str
    kept_for: str
    which: str | None
    job: str
    counter: str
    due: int
    more: bool

    @classmethod
    def of(cls, rule: RetentionRule, due: int, most: int) -> Self:
        """Show a rule; nothing is counted beyond so many rows."""
        return cls(
            table=rule.table,
            column=rule.age.column,
            kept_for=rule.age.interval,
            which=rule.age.where or None,
            job=rule.job,
            counter=rule.name,
            due=min(due, most),
            more=due > most,
        )


class DeadLetterAnswer(ApiAnswer):
    """A message or call that failed for good; `payload` is the message, kept whole, `fingerprint` its group.

    What the same sender says of the same thing (`about`) waits behind it: so many are `behind`, counted up to 1,000.
    """

    id: str
    key: str
    kind: str
    actor_id: str
    message: str
    payload: dict[str, Any]
    attempts: int
    error: str
    fingerprint: str
    about: str
    behind: int
    status: str
    request_id: str | None
    created_at: Timestamp
    died_at: Timestamp
    settled_at: Timestamp | None

    @classmethod
    def of(cls, row: Row) -> Self:
        """Show a row of the dead letters."""
        payload = json.loads(row["payload"])
        return cls.read(row, actor_id=row["actor_key"], message=row["name"], payload=payload)


class DeadLetterGroupAnswer(ApiAnswer):
    """Dead letters of one message that failed for one cause: how many (`more`: at least), and the newest one's error."""

    fingerprint: str
    kind: str
    message: str
    lane: str | None
    error: str
    letters: int
    more: bool
    first_died_at: Timestamp
    last_died_at: Timestamp

    @classmethod
    def of(cls, row: Row) -> Self:
        """Show a group."""
        return cls.read(
            row,
            message=row["name"],
            letters=min(row["letters"], MOST_COUNTED),
            more=row["letters"] > MOST_COUNTED,
        )


class HeldMessageAnswer(ApiAnswer):
    """A message that waits behind a dead letter."""

    key: str
    message: str
    request_id: str | None
    created_at: Timestamp

    @classmethod
    def of(cls, row: Row) -> Self:
        """Show a row of the outbox."""
        return cls.read(row, message=row["name"])


class QuarantineAnswer(ApiAnswer):
    """A dead letter, and what waits behind it in the order in which it will take effect; the first 50."""

    letter: DeadLetterAnswer
    held: list[HeldMessageAnswer]


class SettledLetterAnswer(ApiAnswer):
    """A dead letter that was sent again or given up; of a dry run, one that would be. So many `behind` it go on."""

    id: str
    status: str
    affected: int
    behind: int
    dry_run: bool


class SettledGroupAnswer(ApiAnswer):
    """How many letters of a group were sent again or given up, or would be; `remaining` are for the next request.

    What waited behind them goes on: `behind`, counted up to 10,000.
    """

    fingerprint: str
    status: str
    affected: int
    behind: int
    remaining: int
    dry_run: bool
