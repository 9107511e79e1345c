"""Who uses the services over HTTP, and what they were told: deliveries, credits and accounts."""

import asyncio
import random
import time
from collections import Counter
from collections.abc import Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, field

import httpx

from tests.campaigns.cluster.linear import Call
from tests.campaigns.nemesis.services import BASE, Service
from tests.http.people import PASSWORD
from tests.journeys.conftest import EVENTS, SECRET, order_body, signed

OPERATOR = "operator@example.com"
BUYERS = 16
"""So many organizations there are, each with credits and with a store that a shop delivers to."""
CLIENTS = 10
THINK_SECONDS = 0.02
ATTEMPTS = 12
REMEMBERED = 200
"""Of so many former deliveries one may come again."""


@dataclass(frozen=True, slots=True)
class Account:
    """An organization, and the shop of its store."""

    organization_id: str
    shop: str


@dataclass
class Model:
    """What clients asked for and what was acknowledged."""

    calls: list[Call] = field(default_factory=list)
    """Of the credits of every organization: grants of one micro-dollar, and reads."""
    sent: set[str] = field(default_factory=set)
    """The deliveries that were ever sent."""
    delivered: set[str] = field(default_factory=set)
    """Those that were answered with 200."""
    made: set[str] = field(default_factory=set)
    """The names of organizations whose creation was answered."""
    asked_for: set[str] = field(default_factory=set)
    told: Counter[str] = field(default_factory=Counter)
    """How often each kind of request got each answer."""

    @property
    def acknowledged(self) -> int:
        return sum(n for told, n in self.told.items() if told.split()[1].startswith("20"))


