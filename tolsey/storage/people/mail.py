"""SQL for what is written to people: mails that wait, what became of them, and who wants no more."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, datetime
from typing import Final

from tolsey.storage.conditions import Conditions
from tolsey.storage.database import Database, Reader, Transaction
from tolsey.storage.lookups import record, records
from tolsey.storage.records.mail import (
    DAILY_MAILS,
    MAIL_REFUSALS,
    MailBounce,
    MailPace,
    OutboundMail,
)
from tolsey.storage.tables import table_of

MAILS: Final = table_of(OutboundMail)
BOUNCES: Final = table_of(MailBounce)
CHOICES: Final = {DAILY_MAILS.name: MailPace.DAILY, MAIL_REFUSALS.name: MailPace.NEVER}
"""Where it is kept that an address wants mails otherwise than at once."""


@dataclass(frozen=True, slots=True)
class Addressee:
    """Whom a mail is for: an address, and what the organization it is about is called."""

    email: str
    organization_name: str | None = None


async def add(tx: Transaction, mail: OutboundMail) -> bool:
    """Keep a mail; False when the same was written to the same person before."""
    sql = f"{MAILS.insert} ON CONFLICT (event, about, recipient) DO NOTHING"
    status = await tx.execute(sql, *MAILS.values_of(mail))
    return bool(status == "INSERT 0 1")


async def find(database: Database, mail_id: str) -> OutboundMail | None:
    """Find a mail."""
    return await record(database, MAILS, "id = $1", mail_id)


async def listed(
    database: Reader,
    limit: int,
    before: tuple[datetime, str] | None,
    *,
    state: str | None = None,
    recipient: str | None = None,
) -> list[OutboundMail]:
    """List mails, newest first, after a cursor of time and id."""
    wanted = Conditions(limit)
    wanted.add("state = {}", state)
    wanted.add("recipient = {}", recipient)
    if before is not None:
        wanted.add("(created_at, id) < ({}, {})", *before)
    where = f"{wanted} ORDER BY created_at DESC, id DESC LIMIT $1"
    return await records(database, MAILS, where, *wanted.args)


async def keep(database: Database, mail_id: str, at: datetime) -> bool:
    """Leave a mail unsent that there is no server for; its content stays, to be looked at."""
    status = await database.execute(
        """
        UPDATE outbound_mail SET state = 'kept', next_try_at = NULL, ended_at = $2
        WHERE id = $1 AND state = 'waiting'
        """,
        mail_id,
        at,
    )
    return bool(status)


async def end(database: Database, mail_id: str, *, state: str, answer: str, at: datetime) -> None:
    """Note what the server said to the last try of a mail, and let its content go."""
    await database.execute(
        """
        UPDATE outbound_mail SET state = $2, answer = $3, ended_at = $4, attempts = attempts + 1,
                                 next_try_at = NULL, sealed_content = NULL
        WHERE id = $1 AND state = 'waiting'
        """,
        mail_id,
        state,
        answer,
        at,
    )


async def give_up(tx: Transaction, event: str, about: str, *, answer: str, at: datetime) -> None:
    """Send no mail of an event any more that waits, and let its content go: what it tells is so no more."""
    await tx.execute(
        """
        UPDATE outbound_mail SET state = 'given_up', answer = $3, ended_at = $4, next_try_at = NULL,
                                 sealed_content = NULL
        WHERE event = $1 AND about = $2 AND state = 'waiting'
        """,
        event,
        about,
        answer,
        at,
    )


async def postpone(database: Database, mail_id: str, *, answer: str, until: datetime) -> None:
    """Note a try that failed for now."""
    await database.execute(
        """
        UPDATE outbound_mail SET attempts = attempts + 1, answer = $2, next_try_at = $3
        WHERE id = $1 AND state = 'waiting'
        """,
        mail_id,
        answer,
        until,
    )


async def choose(tx: Transaction, recipient: str, topic: str, pace: MailPace, at: datetime) -> None:
    """Keep how an address wants the mails of a topic."""
    for table, kept in CHOICES.items():
        if pace is kept:
            await tx.execute(
                f"INSERT INTO {table} (recipient, topic, since) VALUES ($1, $2, $3)"  # noqa: S608 - our own names
                " ON CONFLICT (recipient, topic) DO NOTHING",
                recipient,
                topic,
                at,
            )
        else:
            await tx.execute(
                f"DELETE FROM {table} WHERE recipient = $1 AND topic = $2",  # noqa: S608 - our own names
                recipient,
                topic,
            )


async def refuse_daily(tx: Transaction, recipient: str, at: datetime) -> None:
    """Write no more to an address of what it wanted once a day."""
    await tx.execute(
        """
        WITH gone AS (DELETE FROM daily_mails WHERE recipient = $1 RETURNING topic)
        INSERT INTO mail_refusals (recipient, topic, since) SELECT $1, topic, $2 FROM gone
        ON CONFLICT (recipient, topic) DO NOTHING
        """,
        recipient,
        at,
    )


async def paces(database: Reader, recipient: str) -> dict[str, MailPace]:
    """Tell how an address wants the mails of topics; those that are not named are wanted at once."""
    rows = await database.fetch(
        """
        SELECT topic, 'daily' AS pace FROM daily_mails WHERE recipient = $1
        UNION ALL SELECT topic, 'never' FROM mail_refusals WHERE recipient = $1
        """,
        recipient,
    )
    return {row["topic"]: MailPace(row["pace"]) for row in rows}


async def of_digest(
    tx: Transaction, recipient: str, day: date, unwanted: Sequence[str], limit: int
) -> list[OutboundMail]:
    """List the mails that a day's mail to an address tells of, but for events that it wants no more, in order."""
    where = (
        "recipient = $1 AND digest_on = $2 AND state = 'waiting' AND event <> ALL($3::text[])"
        " ORDER BY created_at, id LIMIT $4 FOR UPDATE"
    )
    return await records(tx, MAILS, where, recipient, day, list(unwanted), limit)


