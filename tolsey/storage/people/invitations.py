"""SQL for invitations: a token is 32 random bytes, and only its SHA-256 is kept.

Who changes an invitation holds its organization's row first, as who changes its members does.
"""

import secrets
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from tolsey.storage import audit
from tolsey.storage.conditions import Conditions
from tolsey.storage.database import Database, Row, Transaction
from tolsey.storage.people import members
from tolsey.storage.people.tokens import TOKEN_BYTES, TOKEN_CHARACTERS
from tolsey.storage.records.people import Invitation
from tolsey.storage.sealing.sealed import fingerprint
from tolsey.storage.tables import table_of

INVITATIONS: Final = table_of(Invitation)
LIFETIME: Final = timedelta(days=7)
PREFIX: Final = "invite_"
"""Logs mask what begins so."""
MOST_OPEN: Final = 100
"""How many invitations of an organization wait at a time."""

SELECT: Final = f"""
SELECT {INVITATIONS.selected_of("i")}, organizations.name AS organization_name, users.email AS inviter
FROM invitations i
JOIN organizations ON organizations.id = i.organization_id
JOIN users ON users.id = i.invited_by
"""  # noqa: S608 - columns of the record
MAY_INVITE: Final = """
SELECT role = 'owner' OR (role = 'admin' AND $3 <> 'owner') FROM members
WHERE organization_id = $1 AND user_id = $2
"""
OPEN: Final = "i.ended_at IS NULL AND i.expires_at > "


@dataclass(frozen=True, slots=True)
class InvitationRow:
    """An invitation, with what its organization is called and the address of whoever invited."""

    invitation: Invitation
    organization_name: str
    inviter: str


class TooManyOpen(Exception):  # noqa: N818 - what is wrong
    """As many invitations of the organization wait as may."""


def _read(row: Row) -> InvitationRow:
    return InvitationRow(INVITATIONS.read(row), row["organization_name"], row["inviter"])


async def begin(
    tx: Transaction,
    invitation_id: str,
    *,
    organization_id: str,
    email: str,
    role: str,
    invited_by: str,
    at: datetime,
) -> tuple[Invitation, str] | None:
    """Invite an address in place of its earlier invitation; answer with its token too, kept nowhere.

    None when the inviter may not, or not any more. Raises TooManyOpen.
    """
    await members.hold(tx, organization_id)
    # Only owners and admins invite, and only owners make owners (rules/accounts#members).
    if not await tx.fetchval(MAY_INVITE, organization_id, invited_by, role):
        return None
    await tx.execute(
        """
        UPDATE invitations SET ended_at = $3, why = 'replaced', ended_by = $4
        WHERE organization_id = $1 AND email = $2 AND ended_at IS NULL
        """,
        organization_id,
        email,
        at,
        invited_by,
    )
    waiting = await tx.fetchval(
        f"SELECT count(*) FROM invitations i WHERE organization_id = $1 AND {OPEN}$2",  # noqa: S608 - a condition of this file
        organization_id,
        at,
    )
    if waiting >= MOST_OPEN:
        raise TooManyOpen
    token = PREFIX + secrets.token_urlsafe(TOKEN_BYTES)
    invitation = Invitation(
        id=invitation_id,
        token_hash=fingerprint(token),
        organization_id=organization_id,
        email=email,
        role=role,
        invited_by=invited_by,
        created_at=at,
        expires_at=at + LIFETIME,
    )
    await tx.execute(INVITATIONS.insert, *INVITATIONS.values_of(invitation))
    await audit.write(
        tx,
        "organization.member_invited",
        invitation_id,
        organization_id=organization_id,
        actor=invited_by,
        role=role,
    )
    return invitation, token


async def find(database: Database, token: str) -> InvitationRow | None:
    """Find the invitation of a token, whatever became of it."""
    if len(token) > TOKEN_CHARACTERS:
        return None
    row = await database.fetchrow(f"{SELECT} WHERE i.token_hash = $1", fingerprint(token))
    return _read(row) if row else None


async def listed(
    database: Database, organization_id: str, at: datetime, *, before: str, limit: int
) -> list[InvitationRow]:
    """List the invitations of an organization that wait, newest first, after an id unless it is empty."""
    wanted = Conditions(limit, organization_id, at)
    wanted.add(f"i.organization_id = $2 AND {OPEN}$3")
    wanted.add("i.id < {}", before or None)
    rows = await database.fetch(
        f"{SELECT} WHERE {wanted} ORDER BY i.id DESC LIMIT $1", *wanted.args
    )
    return [_read(row) for row in rows]


async def accept(tx: Transaction, invitation: Invitation, user_id: str, at: datetime) -> bool:
    """Use an invitation up and make its reader a member; False when it is over by now."""
    await members.hold(tx, invitation.organization_id)
    status = await tx.execute(
        """
        UPDATE invitations SET ended_at = $2, why = 'accepted', ended_by = $3
        WHERE id = $1 AND ended_at IS NULL AND expires_at > $2
        """,
        invitation.id,
        at,
        user_id,
    )
    if status != "UPDATE 1":
        return False
    await members.add(
        tx, invitation.organization_id, user_id, invitation.role, invitation=invitation.id, at=at
    )
    return True


async def withdraw(
    tx: Transaction, organization_id: str, invitation_id: str, actor: str, at: datetime
) -> bool:
    """Withdraw an invitation of an organization; False when it has none that waits."""
    await members.hold(tx, organization_id)
    status = await tx.execute(
        """
        UPDATE invitations SET ended_at = $3, why = 'withdrawn', ended_by = $4
        WHERE organization_id = $1 AND id = $2 AND ended_at IS NULL AND expires_at > $3
        """,
        organization_id,
        invitation_id,
        at,
        actor,
    )
    return bool(status == "UPDATE 1")
