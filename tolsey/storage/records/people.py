"""Tables of people: who they are, where they belong, and what they are signed in with."""

from dataclasses import dataclass, field
from datetime import datetime
from typing import Annotated, Final, Literal

from tolsey.storage.owners import ADDRESS_OF_USER, OF_ORGANIZATION, OF_USER, Belongs, RowOwner
from tolsey.storage.tables import Age, Jsonb, Personal, Sealed, bare, stored

InvitationState = Literal["open", "accepted", "replaced", "withdrawn", "expired"]

SESSIONS: Final = bare(
    "sessions",
    {
        "token_hash": Annotated[bytes, Sealed],
        "user_id": Annotated[str, Personal.USER],
        "created_at": datetime,
        "expires_at": datetime,
        "used_at": datetime | None,
        "device": Annotated[str | None, Personal.USER],
        "place": Annotated[str | None, Personal.USER],
    },
    key=("token_hash",),
    retention=Age(column="expires_at"),
    swept="sessions",
    belongs=OF_USER,
    export="sessions",
)
PASSWORD_RESETS: Final = bare(
    "password_resets",
    {
        "token_hash": Annotated[bytes, Sealed],
        "user_id": Annotated[str, Personal.USER],
        "created_at": datetime,
        "expires_at": datetime,
    },
    key=("token_hash",),
    retention=Age(column="expires_at"),
    swept="passwordResets",
    belongs=OF_USER,
    export="passwordResets",
)
MEMBERS: Final = bare(
    "members",
    {
        "organization_id": str,
        "user_id": Annotated[str, Personal.USER],
        "role": str,
        "created_at": datetime,
    },
    key=("organization_id", "user_id"),
    belongs=(OF_ORGANIZATION, OF_USER),
    export="memberships",
)
IDEMPOTENCY_KEYS: Final = bare(
    "idempotency_keys",
    {
        "user_id": Annotated[str, Personal.USER],
        "key": str,
        "fingerprint": bytes,
        "request_id_seed": str,
        "created_at": datetime,
        "locked_until": datetime | None,
        "answer": Annotated[str | None, Jsonb, Personal.FREE_TEXT],
    },
    key=("user_id", "key"),
    retention=Age(column="created_at", interval="24 hours"),
    swept="idempotencyKeys",
    belongs=OF_USER,
    export="requestsToRepeat",
)
AFFILIATE_CODES: Final = bare(
    "affiliate_codes",
    {"id": str, "user_id": Annotated[str, Personal.USER], "code": str, "created_at": datetime},
    key=("id",),
    belongs=OF_USER,
    export="affiliateCodes",
)


@stored(
    "users",
    key=("id",),
    belongs=Belongs(
        to=RowOwner.USER,
        by="id",
        emptied={
            "email": "id || '@deleted.invalid'",
            "password_hash": "''",
            "language": "NULL",
            "inbox_seen_at": "NULL",
        },
    ),
    export="users",
)
@dataclass(frozen=True, slots=True, kw_only=True)
class UserRow:
    """A user, as login needs them."""

    id: Annotated[str, Personal.USER]
    email: Annotated[str, Personal.EMAIL]
    password_hash: str = field(metadata={"secret": True}, repr=False)
    banned: bool
    deletion_requested_at: datetime | None
    created_at: datetime
    language: str | None = None
    """In which they read, as their browser said when they last signed in; None when nothing said."""
    inbox_seen_at: datetime | None = None
    """Until when they have seen what wants them."""


@stored(
    "invitations",
    key=("id",),
    # Invitations are kept for twelve months, then they go (rules/accounts#members).
    retention=Age(column="expires_at", interval="12 months"),
    swept="invitations",
    belongs=(
        OF_ORGANIZATION,
        Belongs(to=RowOwner.USER, by=f"(invited_by = $1 OR email = {ADDRESS_OF_USER})"),
    ),
    export="invitations",
)
@dataclass(frozen=True, slots=True, kw_only=True)
class Invitation:
    """An address that is wanted in an organization, and by whom; open until it has ended or expired."""

    id: str
    token_hash: Annotated[bytes, Sealed] = field(repr=False)
    organization_id: str
    email: Annotated[str, Personal.EMAIL]
    role: str
    invited_by: Annotated[str, Personal.USER]
    created_at: datetime
    expires_at: datetime
    ended_at: datetime | None = None
    why: str | None = None
    ended_by: Annotated[str | None, Personal.USER] = None

    def state_at(self, at: datetime) -> InvitationState:
        """Tell whether it can be accepted at a moment, or why it cannot."""
        match self.why:
            case "accepted":
                return "accepted"
            case "replaced":
                return "replaced"
            case None:
                return "open" if at < self.expires_at else "expired"
            case _:
                return "withdrawn"


@stored(
    "api_keys",
    key=("id",),
    retention=(
        Age(column="expires_at", interval="90 days"),
        Age(column="ended_at", interval="90 days"),
    ),
    swept="apiKeys",
    belongs=(OF_ORGANIZATION, OF_USER),
    export="apiKeys",
)
@dataclass(frozen=True, slots=True, kw_only=True)
class ApiKey:
    """A key by which a program of a user reads for an organization; live until it has ended or expired."""

    id: str
    key_hash: Annotated[bytes, Sealed] = field(repr=False)
    prefix: str
    """What its value begins with, by which its user knows it again."""
    organization_id: str
    user_id: Annotated[str, Personal.USER]
    name: Annotated[str, Personal.FREE_TEXT]
    scopes: tuple[str, ...]
    created_at: datetime
    expires_at: datetime
    used_at: datetime | None = None
    ended_at: datetime | None = None
    why: str | None = None
    ended_by: Annotated[str | None, Personal.USER] = None
