"""Buyers whom rows name by the older global digest are named by the pseudonyms of their store and shop."""

import hashlib
from collections.abc import Sequence
from contextlib import aclosing
from typing import Any

import anyio
import pytest

from tests.campaigns.sums import wrong_sums
from tests.http.people import NOON, Person, SignUp, made_operator
from tolsey.actors.store.deliveries.identity import PURPOSE, pseudonym
from tolsey.actors.store.rehashing.effects import Rehashing
from tolsey.http.app import create_app
from tolsey.http.operators.obligations import identities as identity_routes
from tolsey.http.people import auth
from tolsey.http.stores import routes as stores_routes
from tolsey.http.web.context import Service
from tolsey.http.web.edge import Edge
from tolsey.storage.commerce import identities, stores
from tolsey.storage.database import Database
from tolsey.storage.records.commerce.shops import ShopKey, later_key
from tolsey.storage.sealing.sealed import Vault

PATH = "/api/integrations/commerce/rehash-identities"
SECOND = "second.myshopify.com"
BUYERS = [f"buyer{n}@example.com" for n in range(3)]
ROWS = """
WITH given AS (SELECT * FROM unnest($2::text[]) WITH ORDINALITY AS g(known, n)), orders AS (
    INSERT INTO commerce_orders (store_id, order_id, updated_at, test, metadata, customer_hash,
        processed_at, currency, total_minor, financial_status)
    SELECT $1, n * 10 + i, $3, false, '{}', known, $3, 'USD', 100, 'paid' FROM given, generate_series(1, 2) i
), customers AS (
    INSERT INTO commerce_customers (store_id, customer_id, updated_at, email_hash)
    SELECT $1, n, $3, known FROM given
), touches AS (
    INSERT INTO attribution_touches (store_id, order_id, updated_at, session_id)
    SELECT $1, n * 10 + 1, $3, known FROM given
)
INSERT INTO customer_redactions (request_id, store_id, subject_key, email_hash)
SELECT 'req_1', $1, 'a-shop:' || known, known FROM given
"""
NAMES = """
SELECT customer_hash AS name FROM commerce_orders WHERE store_id = $1
UNION ALL SELECT email_hash FROM commerce_customers WHERE store_id = $1
UNION ALL SELECT session_id FROM attribution_touches WHERE store_id = $1
UNION ALL SELECT email_hash FROM customer_redactions WHERE store_id = $1
UNION ALL SELECT substr(subject_key, 8) FROM customer_redactions WHERE store_id = $1
"""
ROWS_OF_A_BUYER = 5


@pytest.fixture
def edge(service: Service) -> Edge:
    blueprints = [auth.routes, stores_routes.routes, identity_routes.routes]
    return create_app(service, blueprints, {})


@pytest.fixture
def vault(service: Service) -> Vault:
    return service.vault


@pytest.fixture
async def operator(sign_up: SignUp, database: Database) -> Person:
    return await made_operator(database, await sign_up("operator@example.com"))


def digest(email: str) -> str:
    """Hash an address as rows of before have it."""
    return hashlib.sha256(email.encode()).hexdigest()


async def planted(
    database: Database, shop_key: str, names: Sequence[str] = (*map(digest, BUYERS),)
) -> None:
    await database.execute(
        "INSERT INTO compliance_requests (id, topic, shop_domain, delivery_id, body_digest, stores,"
        " shop_keys, received_at, pending_steps)"
        " VALUES ('req_1', 'customers/redact', 'a-shop', 'd', 'b', '{}', '{}', $1, '{}')"
        " ON CONFLICT DO NOTHING",
        NOON,
    )
    await database.execute(ROWS, shop_key, list(names), NOON)


async def names_in(database: Database, shop_key: str) -> list[str]:
    return [row["name"] for row in await database.fetch(NAMES, shop_key)]


async def salt(database: Database, vault: Vault, shop_key: str) -> bytes:
    found = await stores.salt_of_key(database, vault, ShopKey(shop_key))
    assert found is not None
    return found


async def pseudonyms(database: Database, vault: Vault, shop_key: str) -> set[str | None]:
    key = vault.subkey(await salt(database, vault, shop_key), PURPOSE)
    return {pseudonym(key, email, None) for email in BUYERS}


async def store_of(person: Person) -> str:
    made: dict[str, Any] = (await person.store()).json()
    store_id: str = made["id"]
    return store_id


async def moved(database: Database, vault: Vault, shop_key: str, page_size: int = 100) -> list[int]:
    async with aclosing(Rehashing(database, vault).of_shop(ShopKey(shop_key), page_size)) as pages:
        return [rows async for rows in pages]