async def end_digested(
    tx: Transaction,
    recipient: str,
    day: date,
    unwanted: Sequence[str],
    *,
    answer: str,
    at: datetime,
) -> int:
    """End the mails that a day's mail tells of; answer how many, without those that are wanted no more."""
    rows = await tx.fetch(
        """
        UPDATE outbound_mail SET state = CASE WHEN event = ANY($3::text[]) THEN 'given_up' ELSE 'sent' END,
            answer = CASE WHEN event = ANY($3::text[]) THEN 'It was wanted no more.' ELSE $5 END,
            ended_at = $4, sealed_content = NULL
        WHERE recipient = $1 AND digest_on = $2 AND state = 'waiting' RETURNING state
        """,
        recipient,
        day,
        list(unwanted),
        at,
        answer,
    )
    return sum(row["state"] == "sent" for row in rows)


async def language_of(tx: Transaction, recipient: str) -> str | None:
    """Tell in which language an address reads; None for one that is nobody's."""
    language: str | None = await tx.fetchval(
        "SELECT language FROM users WHERE email = $1", recipient
    )
    return language


async def mark(tx: Transaction, bounce: MailBounce) -> None:
    """Mark an address; one that bounced stays marked so when its reader complains, too."""
    await tx.execute(
        f"{BOUNCES.insert} ON CONFLICT (recipient) DO UPDATE SET kind = excluded.kind,"
        " why = excluded.why, since = excluded.since WHERE mail_bounces.kind <> 'bounced'",
        *BOUNCES.values_of(bounce),
    )


async def mark_of(database: Reader, recipient: str) -> MailBounce | None:
    """Find what an address is marked with."""
    return await record(database, BOUNCES, "recipient = $1", recipient)


async def unmark(tx: Transaction, recipient: str) -> bool:
    """Let an address be written to again; False where it was not marked."""
    status = await tx.execute("DELETE FROM mail_bounces WHERE recipient = $1", recipient)
    return str(status) == "DELETE 1"


async def marks(
    database: Reader, limit: int, before: tuple[datetime, str] | None
) -> list[MailBounce]:
    """List marked addresses, newest first, after a cursor of time and address."""
    wanted = Conditions(limit)
    wanted.add("(since, recipient) < ({}, {})", *(before or (None,)))
    where = f"{wanted} ORDER BY since DESC, recipient DESC LIMIT $1"
    return await records(database, BOUNCES, where, *wanted.args)


async def those_in(
    database: Database, organization_id: str, roles: Sequence[str]
) -> list[Addressee]:
    """List the members of an organization with one of these roles who can sign in."""
    rows = await database.fetch(
        """
        SELECT users.email, organizations.name AS organization_name
        FROM members
        JOIN users ON users.id = members.user_id
        JOIN organizations ON organizations.id = members.organization_id
        WHERE members.organization_id = $1 AND members.role = ANY($2::text[])
          AND NOT users.banned AND users.deletion_requested_at IS NULL
        ORDER BY members.created_at, users.id LIMIT 100
        """,
        organization_id,
        list(roles),
    )
    return [Addressee(**row) for row in rows]


async def payee(database: Database, account_id: str) -> list[Addressee]:
    """Find whose payout account this is."""
    rows = await database.fetch(
        """
        SELECT users.email FROM payout_accounts JOIN users ON users.id = payout_accounts.user_id
        WHERE payout_accounts.account_id = $1
        """,
        account_id,
    )
    return [Addressee(**row) for row in rows]
