"""Tables of agents: clients, what users let them do, and the codes and tokens that come of it."""

from datetime import datetime
from typing import Annotated, Final

from tolsey.storage.tables import Age, Personal, Sealed, bare

CLIENTS: Final = bare(
    "oauth_clients",
    {
        "id": str,
        "name": str,
        "redirect_uris": tuple[str, ...],
        "auth_method": str,
        "secret_hash": Annotated[bytes | None, Sealed],
        "created_at": datetime,
        "used_at": datetime,
    },
    key=("id",),
    retention=(
        Age(column="used_at", interval="90 days"),
        Age(column="created_at", interval="1 day", where="used_at = created_at"),
    ),
    swept="agentClients",
)
REQUESTS: Final = bare(
    "oauth_requests",
    {
        "id_hash": Annotated[bytes, Sealed],
        "client_id": str,
        "client_name": str,
        "redirect_uri": str,
        "state": str | None,
        "code_challenge": str,
        "resource": str,
        "store_id": str,
        "scopes": tuple[str, ...],
        "expires_at": datetime,
        "used_at": datetime | None,
        "refusal": str | None,
    },
    key=("id_hash",),
    retention=Age(column="expires_at", interval="1 day"),
    swept="agentRequests",
)
CODES: Final = bare(
    "oauth_codes",
    {
        "code_hash": Annotated[bytes, Sealed],
        "grant_id": str,
        "code_challenge": str,
        "expires_at": datetime,
        "used_at": datetime | None,
    },
    key=("code_hash",),
    retention=Age(column="expires_at", interval="1 day"),
    swept="agentCodes",
)
TOKENS: Final = bare(
    "oauth_tokens",
    {
        "token_hash": Annotated[bytes, Sealed],
        "grant_id": str,
        "kind": str,
        "scopes": tuple[str, ...],
        "expires_at": datetime,
        "used_at": datetime | None,
        "successor_salt": Annotated[bytes | None, Sealed],
    },
    key=("token_hash",),
    # A refresh token that comes again after its use ends the grant: for that it is known a while longer.
    retention=Age(column="expires_at", interval="30 days"),
    swept="agentTokens",
)
GRANTS: Final = bare(
    "oauth_grants",
    {
        "id": str,
        "user_id": Annotated[str, Personal.USER],
        "client_id": str,
        "client_name": str,
        "redirect_uri": str,
        "organization_id": str,
        "store_id": str,
        "resource": str,
        "scopes": tuple[str, ...],
        "created_at": datetime,
        "used_at": datetime | None,
        "ended_at": datetime | None,
        "why": str | None,
        "ended_by": Annotated[str | None, Personal.USER],
        "review_at": datetime,
    },
    key=("id",),
    retention=Age(column="ended_at", interval="90 days"),
    swept="agentGrants",
)