async def test_older_digests_are_counted_moved_once_and_found_no_more(
    operator: Person, database: Database, vault: Vault
) -> None:
    store_id = await store_of(operator)
    later = later_key(store_id, SECOND)
    sealed = stores.seal_salt_of_shop(vault, store_id, SECOND, b"s" * 32)
    await database.execute(
        "INSERT INTO shops_of_stores (store_id, shop_domain, shop_key, sealed_salt, first_connected_at)"
        " VALUES ($1, $2, $3, $4, $5)",
        *(store_id, SECOND, later, sealed, NOON),
    )
    for shop_key in (store_id, later):
        await planted(database, shop_key)
    browser = operator.browser

    counted = (await browser.get(PATH)).json()
    assert counted == {
        "complete": False,
        "rows": 30,
        "shops": 2,
        "columns": {
            "CommerceOrder.customerHash": 12,
            "CommerceCustomer.emailHash": 6,
            "AttributionTouch.sessionId": 6,
            "CustomerRedaction.emailHash": 6,
        },
    }
    assert not any(name.startswith("s1:") for name in await names_in(database, store_id))

    another = await browser.post(PATH, json={"storeIds": ["store_other"], "pageSize": 10})
    assert another.status_code == 200, another.text
    assert (another.json()["rehashed"], another.json()["complete"]) == (0, False)
    done = (await browser.post(PATH)).json()
    assert (done["rehashed"], done["complete"], done["rows"]) == (30, True, 0)
    again = (await browser.post(PATH, json={})).json()
    assert (again["rehashed"], again["complete"]) == (0, True)
    assert (await browser.get(PATH)).json()["complete"] is True

    # What a delivery would name them from now on, apart for each shop of the store.
    first, second = [await pseudonyms(database, vault, key) for key in (store_id, later)]
    assert set(await names_in(database, store_id)) == first
    assert set(await names_in(database, later)) == second
    assert not first & second
    assert await wrong_sums(database) == []
    audited = await database.fetch(
        "SELECT actor FROM audit_log WHERE event = 'admin.identities_rehashed'"
    )
    assert [row["actor"] for row in audited] == [operator.user_id]


async def test_a_run_that_was_cut_off_leaves_each_buyer_under_one_name_and_goes_on(
    operator: Person, database: Database, vault: Vault
) -> None:
    store_id = await store_of(operator)
    await planted(database, store_id)
    async with aclosing(Rehashing(database, vault).of_shop(ShopKey(store_id), 1)) as pages:
        assert await anext(pages) == ROWS_OF_A_BUYER
    names = await names_in(database, store_id)
    assert sorted(names.count(name) for name in set(names)) == [6, 6, 6]
    assert sum(name.startswith("s1:") for name in set(names)) == 1
    assert await moved(database, vault, store_id) == [2 * ROWS_OF_A_BUYER]
    assert set(await names_in(database, store_id)) == await pseudonyms(database, vault, store_id)


async def test_a_request_that_names_a_customer_twice_names_them_once_then(
    operator: Person, database: Database, vault: Vault
) -> None:
    store_id = await store_of(operator)
    known = {str(one) for one in await pseudonyms(database, vault, store_id)}
    await planted(database, store_id)
    await database.execute(
        "INSERT INTO customer_redactions (request_id, store_id, subject_key, email_hash)"
        " SELECT 'req_1', $1, 'a-shop:' || p, p FROM unnest($2::text[]) AS p",
        store_id,
        list(known),
    )
    await moved(database, vault, store_id)
    rows = await database.fetch("SELECT email_hash FROM customer_redactions")
    assert sorted(row["email_hash"] for row in rows) == sorted(known)


async def test_a_shop_whose_salt_is_destroyed_has_names_that_nobody_links(
    operator: Person, database: Database, vault: Vault
) -> None:
    store_id = await store_of(operator)
    linked = await pseudonyms(database, vault, store_id)
    await database.execute("UPDATE stores SET sealed_salt = ''")
    await planted(database, store_id)
    await moved(database, vault, store_id)
    names = set(await names_in(database, store_id))
    assert len(names) == len(BUYERS)
    assert all(name.startswith("s1:") for name in names)
    assert not names & linked


async def test_a_salt_that_no_key_at_hand_opens_stops_its_shop_alone_and_names_the_variable(
    operator: Person, sign_up: SignUp, database: Database
) -> None:
    known, lost = await store_of(operator), await store_of(await sign_up())
    foreign = Vault.from_keys("gone:" + "B" * 43)
    await database.execute(
        "UPDATE stores SET sealed_salt = $2 WHERE id = $1",
        lost,
        stores.seal_salt(foreign, lost, b"s" * 32),
    )
    for shop_key in (known, lost):
        await planted(database, shop_key)
    first = (await operator.browser.post(PATH, json={})).json()
    assert (first["rehashed"], first["unopened"], first["rows"]) == (15, 1, 15)
    refused = await operator.browser.post(PATH, json={})
    assert (refused.status_code, refused.json()["code"]) == (503, "missing_credential")
    assert refused.json()["variable"] == "ENCRYPTION_KEYS"
    assert set(await names_in(database, lost)) == set(map(digest, BUYERS))


async def test_rows_that_somebody_else_is_changing_are_waited_for(
    operator: Person, database: Database, vault: Vault
) -> None:
    store_id = await store_of(operator)
    await planted(database, store_id)
    waited = anyio.Event()
    asked = identities.move

    async def move(*args: Any) -> int:
        try:
            return await asked(*args)
        except Exception:
            waited.set()
            raise

    with pytest.MonkeyPatch.context() as given:
        given.setattr(identities, "move", move)
        async with anyio.create_task_group() as tasks, database.transaction() as tx:
            await tx.execute("UPDATE commerce_orders SET name = 'held' WHERE order_id = 11")
            tasks.start_soon(moved, database, vault, store_id)
            with anyio.fail_after(60):
                await waited.wait()
    assert set(await names_in(database, store_id)) == await pseudonyms(database, vault, store_id)


async def test_only_operators_count_and_move(sign_up: SignUp) -> None:
    person = await sign_up()
    for method in ("GET", "POST"):
        answer = await person.browser.request(method, PATH)
        assert answer.status_code == 403
