from collections.abc import Awaitable, Callable

import pytest

from tests.http.oauth.client import Client
from tests.http.people import Browser, Clock, Person, SignUp
from tests.mcp.fixtures import fixtures
from tolsey.http.app import create_app
from tolsey.http.mcp.doors import PREFIX, Door
from tolsey.http.mcp.endpoint import Endpoint, OwnAddresses
from tolsey.http.mcp.gate import StoreGate, grantable, name_of, require
from tolsey.http.mcp.opening import VaultSealer
from tolsey.http.mcp.server import McpServer
from tolsey.http.mcp.state import RequestStates
from tolsey.http.oauth import pages as consent
from tolsey.http.oauth import routes as oauth
from tolsey.http.people import auth, organizations
from tolsey.http.people import pages as accounts
from tolsey.http.stores import routes as stores
from tolsey.http.web.context import Service
from tolsey.http.web.edge import Edge
from tolsey.settings import Settings

Connect = Callable[..., Awaitable[tuple[Client, Person]]]


@pytest.fixture
def edge(service: Service, settings: Settings, clock: Clock) -> Edge:
    """Serve accounts, the authorization server, and the fixtures behind the stores' gate."""
    resources = service.agents.resources
    server = McpServer(
        fixtures(),
        {"name": "tolsey", "version": "1"},
        "",
        require=require,
        grantable=grantable,
        states=RequestStates(VaultSealer(service.vault), lambda: clock().timestamp()),
        name_of=name_of,
    )
    gate = StoreGate(service.agents.access_tokens, service.limits)
    endpoint = Endpoint(server, gate, OwnAddresses(resources.origins, local=settings.is_local))
    issuer = settings.base_url
    own = Door(resources, endpoint, issuer, on_subaddress=True)
    return create_app(
        service,
        [
            *(auth.routes, accounts.routes, organizations.routes, stores.routes),
            *(oauth.routes, consent.routes),
        ],
        {},
        mounted={PREFIX: Door(resources, endpoint, issuer, on_subaddress=False)},
        hosts=lambda _: {resources.host: own} if resources.host else {},
    )


@pytest.fixture
async def connect(browser: Browser, sign_up: SignUp) -> Connect:
    """Make a person with a store, and a client that is registered for it."""

    async def connected(
        email: str = "ann@example.com", **registration: str
    ) -> tuple[Client, Person]:
        person = await sign_up(email)
        store_id = (await person.store()).json()["id"]
        web = browser()
        del web.headers["Origin"]  # an agent is no page
        client = Client(web, store_id)
        assert (await client.register(**registration)).status_code == 201
        return client, person

    return connected
