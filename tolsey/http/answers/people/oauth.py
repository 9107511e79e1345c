"""What the authorization server answers programs with: fields as the RFCs write them."""

from typing import Literal

from pydantic import ConfigDict

from tolsey.http.answers.base import ApiAnswer, Omittable


class OAuthAnswer(ApiAnswer):
    """An answer whose fields are named as in OAuth's own documents."""

    model_config = ConfigDict(alias_generator=None)


class ServerMetadataAnswer(OAuthAnswer):
    """The authorization server's metadata (RFC 8414, 2; RFC 9207, 3)."""

    issuer: str
    authorization_endpoint: str
    token_endpoint: str
    registration_endpoint: str
    revocation_endpoint: str
    introspection_endpoint: str
    scopes_supported: list[str]
    response_types_supported: list[str]
    response_modes_supported: list[str]
    grant_types_supported: list[str]
    token_endpoint_auth_methods_supported: list[str]
    revocation_endpoint_auth_methods_supported: list[str]
    introspection_endpoint_auth_methods_supported: list[str]
    code_challenge_methods_supported: list[str]
    authorization_response_iss_parameter_supported: bool
    client_id_metadata_document_supported: bool


class ResourceMetadataAnswer(OAuthAnswer):
    """A protected resource's metadata (RFC 9728, 2)."""

    resource: str
    authorization_servers: list[str]
    scopes_supported: list[str]
    bearer_methods_supported: list[str]


class ClientAnswer(OAuthAnswer):
    """A client's metadata (RFC 7591, 3.2.1); its secret is shown this once."""

    client_id: str
    client_id_issued_at: int
    client_name: str
    redirect_uris: list[str]
    token_endpoint_auth_method: str
    grant_types: list[str]
    response_types: list[str]
    scope: str
    client_secret: Omittable[str] = None
    client_secret_expires_at: Omittable[int] = None


class TokensAnswer(OAuthAnswer):
    """An access token and what renews it (RFC 6749, 5.1)."""

    access_token: str
    token_type: Literal["Bearer"]
    expires_in: int
    refresh_token: str
    scope: str


class RevokedAnswer(OAuthAnswer):
    """That a token is worth nothing, whether it was one or not (RFC 7009, 2.2)."""


class IntrospectionAnswer(OAuthAnswer):
    """What a token is (RFC 7662, 2.2); of one that is nothing, only that."""

    active: bool
    client_id: Omittable[str] = None
    sub: Omittable[str] = None
    aud: Omittable[str] = None
    iss: Omittable[str] = None
    scope: Omittable[str] = None
    exp: Omittable[int] = None
    token_type: Omittable[Literal["Bearer", "refresh_token"]] = None


class OAuthErrorAnswer(OAuthAnswer):
    """What a client did wrong (RFC 6749, 5.2)."""

    error: str
    error_description: Omittable[str] = None
