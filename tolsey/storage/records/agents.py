"""Tables of agents: clients, what users let them do, and the codes and tokens that come of it."""

from datetime import datetime
from typing import Annotated, Final

from tolsey.storage.owners import OF_ORGANIZATION, OF_STORE, OF_USER, Belongs, RowOwner
from tolsey.storage.tables import Age, Personal, Sealed, bare

HASHES: Final = "Hashes of what an agent opens a store with; what it may stands in its grant."

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
    nobodys="Programs register themselves; who uses them stands in their grants.",
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
    belongs=OF_STORE,
    unexported="A question that a program left open; it is gone after a day.",
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
    belongs=Belongs(
        to=RowOwner.USER, by="grant_id IN (SELECT id FROM oauth_grants WHERE user_id = $1)"
    ),
    unexported=HASHES,
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
    belongs=Belongs(
        to=RowOwner.USER, by="grant_id IN (SELECT id FROM oauth_grants WHERE user_id = $1)"
    ),
    unexported=HASHES,
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
    belongs=(OF_USER, OF_ORGANIZATION, OF_STORE),
    export="agentGrants",
)
