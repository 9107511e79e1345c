"""The documents by which clients find their way: RFC 8414 of the server, RFC 9728 of each resource."""

from typing import Final

from tolsey.http.answers.people.oauth import ResourceMetadataAnswer, ServerMetadataAnswer
from tolsey.http.oauth.resources import StoreResource
from tolsey.http.oauth.scopes import DEFAULT, SCOPES

AUTH_METHODS: Final = ("none", "client_secret_basic", "client_secret_post")


def of_server(issuer: str) -> ServerMetadataAnswer:
    """Describe the authorization server."""
    return ServerMetadataAnswer(
        issuer=issuer,
        authorization_endpoint=f"{issuer}/oauth/authorize",
        token_endpoint=f"{issuer}/oauth/token",
        registration_endpoint=f"{issuer}/oauth/register",
        revocation_endpoint=f"{issuer}/oauth/revoke",
        introspection_endpoint=f"{issuer}/oauth/introspect",
        scopes_supported=list(SCOPES),
        response_types_supported=["code"],
        response_modes_supported=["query"],
        grant_types_supported=["authorization_code", "refresh_token"],
        token_endpoint_auth_methods_supported=list(AUTH_METHODS),
        revocation_endpoint_auth_methods_supported=list(AUTH_METHODS),
        introspection_endpoint_auth_methods_supported=list(AUTH_METHODS[1:]),
        code_challenge_methods_supported=["S256"],
        authorization_response_iss_parameter_supported=True,
        client_id_metadata_document_supported=True,
    )


def of_resource(resource: StoreResource, issuer: str) -> ResourceMetadataAnswer:
    """Describe one form of a store's address; it says the same of a store that is not there."""
    return ResourceMetadataAnswer(
        resource=resource.address,
        authorization_servers=[issuer],
        scopes_supported=list(DEFAULT),
        bearer_methods_supported=["header"],
    )
