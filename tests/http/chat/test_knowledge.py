"""What the model is told of a store, and of no other."""

import json

import httpx

from tests.http.chat.visitor import BASE, Visitor, arrive
from tolsey.sandbox.model import Model
from tolsey.service import Running
from tolsey.storage.database import Database

FACT = """
INSERT INTO facts (id, organization_id, store_id, name, value) VALUES ($1, $2, $3, $4, $5::jsonb)
"""
MESSAGE = """
INSERT INTO messages (id, organization_id, store_id, role, text) VALUES ($1, $2, $3, 'user', $4)
"""
VECTOR = """
INSERT INTO vectors (namespace, id, embedding, text) VALUES ($1, $2, '[1,0,0]', $3)
"""
ORDER = """
INSERT INTO commerce_orders (store_id, order_id, updated_at, currency, current_total_minor, test,
    customer_hash, metadata, processed_at)
VALUES ($1, $2, now(), 'USD', $3, false, $4, $5::jsonb, $6)
"""
PSEUDONYM = "s1:" + "a" * 64
LEGACY = "b" * 64


def system(model: Model) -> str:
    first = model.asked[-1]["messages"][0]
    assert first["role"] == "system"
    return str(first["content"])


async def fill(database: Database, visitor: Visitor, mark: str) -> None:
    organization_id, store_id = visitor.organization_id, visitor.store_id
    fact = json.dumps(f"{mark} fact")
    await database.execute(FACT, f"f1-{mark}", organization_id, store_id, "brand.voice", fact)
    rule = json.dumps(f"{mark} house")
    await database.execute(FACT, f"f2-{mark}", organization_id, None, "house.rule", rule)
    takes = f"{mark} shipping takes two days"
    await database.execute(VECTOR, store_id, f"{mark}-1", takes)
    await database.execute(MESSAGE, f"m1-{mark}", organization_id, store_id, takes)
    told = f"f3-{mark}", organization_id, store_id, "shipping.time", json.dumps(takes)
    await database.execute(FACT, *told)
    await database.execute(VECTOR, store_id, f"{mark}-2", f"{mark} unrelated words")


async def test_the_model_is_told_what_the_store_knows_about_the_question(
    live: Running, rich: Visitor, model: Model
) -> None:
    await fill(live.service.database, rich, "own")
    await rich.ask('How long does shipping "take" & !why | (OR)?')
    told = system(model)
    assert "Store: Corner shop" in told
    assert 'brand.voice = "own fact"' in told
    assert 'house.rule = "own house"' in told
    assert told.count("Remembered: own shipping takes two days") == 3
    assert "own unrelated words" not in told
    assert model.asked[-1]["messages"][1]["role"] == "user"


async def test_nothing_of_another_store_is_told_not_even_of_the_same_organization(
    live: Running, rich: Visitor, model: Model, url: str
) -> None:
    database = live.service.database
    async with httpx.AsyncClient(base_url=url, headers={"Origin": BASE}) as browser:
        other = await arrive(browser, "eve@example.com")
    await fill(database, other, "foreign")
    await database.execute("UPDATE organizations SET plan = 'pro'")
    sister = Visitor(rich.browser, rich.user_id, rich.organization_id, "store_sister")
    await database.execute(
        "INSERT INTO stores VALUES ($1, $2, 'Sister', '', now())",
        sister.store_id,
        rich.organization_id,
    )
    await fill(database, sister, "sister")
    await rich.ask("How long does shipping take?")
    told = system(model)
    assert "foreign" not in told
    assert "sister fact" not in told
    assert "sister shipping" not in told
    assert "sister house" in told  # a fact of the whole organization


async def test_customers_are_told_by_pseudonym_and_order_notes_not_at_all(
    live: Running, rich: Visitor, model: Model
) -> None:
    database, at = live.service.database, live.service.clock()
    notes = json.dumps({"tags": "gift", "noteAttributes": [{"name": "for", "value": "Bob Smith"}]})
    for number, whose in enumerate((PSEUDONYM, PSEUDONYM, LEGACY, None)):
        await database.execute(ORDER, rich.store_id, number, 1_000, whose, notes, at)
    await rich.ask()
    told = system(model)
    assert "4 orders, 4000 minor units of USD" in told
    assert f"{PSEUDONYM}, 2 orders" in told
    assert LEGACY not in told
    assert "Bob" not in told
