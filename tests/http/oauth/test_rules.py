"""The rules of the authorization server that need no server: addresses, parameters, scopes, resources, names."""

import base64
from typing import Any

import pytest

from tests.http.oauth.test_attacks import DANGEROUS, PORTS, UNREGISTERED
from tests.http.oauth.test_names import NAMELESS
from tests.http.people import settings_of
from tolsey.http.oauth import parameters, redirects, scopes
from tolsey.http.oauth.names import called, is_shown
from tolsey.http.oauth.parameters import InvalidClient, OAuthError
from tolsey.http.oauth.resources import StoreResource, StoreResources

CALLBACK = "https://agent.example/callback"
LONGEST = 2_000


def test_an_address_is_one_that_was_registered_letter_for_letter() -> None:
    assert redirects.matches(CALLBACK, ["https://agent.example/other", CALLBACK])
    assert not redirects.matches(CALLBACK, [])
    for uri in UNREGISTERED:
        assert not redirects.matches(uri, [CALLBACK]), uri
    for registered, asked, status in PORTS:
        assert redirects.matches(asked, [registered]) is (status == 303), (registered, asked)
    assert redirects.matches("http://127.0.0.1/cb", ["http://127.0.0.1:7/cb"])
    assert not redirects.matches("http://127.0.0.1/cb", ["com.example.app:/cb"])


@pytest.mark.parametrize(
    "uri",
    [
        CALLBACK,
        "https://agent.example:444/?a=b",
        "http://localhost/cb",
        "http://127.0.0.1:8000/cb",
        "http://[::1]:1/cb",
        "cursor://anysphere.cursor/callback",
        "com.example.app:/cb",
        f"https://agent.example/{'a' * (LONGEST - 22)}",
    ],
)
def test_codes_may_be_sent_by_https_to_this_machine_or_to_an_own_scheme(uri: str) -> None:
    assert redirects.is_registrable(uri)


@pytest.mark.parametrize(
    "uri",
    [
        *(uri for uris in DANGEROUS if isinstance(uris, list) for uri in uris[-1:] if uri != 7),
        "http://user@localhost/cb",
        "https://agent.example\\.evil.example/cb",
        "http://localhost.evil.example/cb",
        "https://agent.example:port/cb",
        "https://agent.example:65536/cb",
        "https://[agent.example/cb",
        "HTTPS://agent.example/cb",
        "https://\u0430gent.example/cb",
        f"https://agent.example/{'a' * (LONGEST - 21)}",
    ],
)
def test_codes_are_sent_nowhere_else(uri: str) -> None:
    assert not redirects.is_registrable(uri)


@pytest.mark.parametrize(
    ("uri", "origin", "place", "is_local"),
    [
        (
            "https://agent.example:444/cb?a=b",
            "https://agent.example:444",
            "agent.example:444",
            False,
        ),
        ("http://localhost:1/cb", "http://localhost:1", "localhost:1", True),
        ("com.example.app://x/cb", "com.example.app:", "com.example.app:", True),
    ],
)
def test_a_place_has_a_name_for_policies_and_one_for_people(
    uri: str, origin: str, place: str, *, is_local: bool
) -> None:
    assert (redirects.origin_of(uri), redirects.place_of(uri)) == (origin, place)
    assert redirects.is_local(uri) is is_local


def refused(error: OAuthError) -> tuple[str, str, int]:
    assert error.body.error == error.code
    assert error.body.error_description == str(error) == error.description
    return error.code, error.description, error.status


def test_parameters_are_read_once_each_and_empty_ones_are_unsent() -> None:
    assert parameters.parse(b"a=1&b=&c=%20x+y%C3%A9&d") == {"a": "1", "c": " x y\u00e9"}
    assert parameters.parse(b"") == {}
    most = "&".join(f"a{n}=1" for n in range(40))
    assert len(parameters.parse(most.encode())) == 40


@pytest.mark.parametrize(
    ("sent", "why"),
    [
        (b"a=1&a=1", "A parameter is repeated. Send each parameter once."),
        (b"a=&a=", "A parameter is repeated. Send each parameter once."),
        (b"a=%00", "A parameter contains a NUL character. Remove it."),
        (b"a=1&b=x%00y", "A parameter contains a NUL character. Remove it."),
        (b"a=\xc3\xa9", "The request parameters can't be decoded. Send them URL-encoded in UTF-8."),
        (b"a=%C3", "The request parameters can't be decoded. Send them URL-encoded in UTF-8."),
        (
            "&".join(f"a{n}=1" for n in range(41)).encode(),
            "The request parameters can't be decoded. Send them URL-encoded in UTF-8.",
        ),
    ],
)
def test_parameters_that_cannot_be_told_apart_are_refused(sent: bytes, why: str) -> None:
    with pytest.raises(OAuthError) as error:
        parameters.parse(sent)
    assert refused(error.value) == ("invalid_request", why, 400)


