"""The decisions of the authorization server, without HTTP: what is asked, allowed and given out.

RFC 6749 and OAuth 2.1 with PKCE S256 only (RFC 7636), resource indicators in both requests (RFC 8707),
`iss` in every answer (RFC 9207), rotation with reuse detection (RFC 9700, 4.14).
"""

import base64
import hashlib
import hmac
import secrets
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final
from urllib.parse import urlencode, urlsplit

import structlog

from tolsey.http.answers.people.oauth import IntrospectionAnswer, TokensAnswer
from tolsey.http.oauth import scopes as scopes_catalogue
from tolsey.http.oauth.clients import Clients
from tolsey.http.oauth.documents import is_document
from tolsey.http.oauth.parameters import S256, VERIFIER, OAuthError, needed
from tolsey.http.oauth.redirects import is_registrable, matches
from tolsey.http.oauth.resources import StoreResource, StoreResources
from tolsey.runtime.ids import new_id
from tolsey.storage import audit
from tolsey.storage.commerce import stores
from tolsey.storage.database import Database, Transaction
from tolsey.storage.oauth import clients as client_rows
from tolsey.storage.oauth import grants, requests
from tolsey.storage.oauth.clients import ClientRow
from tolsey.storage.oauth.grants import ACCESS_LIFE, REFRESH_GRACE, SALT_BYTES, CodeRow, TokenRow
from tolsey.storage.oauth.requests import RequestRow

log = structlog.get_logger()

REQUEST_LIFE: Final = timedelta(minutes=10)
REQUEST_BYTES: Final = 32
STATE_CHARACTERS: Final = 2_000
NO_STORE: Final = OAuthError(
    "invalid_target",
    "The user has no access to this store. Use the URL of one of the user's stores.",
)
DENIED: Final = OAuthError("access_denied", "The user declined the authorization request.")


class Misdirected(Exception):  # noqa: N818 - what the request is
    """The client or its address is not known, so the browser is sent nowhere: a person is told."""


@dataclass(frozen=True, slots=True)
class Asked:
    """A request that is kept; `refusal` is where its client hears that it cannot be allowed."""

    id: str
    refusal: str | None


@dataclass(frozen=True, slots=True)
class Tokens:
    """What a client gets: both tokens, shown this once."""

    access: str
    refresh: str
    scopes: Sequence[str]
    life: timedelta

    @property
    def body(self) -> TokensAnswer:
        """Write it as an answer (RFC 6749, 5.1)."""
        return TokensAnswer(
            access_token=self.access,
            token_type="Bearer",  # noqa: S106 - a type, not a token
            expires_in=int(self.life.total_seconds()),
            refresh_token=self.refresh,
            scope=scopes_catalogue.written(self.scopes),
        )


