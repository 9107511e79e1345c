"""Who a client is: registered here, or known by its document; and how it proves that."""

import hmac
import secrets
from datetime import datetime
from typing import Annotated, Any, Final, TypeAlias

from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Field,
    StrictStr,
    StringConstraints,
    ValidationError,
    model_validator,
)

from tolsey.http.answers.people.oauth import ClientAnswer
from tolsey.http.oauth.documents import Documents, is_document
from tolsey.http.oauth.names import is_shown
from tolsey.http.oauth.parameters import InvalidClient, OAuthError, credentials
from tolsey.http.oauth.redirects import is_registrable
from tolsey.http.oauth.scopes import SCOPES, written
from tolsey.storage.database import Database
from tolsey.storage.oauth import clients
from tolsey.storage.oauth.clients import ClientRow
from tolsey.storage.sealing.sealed import fingerprint

SECRET_BYTES: Final = 32
MOST_URIS: Final = 20
MOST_URI_CHARACTERS: Final = 8_000
"""Of all addresses of a client together, so that those that are never used cost little."""
GRANTS: Final = frozenset({"authorization_code", "refresh_token"})
RESPONSES: Final = frozenset({"code"})
USUAL_METHOD: Final = "client_secret_basic"
"""How a client authenticates that names no method, or none that is supported (RFC 7591, 2)."""
METHODS: Final = frozenset({"none", USUAL_METHOD, "client_secret_post"})


def _shown(name: str) -> str:
    if not is_shown(name):
        raise ValueError("must contain visible characters and no hidden ones")
    return name


ClientName: TypeAlias = Annotated[
    StrictStr, StringConstraints(strip_whitespace=True, max_length=100), AfterValidator(_shown)
]


class Registration(BaseModel):
    """A client's metadata (RFC 7591, 2). Unknown fields are ignored, and null means absent."""

    model_config = ConfigDict(extra="ignore", defer_build=True)

    redirect_uris: list[StrictStr] = Field(min_length=1, max_length=MOST_URIS)
    client_name: ClientName = "An agent"
    token_endpoint_auth_method: StrictStr = USUAL_METHOD
    grant_types: list[StrictStr] = []
    response_types: list[StrictStr] = []

    @model_validator(mode="before")
    @classmethod
    def _drop_null(cls, given: Any) -> Any:
        if not isinstance(given, dict):
            return given
        return {name: value for name, value in given.items() if value is not None}


async def register(database: Database, said: Any, at: datetime) -> ClientAnswer:
    """Register a client; answers its metadata, with the secret that is shown this once.

    Unsupported values are replaced, and the answer states what the client was registered with (RFC 7591,
    3.2.1). A `scope` that it names binds it to nothing, for clients register with what they need first and
    ask for more when a tool wants more: it may ask for all, and each time its user decides. Raises
    OAuthError with the codes of RFC 7591 section 3.2.2.
    """
    wanted = _readable(said)
    if not all(is_registrable(uri) for uri in wanted.redirect_uris):
        raise OAuthError(
            "invalid_redirect_uri",
            "A redirect_uri is not allowed. Use https, http on localhost, or a private-use"
            " scheme of your app.",
        )
    if sum(map(len, wanted.redirect_uris)) > MOST_URI_CHARACTERS:
        raise OAuthError(
            "invalid_redirect_uri",
            "The redirect_uris are too long in total. Register fewer or shorter ones.",
        )
    _require_one("grant_types", wanted.grant_types, GRANTS)
    _require_one("response_types", wanted.response_types, RESPONSES)
    method = wanted.token_endpoint_auth_method
    if method not in METHODS:
        method = USUAL_METHOD
    secret = secrets.token_urlsafe(SECRET_BYTES) if method != "none" else None
    client = ClientRow(
        id=f"client_{secrets.token_urlsafe(16)}",
        name=wanted.client_name,
        redirect_uris=wanted.redirect_uris,
        auth_method=method,
        secret_hash=fingerprint(secret) if secret else None,
    )
    await clients.add(database, client, at)
    return ClientAnswer(
        client_id=client.id,
        client_id_issued_at=int(at.timestamp()),
        client_name=client.name,
        redirect_uris=list(client.redirect_uris),
        token_endpoint_auth_method=client.auth_method,
        grant_types=sorted(GRANTS),
        response_types=sorted(RESPONSES),
        scope=written(tuple(SCOPES)),
        client_secret=secret,
        client_secret_expires_at=0 if secret else None,
    )


class Clients:
    """Finds clients, and lets them prove who they are."""

    def __init__(self, database: Database, documents: Documents) -> None:
        self._database = database
        self._documents = documents

    async def find(self, client_id: str) -> ClientRow:
        """Find a client. Raises InvalidClient when there is none of that id (any more)."""
        if is_document(client_id):
            return await self._documents.client(client_id)
        found = await clients.find(self._database, client_id)
        if found is None:
            raise InvalidClient
        return found

    async def prove(self, authorization: str | None, sent: dict[str, str]) -> ClientRow:
        """Find the client of a request to the token endpoint, proved in the way it registered.

        Raises InvalidClient, so that a client that was let go of registers again.
        """
        given = credentials(authorization)
        client_id, secret, method = sent.get("client_id"), sent.get("client_secret"), "none"
        if secret is not None:
            method = "client_secret_post"
        if given is not None:
            if secret is not None or client_id not in {None, given[0]}:
                raise InvalidClient(
                    "The request uses more than one client authentication method. Use only the"
                    " registered one."
                )
            client_id, secret = given
            method = "client_secret_basic"
        if client_id is None:
            raise InvalidClient("The request lacks client_id. Send it.")
        client = await self.find(client_id)
        if client.auth_method != method:
            raise InvalidClient(
                "The client used a different authentication method than it registered. Use the"
                " registered one."
            )
        if client.secret_hash is not None and not hmac.compare_digest(
            fingerprint(secret or ""), client.secret_hash
        ):
            raise InvalidClient(
                "The client secret is incorrect. Check it, or register the client again."
            )
        return client


def _require_one(field: str, named: list[str], supported: frozenset[str]) -> None:
    """Refuse a client that names values of which none is supported."""
    if named and supported.isdisjoint(named):
        raise OAuthError(
            "invalid_client_metadata",
            f"None of the {field} is supported. Include {' or '.join(sorted(supported))}.",
        )


def _readable(said: Any) -> Registration:
    try:
        return Registration.model_validate(said)
    except ValidationError as error:
        wrong = error.errors(include_input=False, include_url=False)[0]
        field = str(wrong["loc"][0]) if wrong["loc"] else "body"
        code = "invalid_redirect_uri" if field == "redirect_uris" else "invalid_client_metadata"
        raise OAuthError(
            code, f"The field {field} is invalid. Correct it and register again."
        ) from error