def test_a_parameter_that_is_needed_is_named_when_it_is_missing() -> None:
    assert parameters.needed({"code": "c"}, "code") == "c"
    with pytest.raises(OAuthError) as error:
        parameters.needed({"code": "c"}, "code_verifier")
    assert refused(error.value) == (
        "invalid_request",
        "The parameter code_verifier is missing. Send it.",
        400,
    )


def basic(text: bytes, scheme: str = "Basic") -> str:
    return f"{scheme} {base64.b64encode(text).decode()}"


def test_credentials_are_those_of_the_header() -> None:
    assert parameters.credentials(None) is None
    assert parameters.credentials(basic(b"id:secret")) == ("id", "secret")
    assert parameters.credentials(basic(b"a%3Ab:s+1:%25", "bAsIc ")) == ("a:b", "s 1:%")
    assert parameters.credentials(basic(b":")) == ("", "")


@pytest.mark.parametrize(
    ("sent", "why"),
    [
        (
            basic(b"id:secret", "Bearer"),
            "This client must authenticate with its client secret. Send it with the request.",
        ),
        ("", "This client must authenticate with its client secret. Send it with the request."),
        (
            "Basic",
            "The client credentials can't be decoded. Send them as HTTP Basic authentication.",
        ),
        (
            basic(b"id"),
            "The client credentials can't be decoded. Send them as HTTP Basic authentication.",
        ),
        (
            basic(b"i\x00d:secret"),
            "The client credentials can't be decoded. Send them as HTTP Basic authentication.",
        ),
        (
            basic(b"id:%00"),
            "The client credentials can't be decoded. Send them as HTTP Basic authentication.",
        ),
        (
            basic(b"\xc3\xa9:secret"),
            "The client credentials can't be decoded. Send them as HTTP Basic authentication.",
        ),
        (
            "Basic aWQ6!c2VjcmV0",
            "The client credentials can't be decoded. Send them as HTTP Basic authentication.",
        ),
        (
            "Basic aWQ6c",
            "The client credentials can't be decoded. Send them as HTTP Basic authentication.",
        ),
    ],
)
def test_a_client_that_does_not_prove_itself_is_refused(sent: str, why: str) -> None:
    with pytest.raises(InvalidClient) as error:
        parameters.credentials(sent)
    assert refused(error.value) == ("invalid_client", why, 401)


def test_a_client_that_nobody_knows_is_refused_in_a_sentence() -> None:
    assert refused(InvalidClient()) == (
        "invalid_client",
        "The client is unknown. Register it again.",
        401,
    )


def test_scopes_are_known_by_the_catalogue_and_kept_in_its_order() -> None:
    assert scopes.in_order(["catalog:read", "offline_access", "store:read", "catalog:read"]) == (
        "store:read",
        "catalog:read",
    )
    assert scopes.in_order(["openid", "profile"]) == ()
    assert scopes.in_order({"orders:write", "orders:read"}) == ("orders:read", "orders:write")
    assert scopes.written(("orders:read", "orders:write")) == "orders:read orders:write"


def test_who_may_write_may_read() -> None:
    assert scopes.implied(["catalog:write", "store:read"]) == {
        "catalog:write",
        "catalog:read",
        "store:read",
    }
    assert scopes.opened(["inventory:write", "store:read"]) == (
        "store:read",
        "inventory:read",
        "inventory:write",
    )
    # There is no reading of refunds by itself: the catalogue knows no such scope.
    assert scopes.opened(["refunds:write"]) == ("refunds:write",)


@pytest.mark.parametrize(
    ("role", "may"),
    [
        ("member", ("store:read",)),
        ("admin", ("store:read", "orders:write", "audit:read", "compliance:read")),
        ("owner", ("store:read", "orders:write", "audit:read", "compliance:read")),
    ],
)
def test_a_role_allows_no_more_than_it_may_do_itself(role: str, may: tuple[str, ...]) -> None:
    asked = ("store:read", "orders:write", "audit:read", "compliance:read")
    assert scopes.allowed(asked, role) == may


def resource(base: str, path: str, called_at: str | None = None) -> StoreResource:
    address = f"{called_at or base}{path}"
    origin, metadata = called_at or base, "/.well-known/oauth-protected-resource"
    return StoreResource(
        path.rpartition("/")[2], f"{base}{path}", address, f"{origin}{metadata}{path}"
    )


LIVE = {"base_url": "https://shop.example", "next_public_live_subdomains": frozenset({"mcp"})}


def resources_of(**given: Any) -> StoreResources:
    return StoreResources(settings_of(**given))


