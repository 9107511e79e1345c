"""An agent as OAuth sees it: it registers, sends its user to consent, and brings codes and tokens."""

import base64
import hashlib
import re
import secrets
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qs, urlencode, urlsplit

import httpx

from tests.http.people import Person

BASE = "http://127.0.0.1:8000"
CALLBACK = "https://agent.example/callback"
NARROW = "store:read orders:read"
CSRF = re.compile(r'name="csrf" value="([0-9a-f]+)"')
BOX = re.compile(r'<input type="checkbox" name="scope" value="([a-z:]+)"( checked)?>')


def boxes(page: str) -> dict[str, bool]:
    """Read which scopes a consent page offers, and which of them are ticked."""
    return {name: bool(ticked) for name, ticked in BOX.findall(page)}


def challenge_of(verifier: str) -> str:
    """Make the S256 challenge of a verifier."""
    digest = hashlib.sha256(verifier.encode()).digest()
    return base64.urlsafe_b64encode(digest).rstrip(b"=").decode()


def said(address: str) -> dict[str, str]:
    """Read what an address tells the client."""
    return {name: values[0] for name, values in parse_qs(urlsplit(address).query).items()}


@dataclass
class Client:
    """One client of the authorization server."""

    web: httpx.AsyncClient
    store_id: str
    redirect_uri: str = CALLBACK
    client_id: str = ""
    secret: str | None = None
    verifier: str = field(default_factory=lambda: secrets.token_urlsafe(48))

    @property
    def resource(self) -> str:
        return f"{BASE}/api/mcp/v1/{self.store_id}"

    async def register(self, **changed: Any) -> httpx.Response:
        """Register, and remember who we are."""
        body = {
            "client_name": "Robo",
            "redirect_uris": [self.redirect_uri],
            "token_endpoint_auth_method": "none",
            **changed,
        }
        answer = await self.web.post("/oauth/register", json=body)
        if answer.status_code == 201:
            self.client_id = answer.json()["client_id"]
            self.secret = answer.json().get("client_secret")
        return answer

    def asked(self, **changed: str | None) -> str:
        """Write the address that its user is sent to."""
        wanted: dict[str, str | None] = {
            "response_type": "code",
            "client_id": self.client_id,
            "redirect_uri": self.redirect_uri,
            "state": "s1",
            "scope": NARROW,
            "code_challenge": challenge_of(self.verifier),
            "code_challenge_method": "S256",
            "resource": self.resource,
            **changed,
        }
        sent = {name: value for name, value in wanted.items() if value is not None}
        return f"/oauth/authorize?{urlencode(sent)}"

    async def consent_page(self, person: Person, **changed: str | None) -> httpx.Response:
        """Send a user to the consent page; or answer what they meet instead."""
        answer = await person.browser.get(self.asked(**changed))
        if answer.status_code != 303 or not answer.headers["location"].startswith("/oauth/consent"):
            return answer
        return await person.browser.get(answer.headers["location"])

    async def decided(self, person: Person, **changed: str | None) -> dict[str, str]:
        """Let a careful user decide (`decision`: allow): they leave ticked what was asked for by name.

        Answers what the client is told.
        """
        decision = changed.pop("decision", "allow")
        named = changed.get("scope", NARROW)
        page = await self.consent_page(person, **changed)
        if page.status_code == 303:
            return said(page.headers["location"])
        ticked = [name for name, is_ticked in boxes(page.text).items() if is_ticked]
        chosen = [name for name in ticked if named is None or name in named.split()]
        return await self.answered(person, page, decision, chosen)

    async def answered(
        self,
        person: Person,
        page: httpx.Response,
        decision: str | None = "deny",
        chosen: Sequence[str] = (),
    ) -> dict[str, str]:
        """Let a user answer the question of a page; answers what the client is told."""
        assert page.status_code in {200, 403}, page.text
        found = CSRF.search(page.text)
        assert found, page.text
        form = {"csrf": found[1], "decision": decision, "scope": list(chosen)}
        answer = await person.browser.post(page.request.url.path, data=form)
        assert answer.status_code == 303, answer.text
        return said(answer.headers["location"])

    async def redeem(self, code: str, **changed: str | None) -> httpx.Response:
        """Bring a code."""
        usual = {"redirect_uri": self.redirect_uri, "code_verifier": self.verifier}
        return await self.token(grant_type="authorization_code", code=code, **{**usual, **changed})

    async def refresh(self, token: str, **changed: str | None) -> httpx.Response:
        """Bring a refresh token."""
        return await self.token(grant_type="refresh_token", refresh_token=token, **changed)

    async def token(self, **sent: str | None) -> httpx.Response:
        """Call the token endpoint."""
        form = {"client_id": self.client_id, "resource": self.resource, **sent}
        return await self.web.post(
            "/oauth/token", data={name: value for name, value in form.items() if value is not None}
        )

    async def tokens(self, person: Person, **changed: str | None) -> dict[str, Any]:
        """Go all the way; answers the tokens."""
        code = (await self.decided(person, **changed))["code"]
        answer = await self.redeem(code)
        assert answer.status_code == 200, answer.text
        given: dict[str, Any] = answer.json()
        return given

    async def call(self, token: str, path: str | None = None) -> httpx.Response:
        """Call the store's endpoint with a token."""
        message = {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}
        headers = {"Authorization": f"Bearer {token}", "MCP-Protocol-Version": "2025-11-25"}
        where = path or urlsplit(self.resource).path
        return await self.web.post(where, json=message, headers=headers)
