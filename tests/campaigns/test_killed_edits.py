"""A process dies at every turn of its loop, one after the other, while an agent's edit is made in a shop.

The next process is asked for the same, as an agent repeats its call. The shop saw the edit once, and what is
kept of it says so.
"""

import signal
from collections import Counter
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import httpx
import orjson
import pytest

from tests.campaigns.mortals import IN_A_ROW, MOST, STEP, mortals
from tests.http.people import KEYRING, settings_of
from tests.mcp.tools.shop import ANNS, ITEM, PRODUCT, stocked
from tests.mcp.tools.two_stores import Owner, connect, settle
from tolsey.actors.edit import Edit
from tolsey.actors.store.editing import edits
from tolsey.actors.store.editing.messages import (
    BeginChangeSet,
    BeginOperation,
    DecideProposal,
    PlannedChange,
    ResumeChangeSet,
)
from tolsey.http.clients.commerce.edits.fulfilment import MOST_PARCELS
from tolsey.sandbox.commerce.course.life import Item
from tolsey.sandbox.commerce.platform import Platform
from tolsey.sandbox.commerce.shop.orders import Order
from tolsey.sandbox.commerce.shop.products import LOCATION_ID, Product
from tolsey.sandbox.commerce.shop.state import ALL_SCOPES, WRITE_SCOPES, Shop, ShopSpec
from tolsey.service import running
from tolsey.storage.commerce import agent_operations
from tolsey.storage.database import Database
from tolsey.storage.records.commerce.agent_operation import AgentOperation
from tolsey.storage.sealing.sealed import Vault

pytestmark = [pytest.mark.anyio, pytest.mark.timeout(1_200)]

STAGES = {"not asked", "running", "sent", "made", "applied"}
"""Each has to be died in."""


@dataclass
class Shelf:
    """A store with one product, whose shop counts what is done to it."""

    database: Database
    platform: Platform
    owner: Owner

    @property
    def shop(self) -> Shop:
        return self.platform.shop(ANNS)

    @property
    def product(self) -> Product:
        return self.shop.products[PRODUCT]

    @property
    def order(self) -> Order:
        (order,) = self.platform.shop(ANNS).orders.values()
        return order

    @property
    def available(self) -> int:
        return self.product.variants[0].available

    def asked(self, operation_id: str, edit: Edit) -> BeginOperation:
        vault = Vault.from_keys(KEYRING)
        store_id, written = self.owner.store_id, edit.written()
        return BeginOperation(
            operation_id=operation_id,
            user_id=self.owner.user_id,
            client_id="client_1",
            tool=edit.kind,
            subject=edits.subject_of(edit),
            digest="d",
            intent=agent_operations.seal_intent(vault, store_id, operation_id, written),
            at=datetime.now(UTC),
        )

    def asked_for_many(self, id: str, some: Sequence[Edit]) -> BeginChangeSet:
        alone = [self.asked(f"{id}.{place:03}", edit) for place, edit in enumerate(some, start=1)]
        return BeginChangeSet(
            change_set=id,
            user_id=self.owner.user_id,
            client_id="client_1",
            digest="d",
            changes=tuple(
                PlannedChange(
                    operation_id=one.operation_id,
                    tool=one.tool,
                    subject=one.subject,
                    intent=one.intent,
                )
                for one in alone
            ),
            at=datetime.now(UTC),
        )

    def resumed(self, id: str) -> ResumeChangeSet:
        user_id, at = self.owner.user_id, datetime.now(UTC)
        return ResumeChangeSet(change_set=id, user_id=user_id, is_person=True, at=at)

    async def kept(self, operation_id: str) -> AgentOperation | None:
        return await agent_operations.find(self.database, self.owner.store_id, operation_id)

    async def settled(self) -> None:
        """Let the shop take what a dead process sent last: it came before what is asked now."""
        async with httpx.AsyncClient() as client:
            for _ in range(3):
                await client.get(f"{self.platform.url}/{ANNS}/")