def test_a_store_has_an_address_in_two_forms() -> None:
    known = resources_of(base_url="https://shop.example")
    assert (known.origins, known.subaddress, known.host) == (("https://shop.example",), None, None)
    for path in ("/api/mcp/v1/st_1", "/api/mcp/st_1"):
        is_it = resource("https://shop.example", path)
        metadata = f"/.well-known/oauth-protected-resource{path}"
        assert known.called(path, host="shop.example", on_subaddress=False) == is_it
        assert known.called(f"{path}/", on_subaddress=False) == is_it
        assert known.called(path, host="evil.example", on_subaddress=False) == is_it
        assert known.described(metadata, host="SHOP.example", on_subaddress=False) == is_it
        assert known.named(f"https://shop.example{path}") == is_it
        assert known.named(f"HTTPS://SHOP.example{path}/") == is_it
        assert known.described(path, on_subaddress=False) is None
    assert known.called("/st_1", on_subaddress=False) is None
    assert (
        known.described("/.well-known/oauth-protected-resource/st_1", on_subaddress=False) is None
    )


@pytest.mark.parametrize(
    "address",
    [
        "",
        "https://shop.example/api/mcp/st_1?",
        "https://shop.example/api/mcp/st_1?a=b",
        "https://shop.example/api/mcp/st_1#",
        "https://shop.example/api/mcp/st_1#a",
        "http://shop.example/api/mcp/st_1",
        "https://shop.example:444/api/mcp/st_1",
        "https://user@shop.example/api/mcp/st_1",
        "https://mcp.shop.example/st_1",
        "https://evil.example/api/mcp/st_1",
        "https://[evil/api/mcp/st_1",
        "https://shop.example/api/mcp/",
        f"https://shop.example/api/mcp/{'a' * 65}",
        "/api/mcp/st_1",
    ],
)
def test_no_other_address_names_a_store(address: str) -> None:
    assert resources_of(base_url="https://shop.example").named(address) is None


def test_a_live_sub_address_is_another_form_of_it() -> None:
    known, base = resources_of(**LIVE), "https://mcp.shop.example"
    assert known.origins == ("https://shop.example", base)
    assert (known.subaddress, known.host) == (base, b"mcp.shop.example")
    on_it = resource(base, "/st_1")
    assert known.called("/st_1", host="shop.example", on_subaddress=True) == on_it
    assert (
        known.described("/.well-known/oauth-protected-resource/st_1", host="x", on_subaddress=True)
        == on_it
    )
    assert known.named("https://MCP.shop.example/st_1/") == on_it
    assert known.named("https://mcp.shop.example/api/mcp/st_1") is None
    assert known.named("https://shop.example/st_1") is None
    assert known.named("https://shop.example/api/mcp/st_1") == resource(
        "https://shop.example", "/api/mcp/st_1"
    )


@pytest.mark.parametrize(
    ("base", "names", "others"),
    [
        (
            "http://127.0.0.1:8000",
            ("127.0.0.1:8000", "localhost:8000", "[::1]:8000", "LOCALHOST:8000"),
            ("localhost", "localhost:8001", "evil.example:8000"),
        ),
        ("http://[::1]", ("[::1]", "localhost", "127.0.0.1"), ("localhost:80", "evil.example")),
        ("http://127.0.0.2:8000", ("127.0.0.2:8000", "localhost:8000"), ("127.0.0.2",)),
        ("http://[::1]:8000", ("[::1]:8000", "localhost:8000"), ("[::1]", "localhost")),
    ],
)
def test_this_machine_is_called_by_any_of_its_names(
    base: str, names: tuple[str, ...], others: tuple[str, ...]
) -> None:
    known, path = resources_of(base_url=base), "/api/mcp/v1/st_1"
    for name in names:
        called_at = f"http://{name.lower()}"
        is_it = resource(base, path, called_at)
        assert known.called(path, host=name, on_subaddress=False) == is_it
        metadata = f"/.well-known/oauth-protected-resource{path}"
        assert known.described(metadata, host=name, on_subaddress=False) == is_it
        assert known.named(f"http://{name}{path}") == resource(base, path)
    for name in others:
        assert known.called(path, host=name, on_subaddress=False) == resource(base, path)
        assert known.named(f"http://{name}{path}") is None


@pytest.mark.parametrize("name", NAMELESS)
def test_what_shows_nothing_or_hides_something_is_no_name(name: str) -> None:
    assert not is_shown(name)
    assert called(name, CALLBACK) == "agent.example"


@pytest.mark.parametrize("name", ["Robo", "\u05e8\u05d5", "\u2764\ufe0f", "7", "!", "a\u0301"])
def test_what_shows_something_is_a_name(name: str) -> None:
    assert is_shown(name)
    assert called(name, CALLBACK) == name