class Clients:
    """Everyone who uses the services during a run."""

    count = CLIENTS
    """So many work at once."""

    def __init__(self, seed: int, services: Sequence[Service]) -> None:
        self.model = Model()
        self.ending = False
        self.accounts: list[Account] = []
        self.seed = seed
        self._services = services
        self._count = 0
        self._past: list[tuple[str, int]] = []
        self.doors: list[httpx.AsyncClient] = []

    async def enter(self, stack: AsyncExitStack) -> None:
        """Sign in, and make the organizations, their stores and their connections."""
        for service in self._services:
            door = httpx.AsyncClient(
                base_url=f"http://127.0.0.1:{service.door}",
                headers={"Origin": BASE},
                timeout=10,
                limits=httpx.Limits(max_connections=self.count),
            )
            self.doors.append(await stack.enter_async_context(door))
        first = self.doors[0]
        await done(first, "POST", "/api/auth/login", email=OPERATOR, password=PASSWORD)
        for n in range(BUYERS):
            self.accounts.append(await self._open_account(first, n))
        for door in self.doors[1:]:
            door.cookies = first.cookies

    async def _open_account(self, door: httpx.AsyncClient, n: int) -> Account:
        shop = f"shop-{n}.myshopify.com"
        made = await done(door, "POST", "/api/organizations", name=f"Company {n}")
        whose = made["id"]
        # No allowance and no bonus of a day: nothing but the campaign changes these credits.
        terms = {"plan": "custom", "monthlyAllowance": 0, "dailyBonus": 0, "reason": "a campaign"}
        await done(door, "PUT", f"/api/admin/organizations/{whose}/contract", **terms)
        store = await done(door, "POST", "/api/stores", organizationId=whose, name="A store")
        await done(
            door,
            "POST",
            "/api/integrations/commerce/custom-app",
            storeId=store["id"],
            shopDomain=shop,
            clientId="client-1",
            clientSecret=SECRET,
        )
        return Account(whose, shop)

    async def run(self) -> None:
        """Let the clients work until told to end."""
        async with asyncio.TaskGroup() as tasks:
            for n in range(self.count):
                tasks.create_task(self._client(random.Random(f"{n} {self.seed}")))  # noqa: S311 - as in `cluster`

    async def _client(self, luck: random.Random) -> None:
        while not self.ending:
            await asyncio.sleep(luck.expovariate(1 / THINK_SECONDS))
            await self._one(luck.choice(self.accounts), luck)

    async def _one(self, account: Account, luck: random.Random) -> None:
        chance = luck.random()
        if chance < 0.3:
            await self.read(account, luck.randrange(len(self.doors)))
        elif chance < 0.6:
            await self._grant(account, luck)
        elif chance < 0.66:
            await self._found(luck)
        else:
            await self._deliver(account.shop, luck)

    async def read(self, account: Account, place: int) -> bool:
        """Look at credits at one service."""
        path = f"/api/credits?organizationId={account.organization_id}"
        invoked = time.monotonic()
        answer = await self.attempt("read", place, "GET", path)
        if answer is None or answer.status_code != httpx.codes.OK:
            return False
        self._note(account, "read", "", invoked, answer.json()["balance"])
        return True

    async def _grant(self, account: Account, luck: random.Random) -> None:
        """Give an organization a micro-dollar: so its balance says how many grants it has had."""
        op = self.name("grant")
        body = {"organizationId": account.organization_id, "amount": 1, "reason": op}
        for place in self.places(luck):
            invoked = time.monotonic()
            answer = await self.attempt(
                *("grant", place, "POST", "/api/admin/credits/adjust"),
                json=body,
                headers={"Idempotency-Key": op},
            )
            known = answer is not None and answer.status_code == httpx.codes.OK
            told = "duplicate" if known else "unknown"
            self.model.calls.append(
                Call(
                    *(op, account.organization_id, "once", 1, invoked),
                    answered=time.monotonic() if known else None,
                    told=told,
                )
            )
            if answer is not None and known:
                if "Idempotent-Replayed" not in answer.headers:
                    # It may be that of a later moment, when the first answer was lost on its way.
                    self._note(account, "read", op, invoked, answer.json()["balance"])
                return
            await asyncio.sleep(luck.uniform(0.05, 0.3))

    def _note(self, account: Account, what: str, op: str, invoked: float, balance: int) -> None:
        self.model.calls.append(
            Call(
                *(f"{what}-{op or len(self.model.calls)}", account.organization_id, what, 0),
                invoked=invoked,
                answered=time.monotonic(),
                told="reply",
                version=balance,
                total=balance,
            )
        )

    async def _found(self, luck: random.Random) -> None:
        """Make an organization, once, however often it takes to be told so."""
        name = self.name("founded")
        self.model.asked_for.add(name)
        for place in self.places(luck):
            answer = await self.attempt(
                *("found", place, "POST", "/api/organizations"),
                json={"name": name},
                headers={"Idempotency-Key": name},
            )
            if answer is not None and answer.status_code == httpx.codes.CREATED:
                self.model.made.add(name)
                return
            await asyncio.sleep(luck.uniform(0.05, 0.3))

    async def _deliver(self, shop: str, luck: random.Random) -> None:
        """Deliver an order, a new one or one that was delivered before."""
        if self._past and luck.random() < 0.3:
            shop, number = luck.choice(self._past[-REMEMBERED:])
        else:
            self._count += 1
            number = self._count
            self._past.append((shop, number))
        body, delivery = order_body(number), f"delivery-{number}"
        headers = signed(body, shop=shop, delivery_id=delivery)
        self.model.sent.add(delivery)
        for place in self.places(luck):
            answer = await self.attempt(
                *("deliver", place, "POST", EVENTS), content=body, headers=headers
            )
            if answer is not None and answer.status_code == httpx.codes.OK:
                self.model.delivered.add(delivery)
                return
            await asyncio.sleep(luck.uniform(0.05, 0.3))

    def places(self, luck: random.Random) -> list[int]:
        """Draw where the attempts at something go; none are left when the run is ending."""
        return [luck.randrange(len(self.doors)) for _ in range(1 if self.ending else ATTEMPTS)]

    def name(self, what: str) -> str:
        self._count += 1
        return f"{what}-{self._count}"

    async def attempt(
        self, what: str, place: int, method: str, path: str, **request: object
    ) -> httpx.Response | None:
        """Ask once, and count what was said; None when nothing was."""
        try:
            answer = await self.request(place, method, path, **request)
        except httpx.HTTPError as error:
            self.model.told[f"{what} {type(error).__name__}"] += 1
            return None
        code = "" if answer.is_success else f" {answer.json().get('code', '')}"
        self.model.told[f"{what} {answer.status_code}{code}"] += 1
        return answer

    async def request(
        self, place: int, method: str, path: str, **request: object
    ) -> httpx.Response:
        """Ask at one place. Raises HTTPError."""
        return await self.doors[place].request(method, path, **request)  # type: ignore[arg-type]  # as httpx takes it


async def done(door: httpx.AsyncClient, method: str, path: str, **body: object) -> dict[str, str]:
    """Do what has to succeed."""
    answer = await door.request(method, path, json=body)
    assert answer.is_success, answer.text
    return dict(answer.json())