@asynccontextmanager
async def opened(database: Database, database_url: str, redis_url: str) -> AsyncIterator[Shelf]:
    scopes = (*ALL_SCOPES, *WRITE_SCOPES)
    spec = ShopSpec(
        domain=ANNS, client_id=f"app-{ANNS}", scopes=scopes, maximum_points=1e9, restore_rate=1e9
    )
    platform = Platform()
    platform.add_shop(spec)
    async with platform.serve():
        given = {"database_url": database_url, "redis_url": redis_url}
        settings = settings_of(**given, commerce_url_template=platform.url_template)
        async with running(settings, timers=False) as started:
            owner = await settle(started.service, "ann", 1_000_000, datetime.now(UTC))
            stocked(platform)
            order = platform.place_order(ANNS, (Item(quantity=1 + MOST),), email=None)
            platform.fulfil_order(ANNS, order.id, 1)
            token = platform.shop(ANNS).issue_token(platform.now())
            await connect(started.service, owner, token.text, scopes)
        yield Shelf(database, platform, owner)


async def stage(shelf: Shelf, operation_id: str, *, is_made: bool) -> str:
    """Tell how far an edit is."""
    kept = await shelf.kept(operation_id)
    if kept is None:
        return "not asked"
    return "made" if is_made and kept.state == "sent" else str(kept.state)