class AuthorizationServer:
    """Decides; `forget` tells whoever remembers a grant that it has ended."""

    def __init__(
        self,
        database: Database,
        known: Clients,
        resources: StoreResources,
        issuer: str,
        forget: Callable[[], Awaitable[None]],
    ) -> None:
        self._database = database
        self._clients = known
        self._resources = resources
        self._issuer = issuer
        self._forget = forget

    async def ask(self, sent: Mapping[str, str], at: datetime) -> Asked:
        """Check an authorization request and keep it under an id, by which its user decides.

        Raises Misdirected when it is not proved where answers go. What is wrong after that is for the
        client to hear, but of a user who is known: nobody else is sent there (RFC 9700, 4.11.2).
        """
        client, redirect_uri = await self._directed(sent)
        try:
            resource = await self._resource(sent, client)
            wanted = self._checked(sent, client, redirect_uri, resource)
        except OAuthError as error:
            state = sent.get("state")
            refusal = self._refusal(redirect_uri, state, error)
            wanted = RequestRow(
                client_id=client.id,
                client_name=client.name,
                redirect_uri=redirect_uri,
                state=state,
                code_challenge="",
                resource="",
                store_id="",
                scopes=(),
                refusal=refusal,
            )
        request_id = secrets.token_urlsafe(REQUEST_BYTES)
        await requests.keep(self._database, request_id, wanted, at + REQUEST_LIFE)
        return Asked(request_id, wanted.refusal)

    async def decide(
        self, request_id: str, user_id: str, *, chosen: Sequence[str], at: datetime
    ) -> str | None:
        """Give a client a code for what its user chose and may allow; answers the address to go to.

        It may be less than was asked for or more; the token's answer says what (RFC 6749, 3.3).
        None when the request is used up. Nobody loses the store or their role in it meanwhile.
        """
        async with self._database.transaction() as tx:
            wanted = await requests.use(tx, request_id, at)
            if wanted is None or wanted.refusal is not None:
                return wanted.refusal if wanted else None
            found = await stores.hold_for(tx, wanted.store_id, user_id)
            if found is None:
                return self._refusal(wanted.redirect_uri, wanted.state, NO_STORE)
            store, role = found
            # The consent form has a box for each scope: another value was not sent by it.
            is_ours = scopes_catalogue.SCOPES.keys() >= set(chosen)
            known = scopes_catalogue.in_order(chosen) if is_ours else ()
            scopes = scopes_catalogue.opened(scopes_catalogue.allowed(known, role))
            if not scopes:
                return self._refusal(wanted.redirect_uri, wanted.state, DENIED)
            grant_id = new_id("grant")
            code = await grants.begin(
                tx,
                grant_id,
                wanted,
                user_id=user_id,
                organization_id=store.organization_id,
                scopes=scopes,
                at=at,
            )
            await audit.write(
                tx,
                "agent.allowed",
                grant_id,
                organization_id=store.organization_id,
                actor=user_id,
                client=wanted.client_id,
                store=wanted.store_id,
                scopes=list(scopes),
            )
        return self._answer(wanted.redirect_uri, wanted.state, code=code)

    async def redeem(self, client: ClientRow, sent: Mapping[str, str], at: datetime) -> Tokens:
        """Give the first tokens for a code, once; a second time ends what the first one got."""
        code, verifier = needed(sent, "code"), needed(sent, "code_verifier")
        row = await grants.find_code(self._database, code)
        if row is None or row.client_id != client.id:
            raise OAuthError(
                "invalid_grant",
                "The authorization code is invalid or belongs to another client. Start the"
                " authorization again.",
            )
        if row.used_at is not None:
            raise await self._reused(row.grant_id, "code", at)
        if row.expires_at <= at or row.ended_at is not None:
            raise OAuthError(
                "invalid_grant",
                "The authorization code has expired. Start the authorization again.",
            )
        if needed(sent, "redirect_uri") != row.redirect_uri:
            raise OAuthError(
                "invalid_grant",
                "The redirect_uri doesn't match the authorization request. Send the same one.",
            )
        self._same_resource(sent, row.resource)
        if not VERIFIER.fullmatch(verifier) or not _proves(verifier, row.code_challenge):
            raise OAuthError(
                "invalid_grant",
                "The code_verifier doesn't match the authorization request. Start the"
                " authorization again.",
            )
        async with self._database.transaction() as tx:
            if await grants.use_code(tx, code, at):
                return await self._issue(tx, client, row, row.scopes, at)
        raise await self._reused(row.grant_id, "code", at)

    async def rotate(self, client: ClientRow, sent: Mapping[str, str], at: datetime) -> Tokens:
        """Give new tokens for a refresh token, once; a second time ends the grant.

        But for two windows of one client that refresh at the same moment: for ten seconds the same
        token is answered with the same tokens (rules/agents#authorization).
        """
        token = needed(sent, "refresh_token")
        row = await grants.find_token(self._database, token)
        if row is None or row.kind != "refresh" or row.client_id != client.id:
            raise OAuthError(
                "invalid_grant",
                "The refresh token is invalid or belongs to another client. Start the"
                " authorization again.",
            )
        if row.used_at is not None and at - row.used_at > REFRESH_GRACE:
            raise await self._reused(row.grant_id, "refresh token", at)
        if row.expires_at <= at or row.ended_at is not None:
            raise OAuthError(
                "invalid_grant", "The refresh token has expired. Start the authorization again."
            )
        self._same_resource(sent, row.resource)
        wanted = self._narrowed(sent, row.scopes)
        if row.used_at is None:
            salt = secrets.token_bytes(SALT_BYTES)
            async with self._database.transaction() as tx:
                if await grants.use_token(tx, token, salt, at):
                    access, refresh = _successors(token, salt)
                    return await self._issue(
                        tx, client, row, wanted, at, access=access, refresh=refresh
                    )
        return await self._same_successors(token, at)

    async def revoke(self, client: ClientRow, token: str, at: datetime) -> None:
        """End the grant of one of the client's tokens; of any other, nothing (RFC 7009, 2.2)."""
        row = await grants.find_token(self._database, token)
        if row is not None and row.client_id == client.id:
            await self.end(row.grant_id, "client", actor=client.id, at=at)

    async def introspect(self, client: ClientRow, token: str, at: datetime) -> IntrospectionAnswer:
        """Tell a confidential client of its own tokens; of any other, that it is nothing."""
        row = await grants.find_token(self._database, token)
        if (
            row is None
            or row.client_id != client.id
            or row.ended_at is not None
            or row.used_at is not None
            or row.expires_at <= at
        ):
            return IntrospectionAnswer(active=False)
        return IntrospectionAnswer(
            active=True,
            client_id=row.client_id,
            sub=row.user_id,
            aud=row.resource,
            iss=self._issuer,
            scope=scopes_catalogue.written(row.scopes),
            exp=int(row.expires_at.timestamp()),
            token_type="Bearer" if row.kind == "access" else "refresh_token",
        )

    async def end(self, grant_id: str, why: grants.Ended, *, actor: str, at: datetime) -> bool:
        """End a grant, here and in whatever remembers it; False when it had ended."""
        async with self._database.transaction() as tx:
            ended = await grants.end(tx, grant_id, why, actor=actor, at=at)
        if ended:
            await self._forget()
        return ended

    async def _directed(self, sent: Mapping[str, str]) -> tuple[ClientRow, str]:
        """Find where answers may go. Until then no error is sent anywhere (RFC 9700, 4.11)."""
        client_id, redirect_uri = sent.get("client_id"), sent.get("redirect_uri")
        if client_id is None or redirect_uri is None:
            raise Misdirected(
                "The request lacks client_id or redirect_uri. Start again in your app."
            )
        try:
            client = await self._clients.find(client_id)
        except OAuthError as error:
            raise Misdirected(f"This app isn't registered here. {error.description}") from error
        # Also of a client that registered before an address of this kind was refused.
        if not (is_registrable(redirect_uri) and matches(redirect_uri, client.redirect_uris)):
            raise Misdirected(
                "The redirect_uri isn't registered for this client. Register it, or use a"
                " registered one."
            )
        return client, redirect_uri

    async def _resource(self, sent: Mapping[str, str], client: ClientRow) -> StoreResource:
        """Find which store is meant; a client that cannot say so means the one it was let into before.

        Revision 2025-03-26 knows no `resource`. A client that is known by its document is many people's
        at once, and has no store of its own.
        """
        named = sent.get("resource")
        if named is None and not is_document(client.id):
            named = await grants.only_resource(self._database, client.id)
        resource = self._resources.named(named or "")
        if resource is None:
            raise OAuthError(
                "invalid_target",
                "The resource isn't the URL of a store on this service. Use the store's MCP URL.",
            )
        return resource

    def _checked(
        self, sent: Mapping[str, str], client: ClientRow, redirect_uri: str, resource: StoreResource
    ) -> RequestRow:
        if sent.get("response_type") != "code":
            raise OAuthError(
                "unsupported_response_type",
                "This response type isn't supported. Use response_type=code.",
            )
        challenge = needed(sent, "code_challenge")
        if sent.get("code_challenge_method") != "S256" or not S256.fullmatch(challenge):
            raise OAuthError(
                "invalid_request",
                "The code_challenge is missing or not supported. Use the method S256.",
            )
        state = sent.get("state")
        if state is not None and len(state) > STATE_CHARACTERS:
            raise OAuthError(
                "invalid_request", "The state parameter is too long. Send a shorter one."
            )
        wanted = scopes_catalogue.in_order(sent.get("scope", "").split())
        return RequestRow(
            client_id=client.id,
            client_name=client.name,
            redirect_uri=redirect_uri,
            state=state,
            code_challenge=challenge,
            resource=resource.resource,
            store_id=resource.store_id,
            scopes=wanted or scopes_catalogue.DEFAULT,
        )

    def _same_resource(self, sent: Mapping[str, str], granted: str) -> None:
        """Refuse another resource than the grant's; a client that names none means that one."""
        if "resource" not in sent:
            return
        named = self._resources.named(sent["resource"])
        if named is None or named.resource != granted:
            raise OAuthError(
                "invalid_target",
                "The resource doesn't match the authorization. Send the one that the user"
                " approved.",
            )

    @staticmethod
    def _narrowed(sent: Mapping[str, str], held: Sequence[str]) -> Sequence[str]:
        wanted = scopes_catalogue.in_order(sent.get("scope", "").split())
        if set(wanted) - set(held):
            raise OAuthError(
                "invalid_scope",
                "A refresh can't add scopes. Start a new authorization to request more.",
            )
        return wanted or held

    async def _issue(
        self,
        tx: Transaction,
        client: ClientRow,
        held: CodeRow | TokenRow,
        wanted: Sequence[str],
        at: datetime,
        *,
        access: str | None = None,
        refresh: str | None = None,
    ) -> Tokens:
        """Keep both tokens; the refresh token keeps all that is held (RFC 6749, 6)."""
        access = await grants.issue(tx, held.grant_id, "access", wanted, at, token=access)
        refresh = await grants.issue(tx, held.grant_id, "refresh", held.scopes, at, token=refresh)
        await client_rows.use(tx, client.id, at)
        return Tokens(access, refresh, wanted, ACCESS_LIFE)

    async def _same_successors(self, token: str, at: datetime) -> Tokens:
        """Give what a refresh token gave a moment ago, to another request of the same client."""
        row = await grants.find_token(self._database, token)
        if row is not None and row.successor_salt is not None:
            access, refresh = _successors(token, row.successor_salt)
            given = await grants.find_token(self._database, access)
            if given is not None:
                return Tokens(access, refresh, given.scopes, given.expires_at - at)
        raise OAuthError(
            "invalid_grant", "The refresh token has expired. Start the authorization again."
        )

    async def _reused(self, grant_id: str, what: str, at: datetime) -> OAuthError:
        """End the grant of what came a second time: one of the two who had it is not the client."""
        if await self.end(grant_id, "reuse", actor="platform", at=at):
            log.warning("oauth.reuse_detected", grant_id=grant_id)
        return OAuthError(
            "invalid_grant", f"The {what} was already used. Start the authorization again."
        )

    def _answer(self, redirect_uri: str, state: str | None, **said: str) -> str:
        """Write the address at which the client hears the answer; `iss` says whose it is."""
        fields = {**said, **({"state": state} if state is not None else {}), "iss": self._issuer}
        joint = "&" if urlsplit(redirect_uri).query else "?"
        return f"{redirect_uri}{joint}{urlencode(fields)}"

    def _refusal(self, redirect_uri: str, state: str | None, error: OAuthError) -> str:
        return self._answer(
            redirect_uri, state, error=error.code, error_description=error.description
        )


def _successors(token: str, salt: bytes) -> tuple[str, str]:
    return grants.successor(token, salt, "access"), grants.successor(token, salt, "refresh")


def _proves(verifier: str, challenge: str) -> bool:
    digest = hashlib.sha256(verifier.encode()).digest()
    made = base64.urlsafe_b64encode(digest).rstrip(b"=").decode()
    return hmac.compare_digest(made, challenge)
