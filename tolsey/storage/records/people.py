"""Tables of people: who they are, where they belong, and what they are signed in with."""

from datetime import datetime
from typing import Annotated, Final

from tolsey.storage.tables import Age, Jsonb, Personal, Sealed, bare

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
)
AFFILIATE_CODES: Final = bare(
    "affiliate_codes",
    {"id": str, "user_id": Annotated[str, Personal.USER], "code": str, "created_at": datetime},
    key=("id",),
)