async def test_stock_moves_once_whatever_turn_a_process_dies_at(
    database: Database, database_url: str, redis_url: str, tmp_path: Path, capsys: Any
) -> None:
    died: Counter[str] = Counter()
    turn = outlived = 0
    async with (
        opened(database, database_url, redis_url) as shelf,
        mortals("store", database_url, shelf.platform.url_template, tmp_path) as forks,
    ):
        edit = Edit(kind=edits.STOCK, ids=(str(ITEM), str(LOCATION_ID)), wanted={"delta": -1})
        while outlived < IN_A_ROW:
            turn += STEP
            assert turn < MOST
            id, before = f"op_turn_{turn}", shelf.available
            asked = shelf.asked(id, edit)
            code = await forks.ask(shelf.owner.store_id, asked, dies_at=turn)
            assert code in {0, -signal.SIGKILL}, forks.said.read_text()[-4_000:]
            outlived = outlived + 1 if code == 0 else 0
            await shelf.settled()
            is_made = shelf.available != before
            died[await stage(shelf, id, is_made=is_made)] += code != 0
            await forks.follow(shelf.owner.store_id, asked)
            kept = await shelf.kept(id)
            assert kept is not None
            assert (shelf.available, kept.state) == (before - 1, "applied")
            assert orjson.loads(kept.after or "{}") == {"available": before - 1}
        await is_left_in_order(database, turn // STEP)
    said(capsys, turn, died)


@dataclass(frozen=True)
class Trial:
    """A kind of edit that carries no key: what is asked at a turn, and what the shop shows of it."""

    edit: Callable[[Shelf, int], Edit]
    seen: Callable[[Shelf], Any]


def status(shelf: Shelf, turn: int) -> Edit:
    del turn
    wanted = "DRAFT" if shelf.product.status == "ACTIVE" else "ACTIVE"
    return Edit(kind=edits.PRODUCT, ids=(str(PRODUCT),), wanted={"status": wanted})


def price(shelf: Shelf, turn: int) -> Edit:
    wanted = {"price": {"amount": 1_000 + turn, "currency": shelf.product.currency}}
    prices = {str(shelf.product.variants[0].id): wanted}
    return Edit(kind=edits.PRICE, ids=(str(PRODUCT),), wanted={"prices": prices})


def fulfilment(shelf: Shelf, turn: int) -> Edit:
    del turn
    if len(shelf.order.fulfilments) + 1 == MOST_PARCELS:  # one of more is left to the admin
        del shelf.order.fulfilments[1:]
    lines = {str(shelf.order.lines[0].id): 1}
    tracking = dict.fromkeys(("company", "number", "url"))
    wanted = {"part": None, "lines": lines, "tracking": tracking, "notify": True}
    return Edit(kind=edits.FULFILMENT, ids=(str(shelf.order.id),), wanted=wanted)


def tracking(shelf: Shelf, turn: int) -> Edit:
    wanted = {"tracking": {"number": f"T{turn}"}, "notify": True}
    return Edit(kind=edits.TRACKING, ids=(str(shelf.order.fulfilments[0].id),), wanted=wanted)


def sent(shelf: Shelf) -> tuple[int, int]:
    """Count the units that left the shop, and the mails about them."""
    return shelf.order.fulfilled, sum(one.told for one in shelf.order.fulfilments)


def discount(shelf: Shelf, turn: int) -> Edit:
    del shelf
    none = dict.fromkeys(("amount", "minimum", "usage_limit"))
    wanted = {"title": "Spring", "percentage": 15, "once": True, **none}
    return Edit(kind=edits.DISCOUNT, ids=(f"SPRING-{turn}",), wanted=wanted)


def collection(shelf: Shelf, turn: int) -> Edit:
    """Draft a new one, and edit it at the next turn."""
    del shelf
    wanted = {"title": "Summer", "body_html": f"<p>{turn}</p>"}
    return Edit(kind=edits.COLLECTION, ids=(f"summer-{turn // 2}",), wanted=wanted)


def page(shelf: Shelf, turn: int) -> Edit:
    del shelf
    wanted = {"title": "About us", "body_html": f"<p>{turn}</p>"}
    return Edit(kind=edits.PAGE, ids=(f"about-{turn // 2}",), wanted=wanted)


TRIALS = {
    edits.PRODUCT: Trial(status, lambda shelf: shelf.product.status),
    edits.PRICE: Trial(price, lambda shelf: shelf.product.variants[0].price),
    edits.FULFILMENT: Trial(fulfilment, sent),
    edits.TRACKING: Trial(tracking, sent),
    edits.DISCOUNT: Trial(discount, lambda shelf: len(shelf.shop.discounts)),
    edits.COLLECTION: Trial(
        collection, lambda shelf: [one.description_html for one in shelf.shop.collections.values()]
    ),
    edits.PAGE: Trial(page, lambda shelf: [one.body for one in shelf.shop.pages.values()]),
}


@pytest.mark.parametrize("kind", TRIALS)
async def test_a_change_without_a_key_is_made_once_or_told_as_not_made(
    database: Database, database_url: str, redis_url: str, tmp_path: Path, capsys: Any, *, kind: str
) -> None:
    died: Counter[str] = Counter()
    trial, turn, outlived = TRIALS[kind], 0, 0
    async with (
        opened(database, database_url, redis_url) as shelf,
        mortals("store", database_url, shelf.platform.url_template, tmp_path) as forks,
    ):
        while outlived < IN_A_ROW:
            turn += STEP
            assert turn < MOST
            id, before = f"op_turn_{turn}", shelf.platform.admin.mutations
            asked = shelf.asked(id, trial.edit(shelf, turn))
            was = trial.seen(shelf)
            code = await forks.ask(shelf.owner.store_id, asked, dies_at=turn)
            assert code in {0, -signal.SIGKILL}, forks.said.read_text()[-4_000:]
            outlived = outlived + 1 if code == 0 else 0
            await shelf.settled()
            is_made = trial.seen(shelf) != was
            died[await stage(shelf, id, is_made=is_made)] += code != 0
            await forks.follow(shelf.owner.store_id, asked)
            kept = await shelf.kept(id)
            assert kept is not None
            # What may have been sent and is not to be seen is not sent again: it is said to be not made.
            is_made = trial.seen(shelf) != was
            assert shelf.platform.admin.mutations - before == is_made, kept
            assert (kept.state, kept.code) == (
                ("applied", None) if is_made else ("rejected", "not_applied")
            )
            assert is_made or outlived == 0
        await is_left_in_order(database, turn // STEP)
    said(capsys, turn, died)


async def test_a_refund_that_a_person_confirmed_is_made_once_whatever_turn_a_process_dies_at(
    database: Database, database_url: str, redis_url: str, tmp_path: Path, capsys: Any
) -> None:
    died: Counter[str] = Counter()
    turn = outlived = 0
    wanted = {
        "amount": {"amount": 1, "currency": "USD"},
        "lines": {},
        "shipping": None,
        "location": None,
        "note": None,
        "notify": False,
    }
    async with (
        opened(database, database_url, redis_url) as shelf,
        mortals("store", database_url, shelf.platform.url_template, tmp_path) as forks,
    ):
        while outlived < IN_A_ROW:
            turn += STEP
            assert turn < MOST
            id, refunded = f"op_turn_{turn}", shelf.order.refunded
            edit = Edit(kind=edits.REFUND, ids=(str(shelf.order.id),), wanted=wanted)
            proposal = replace(shelf.asked(id, edit), is_proposal=True, before="{}", after="{}")
            assert await forks.ask(shelf.owner.store_id, proposal) == 0
            confirmed = DecideProposal(
                operation_id=id,
                user_id=shelf.owner.user_id,
                is_confirmed=True,
                at=datetime.now(UTC),
            )
            code = await forks.ask(shelf.owner.store_id, confirmed, dies_at=turn)
            assert code in {0, -signal.SIGKILL}, forks.said.read_text()[-4_000:]
            outlived = outlived + 1 if code == 0 else 0
            await shelf.settled()
            is_made = shelf.order.refunded != refunded
            died[await stage(shelf, id, is_made=is_made)] += code != 0
            await forks.follow(shelf.owner.store_id, confirmed)
            kept = await shelf.kept(id)
            assert kept is not None
            assert (kept.state, shelf.order.refunded) == ("applied", refunded + 1)
            assert kept.decided_by == shelf.owner.user_id
        assert len(shelf.order.refunds) == turn // STEP
        await database.execute("DELETE FROM outbox WHERE name = 'ProposalExpired'")
        await is_left_in_order(database, turn // STEP)
    with capsys.disabled():
        print(f"\n{turn} turns, died when it was {dict(died)}")  # noqa: T201 - what a campaign is for


def stock(shelf: Shelf, turn: int) -> Edit:
    del shelf, turn
    return Edit(kind=edits.STOCK, ids=(str(ITEM), str(LOCATION_ID)), wanted={"delta": -1})


BOTH = (stock, price)
"""Under a key that the platform honours, and without one: each once, or told as not made."""


SHARES = 12 if STEP == 1 else 1
"""In so many tests processes die at every turn of a plan of many, which has more than one test has time for."""


@pytest.mark.parametrize("share", range(SHARES))
async def test_a_plan_of_many_goes_on_where_a_process_died_and_makes_none_twice(
    database: Database,
    database_url: str,
    redis_url: str,
    tmp_path: Path,
    capsys: Any,
    *,
    share: int,
) -> None:
    died: Counter[int] = Counter()
    turn, outlived, made = share + 1 - SHARES, 0, 0
    async with (
        opened(database, database_url, redis_url) as shelf,
        mortals("store", database_url, shelf.platform.url_template, tmp_path) as forks,
    ):
        while outlived < IN_A_ROW:
            turn += SHARES if STEP == 1 else len(BOTH) * STEP
            assert turn < len(BOTH) * MOST
            id, before = f"op_turn_{turn}", shelf.platform.admin.mutations
            some = [one(shelf, turn) for one in BOTH]
            available = shelf.available
            asked = shelf.asked_for_many(id, some)
            code = await forks.ask(shelf.owner.store_id, asked, dies_at=turn)
            assert code in {0, -signal.SIGKILL}, forks.said.read_text()[-4_000:]
            outlived = outlived + 1 if code == 0 else 0
            await shelf.settled()
            kept = await agent_operations.of_change_set(database, id)
            died[sum(one.is_over for one in kept)] += code != 0
            await forks.follow(shelf.owner.store_id, asked)
            kept = await agent_operations.of_change_set(database, id)
            while any(one.state == "stopped" for one in kept):  # the platform was late for once
                await forks.follow(shelf.owner.store_id, shelf.resumed(id))
                kept = await agent_operations.of_change_set(database, id)
            states = [(str(one.state), one.code) for one in kept]
            assert states[0] == ("applied", None)
            assert set(states) <= {("applied", None), ("rejected", "not_applied")}
            assert outlived == 0 or set(states) == {("applied", None)}
            assert shelf.available == available - 1
            applied = sum(one.state == "applied" for one in kept)
            # Only stock may be asked for twice: the platform makes it once under its key.
            asked_twice = shelf.platform.admin.mutations - before - applied
            assert asked_twice in {0, 1}
            made += len(some)
        await database.execute("DELETE FROM outbox WHERE name = 'ChangeSetExpired'")
        await is_left_in_order(database, made)
    with capsys.disabled():
        print(f"\n{turn} turns, died after {dict(died)}")  # noqa: T201 - what a campaign is for
    if STEP == 1:
        assert {0, 1} <= died.keys()


async def is_left_in_order(database: Database, edits_made: int) -> None:
    """Hold that each edit has one end in the audit log, and that nothing is left to do or was given up."""
    ends = await database.fetch(
        "SELECT metadata->>'operationId' AS id, count(*) AS n FROM audit_log"
        " WHERE event = 'agent.write' AND metadata->>'status' <> 'unknown' GROUP BY 1"
    )
    assert [row["n"] for row in ends] == [1] * edits_made
    assert await database.fetch("SELECT FROM outbox UNION ALL SELECT FROM dead_letters") == []


def said(capsys: Any, turns: int, died: Counter[str]) -> None:
    with capsys.disabled():
        print(f"\n{turns} turns, died when it was {dict(died)}")  # noqa: T201 - what a campaign is for
    if STEP == 1:
        assert {stage for stage, times in died.items() if times} >= STAGES
