"""SQL for API keys, and what a value looks like; of a value only its SHA-256 and its beginning are kept.

A value is `bei_`, 8 characters by which it is known again, 32 random ones, and 6 that check the rest
(rules/accounts#api-keys): a mistyped one is told from a key without a look at the database.
"""

import secrets
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from string import ascii_letters, digits
from typing import Final

from tolsey.storage import audit
from tolsey.storage.conditions import Conditions
from tolsey.storage.database import Database, Transaction
from tolsey.storage.people.tokens import NOTED_EVERY
from tolsey.storage.records.people import ApiKey
from tolsey.storage.sealing.sealed import fingerprint
from tolsey.storage.tables import table_of

KEYS: Final = table_of(ApiKey)
PREFIX: Final = "bei_"
"""Logs mask what begins so."""
ALPHABET: Final = digits + ascii_letters
NAME_CHARACTERS: Final = 8
SECRET_CHARACTERS: Final = 32
CHECK_CHARACTERS: Final = 6
"""Enough for the 32 bits of a CRC."""
MOST_LIVE: Final = 50
"""How many keys of a user live at a time."""
LIFETIME_DAYS: Final = 365
"""How long a key lives at most, and unless it is to end sooner."""


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyHolder:
    """For whom a live key speaks, as they stand now: their plan included."""

    key_id: str
    user_id: str
    organization_id: str
    plan: str
    scopes: Sequence[str]


class TooManyLive(Exception):  # noqa: N818 - what is wrong
    """As many keys of the user live as may."""


def make_value() -> str:
    """Make a value of 190 random bits."""
    length = NAME_CHARACTERS + SECRET_CHARACTERS
    drawn = PREFIX + "".join(secrets.choice(ALPHABET) for _ in range(length))
    return drawn + _check(drawn)


def is_well_formed(value: str) -> bool:
    """Tell whether a text may be a value at all."""
    length = len(PREFIX) + NAME_CHARACTERS + SECRET_CHARACTERS + CHECK_CHARACTERS
    if len(value) != length or not value.startswith(PREFIX):
        return False
    return value.isascii() and _check(value[:-CHECK_CHARACTERS]) == value[-CHECK_CHARACTERS:]


def _check(text: str) -> str:
    number, written = zlib.crc32(text.encode()), ""
    for _ in range(CHECK_CHARACTERS):
        number, place = divmod(number, len(ALPHABET))
        written = ALPHABET[place] + written
    return written


async def begin(
    tx: Transaction,
    key_id: str,
    *,
    user_id: str,
    organization_id: str,
    name: str,
    scopes: Sequence[str],
    at: datetime,
    lifetime: timedelta,
) -> tuple[ApiKey, str] | None:
    """Make a key of a member; answer with its value too, kept nowhere; None for no member.

    Raises TooManyLive.
    """
    # The member's row holds back whoever would remove them, and a second key of theirs made meanwhile.
    belongs = await tx.fetchval(
        "SELECT true FROM members WHERE organization_id = $1 AND user_id = $2 FOR UPDATE",
        organization_id,
        user_id,
    )
    if not belongs:
        return None
    live = await tx.fetchval(
        "SELECT count(*) FROM api_keys WHERE user_id = $1 AND ended_at IS NULL AND expires_at > $2",
        user_id,
        at,
    )
    if live >= MOST_LIVE:
        raise TooManyLive
    value = make_value()
    key = ApiKey(
        id=key_id,
        key_hash=fingerprint(value),
        prefix=value[: len(PREFIX) + NAME_CHARACTERS],
        organization_id=organization_id,
        user_id=user_id,
        name=name,
        scopes=tuple(scopes),
        created_at=at,
        expires_at=at + lifetime,
    )
    await tx.execute(KEYS.insert, *KEYS.values_of(key))
    await audit.write(
        tx,
        "api_key.created",
        key_id,
        organization_id=organization_id,
        actor=user_id,
        scopes=list(scopes),
    )
    return key, value


async def listed(
    database: Database, user_id: str, at: datetime, *, before: str, limit: int
) -> list[ApiKey]:
    """List the live keys of a user, newest first, after an id unless it is empty."""
    wanted = Conditions(limit, user_id, at)
    wanted.add("k.user_id = $2 AND k.ended_at IS NULL AND k.expires_at > $3")
    wanted.add("k.id < {}", before or None)
    rows = await database.fetch(
        f"""
        SELECT {KEYS.selected_of("k")} FROM api_keys k WHERE {wanted} ORDER BY k.id DESC LIMIT $1
        """,  # noqa: S608 - columns of the record, conditions of this function
        *wanted.args,
    )
    return [KEYS.read(row) for row in rows]


async def admitted(database: Database, value: str, at: datetime) -> KeyHolder | None:
    """Say for whom a value speaks, and note that it was used; None when it is no live key's."""
    if not is_well_formed(value):
        return None
    # It stands on the membership, the account and the organization (rules/accounts#what-stands-on-what).
    row = await database.fetchrow(
        """
        SELECT k.id, k.user_id, k.organization_id, o.plan, k.scopes, k.used_at
        FROM api_keys k
        JOIN organizations o ON o.id = k.organization_id
        JOIN members m ON m.organization_id = k.organization_id AND m.user_id = k.user_id
        JOIN users u ON u.id = k.user_id
        WHERE k.key_hash = $1 AND k.ended_at IS NULL AND k.expires_at > $2
          AND NOT u.banned AND u.deletion_requested_at IS NULL
        """,
        fingerprint(value),
        at,
    )
    if row is None:
        return None
    if row["used_at"] is None or row["used_at"] < at - NOTED_EVERY:
        await database.execute("UPDATE api_keys SET used_at = $2 WHERE id = $1", row["id"], at)
    return KeyHolder(
        key_id=row["id"],
        user_id=row["user_id"],
        organization_id=row["organization_id"],
        plan=row["plan"],
        scopes=row["scopes"],
    )


async def end(tx: Transaction, user_id: str, key_id: str, at: datetime) -> bool:
    """End a live key of a user; False when they have no such key."""
    status = await tx.execute(
        """
        UPDATE api_keys SET ended_at = $3, why = 'user', ended_by = $1
        WHERE user_id = $1 AND id = $2 AND ended_at IS NULL AND expires_at > $3
        """,
        user_id,
        key_id,
        at,
    )
    return bool(status == "UPDATE 1")


async def end_all(tx: Transaction, user_id: str, *, actor: str, at: datetime) -> None:
    """End every key of a user whose password was set anew: who knew the old one may have made some."""
    await tx.execute(
        """
        UPDATE api_keys SET ended_at = $2, why = 'password', ended_by = $3
        WHERE user_id = $1 AND ended_at IS NULL
        """,
        user_id,
        at,
        actor,
    )
