"""Sealing anew with another key: every kept text, in portions, beside what others write."""

import ast
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path

import pytest

import tolsey
from tests.http.people import settings_of
from tolsey.actors.listing.actor import ListingActor
from tolsey.actors.listing.state import ListingState
from tolsey.actors.store.actor import StoreActor
from tolsey.actors.store.state import StoreState
from tolsey.http.deals import papers
from tolsey.runtime.actor import handles
from tolsey.runtime.decision import Decision
from tolsey.runtime.messages import ActorId, Message
from tolsey.runtime.registry import Runtime
from tolsey.storage.database import Database
from tolsey.storage.runtime import slots
from tolsey.storage.runtime.journal import Journal
from tolsey.storage.runtime.outbox import Outbox
from tolsey.storage.sealing import keys, rotation
from tolsey.storage.sealing.keys import KeyringError
from tolsey.storage.sealing.rotation import COLUMNS, SealedColumn
from tolsey.storage.sealing.sealed import SealBroken, Vault

OLD, NEW = "old_1:" + "A" * 43, "new:" + "E" * 43
ROWS: Mapping[str, Mapping[str, str]] = {
    "stores": {"id": "store_1"},
    "shops_of_stores": {"store_id": "store_1", "shop_key": "store_1@b.myshopify.com"},
    "integration_connections": {"store_id": "store_1", "provider": "commerce"},
    "devstore_pool": {"shop_domain": "pool.myshopify.com"},
    "revenue_sources": {"listing_id": "lst_1", "provider": "payments"},
    "agent_operations": {"store_id": "store_1", "operation_id": "op_1"},
    "store_launches": {"store_id": "store_1"},
    "outbound_mail": {"id": "mail_1"},
    "provider_events": {"provider": "mail", "event_id": "evt_1"},
    "status_webhooks": {"id": "sub_1"},
}
ELSEWHERE = {"state", "token"}
"""What is sealed and handed out, not kept: it ends with its key."""
KIND = "store"
"""Whose messages are named here."""
NOON = datetime(2027, 1, 1, 12, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class RewriteRows(Message[int]):
    """Write rows with sealed texts anew, for what else stands in them."""

    number: int


class RewritingStore(StoreActor):
    @handles(RewriteRows)
    def rewrite(self, state: StoreState, message: RewriteRows) -> Decision[StoreState, int]:
        assert state.connection is not None
        assert state.launch is not None
        after = replace(
            state,
            connection=replace(
                state.connection, refused_at=NOON + timedelta(minutes=message.number)
            ),
            launch=state.launch.with_head(tax_lines=message.number),
            operations=tuple(replace(one, looks=message.number) for one in state.operations),
            shops=tuple(
                replace(one, first_connected_at=NOON + timedelta(minutes=message.number))
                for one in state.shops
            ),
        )
        return Decision(after, reply=message.number)


class RewritingListing(ListingActor):
    @handles(RewriteRows)
    def rewrite(self, state: ListingState, message: RewriteRows) -> Decision[ListingState, int]:
        proofs = tuple(
            replace(one, source=one.source and replace(one.source, client_id=str(message.number)))
            for one in state.proofs
        )
        return Decision(replace(state, proofs=proofs), reply=message.number)


def sealed(vault: Vault, column: SealedColumn, text: str) -> str:
    row = ROWS[column.table]
    return vault.seal(
        text,
        table=column.table,
        column=column.column,
        row=column.row(row),
        tenant=row[column.tenant],
    )


async def fill(database: Database, vault: Vault) -> None:
    """Keep one text in every column, each sealed for its place."""
    held = {(one.table, one.place): sealed(vault, one, f"plain {one.place}") for one in COLUMNS}
    await database.execute("INSERT INTO organizations (id, name) VALUES ('org_1', 'One')")
    await database.execute(
        "INSERT INTO stores (id, organization_id, name, sealed_salt, created_at)"
        " VALUES ('store_1', 'org_1', 'One', $1, now())",
        held["stores", "sealed_salt"],
    )
    await database.execute(
        "INSERT INTO shops_of_stores (store_id, shop_domain, shop_key, sealed_salt,"
        " first_connected_at) VALUES ('store_1', 'b.myshopify.com', $1, $2, now())",
        ROWS["shops_of_stores"]["shop_key"],
        held["shops_of_stores", "sealed_salt"],
    )
    await database.execute(
        "INSERT INTO devstore_pool (shop_domain, client_secret, access_token, registered_by,"
        " registered_at) VALUES ('pool.myshopify.com', $1, $2, 'usr_1', now())",
        held["devstore_pool", "client_secret"],
        held["devstore_pool", "access_token"],
    )
    await database.execute(
        "INSERT INTO integration_connections (store_id, provider, shop_domain, status,"
        " access_token, metadata, connected_at) VALUES ('store_1', 'commerce', 'b.myshopify.com',"
        " 'connected', $1, jsonb_build_object('clientSecretEncrypted', $2::text,"
        " 'formerClientSecretEncrypted', $3::text, 'a', 1), now())",
        held["integration_connections", "access_token"],
        held["integration_connections", "metadata.clientSecretEncrypted"],
        held["integration_connections", "metadata.formerClientSecretEncrypted"],
    )
    await database.execute(
        "INSERT INTO revenue_sources (listing_id, organization_id, provider, shop_domain, client_id,"
        " sealed_secret, connected_by, connected_at)"
        " VALUES ('lst_1', 'org_1', 'payments', 'acct_1', '', $1, 'usr_1', now())",
        held["revenue_sources", "sealed_secret"],
    )
    await database.execute(
        "INSERT INTO agent_operations (store_id, operation_id, user_id, client_id, tool, subject,"
        " digest, state, intent, created_at) VALUES ('store_1', 'op_1', 'usr_1', 'c', 'tag_order',"
        " '1', '', 'waiting', $1, now())",
        held["agent_operations", "intent"],
    )
    await database.execute(
        "INSERT INTO store_launches (store_id, launch_id, organization_id, playbook, digest,"
        " begun_at, changed_at, storefront_password)"
        " VALUES ('store_1', 'launch_1', 'org_1', 'p', 'd', now(), now(), $1)",
        held["store_launches", "storefront_password"],
    )
    await database.execute(
        "INSERT INTO outbound_mail (id, event, about, recipient, subject, sealed_content,"
        " created_at) VALUES ('mail_1', 'e', 'a', 'ann@example.com', 's', $1, now())",
        held["outbound_mail", "sealed_content"],
    )
    await database.execute(
        "INSERT INTO provider_events (provider, event_id, type, sealed_body, state, received_at)"
        " VALUES ('mail', 'evt_1', 't', $1, 'kept', now())",
        held["provider_events", "sealed_body"],
    )
    await database.execute(
        "INSERT INTO status_webhooks (id, url, sealed_secret, components, confirmed_at)"
        " VALUES ('sub_1', 'https://hooks.example/tolsey', $1, '', now())",
        held["status_webhooks", "sealed_secret"],
    )


async def read(database: Database, vault: Vault, column: SealedColumn) -> str:
    row = ROWS[column.table]
    own = " AND ".join(f"{name} = ${at}" for at, name in enumerate(column.key, 1))
    found = await database.fetchrow(
        f"SELECT {column.value} AS text FROM {column.table} WHERE {own}",  # noqa: S608 - our names
        *(row[name] for name in column.key),
    )
    assert found is not None
    return vault.open(
        found["text"],
        table=column.table,
        column=column.column,
        row=column.row(row),
        tenant=row[column.tenant],
    )


async def test_everything_is_opened_by_the_new_key_alone_afterwards(database: Database) -> None:
    await fill(database, Vault.from_keys(OLD))
    ring, alone = Vault.from_keys(f"{NEW},{OLD}"), Vault.from_keys(NEW)

    done = [portion async for portion in rotation.rotate(database, ring)]

    assert sum(one.sealed for one in done) == len(COLUMNS)
    assert not any(one.unopened for one in done)
    for column in COLUMNS:
        assert await read(database, alone, column) == f"plain {column.place}"
        assert await rotation.waiting(database, "new", column) == 0
    kept = await database.fetchrow("SELECT metadata->>'a' AS a FROM integration_connections")
    assert kept is not None
    assert kept["a"] == "1"
    assert [portion async for portion in rotation.rotate(database, ring)] == []


async def test_an_actor_in_memory_writes_no_text_back_that_was_sealed_anew_on_disk(
    database: Database,
) -> None:
    await fill(database, Vault.from_keys(OLD))
    held = [one for one in COLUMNS if one.held_by]
    asked = {one.held_by: ActorId(one.held_by, ROWS[one.table][one.tenant]) for one in held}
    journal = Journal(database)
    async with Runtime(
        [
            RewritingStore(database),
            RewritingListing(database, partial(papers.nda_writer, database, "http://127.0.0.1")),
        ],
        journal,
        Outbox(database),
        partial(slots.versions, database),
        epochs=await slots.claim(database, "test"),
    ) as runtime:
        for to in asked.values():
            assert await runtime.ask(to, RewriteRows(1)) == 1
        for column in held:
            assert await rotation.waiting(database, "new", column) == 1, column
        async for _ in rotation.rotate(database, Vault.from_keys(f"{NEW},{OLD}")):
            pass
        for to in asked.values():
            assert await runtime.ask(to, RewriteRows(2)) == 2
    await journal.close()
    for column in held:
        assert await read(database, Vault.from_keys(NEW), column) == f"plain {column.place}"
    row = await database.fetchrow(
        "SELECT tax_lines, client_id FROM store_launches, revenue_sources"
    )
    assert row is not None
    assert tuple(row) == (2, "2")
    journaled = "SELECT message FROM actor_journal WHERE kind = 'listing' ORDER BY version"
    lines = [row["message"] for row in await database.fetch(journaled)]
    assert lines == ["RewriteRows", "rotate-keys", "RewriteRows"]


async def test_a_run_that_is_stopped_goes_on_with_what_is_left(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rotation, "PORTION", 1)
    await fill(database, Vault.from_keys(OLD))
    ring = Vault.from_keys(f"{NEW},{OLD}")
    async for _ in rotation.rotate(database, ring):
        break

    rest = [portion async for portion in rotation.rotate(database, ring)]

    assert sum(one.sealed for one in rest) == len(COLUMNS) - 1


async def test_a_text_that_no_key_opens_is_counted_and_left(database: Database) -> None:
    await fill(database, Vault.from_keys("lost:" + "I" * 43))
    done = [portion async for portion in rotation.rotate(database, Vault.from_keys(NEW))]

    assert sum(one.unopened for one in done) == len(COLUMNS)
    with pytest.raises(SealBroken):
        await read(database, Vault.from_keys(NEW), COLUMNS[0])


async def test_a_key_can_be_taken_out_once_it_seals_nothing(database: Database) -> None:
    both, alone = settings_of(encryption_keys=f"{NEW},{OLD}"), settings_of(encryption_keys=NEW)
    ring = await keys.open_vault(database, both)
    await fill(database, Vault.from_keys(OLD))

    assert await keys.forget_unused(database, alone) == []
    with pytest.raises(KeyringError, match="lacks a key that the data are sealed with: old_1"):
        await keys.open_vault(database, alone)
    async for _ in rotation.rotate(database, ring):
        pass

    with pytest.raises(KeyringError):
        await keys.open_vault(database, alone)
    assert await keys.forget_unused(database, alone) == ["old_1"]
    assert await keys.trouble(database, alone) == ""
    assert (await keys.open_vault(database, alone)).key_ids == ("new",)


async def test_a_key_is_not_forgotten_while_something_that_it_sealed_waits(
    database: Database,
) -> None:
    both, alone = settings_of(encryption_keys=f"{NEW},{OLD}"), settings_of(encryption_keys=NEW)
    await keys.open_vault(database, both)
    waiting = """
        INSERT INTO dead_letters (id, key, slot, kind, actor_key, name, payload, attempts, error, created_at)
        VALUES ('dead_1', 'k', 1, 'store', 's', 'N', '{"token": "v1.old_1.x"}', 5, 'e', now())
    """
    await database.execute(waiting)
    assert await keys.forget_unused(database, alone) == []
    assert await keys.still_used(database, both) == [("old_1", "dead_letters", 1)]
    await database.execute("UPDATE dead_letters SET status = 'discarded'")
    assert await keys.still_used(database, both) == []
    assert await keys.forget_unused(database, alone) == ["old_1"]


def test_every_place_that_seals_what_is_kept_is_sealed_anew() -> None:
    found: set[str] = set()
    for path in Path(tolsey.__file__).parent.rglob("*.py"):
        text = path.read_text()
        for node in ast.walk(ast.parse(text)) if ".seal(" in text else ():
            if isinstance(node, ast.Call) and getattr(node.func, "attr", "") == "seal":
                found |= {
                    ast.unparse(one.value).strip("'\"")
                    for one in node.keywords
                    if one.arg == "column"
                }
    names = {"TOKEN": "access_token", "SECRET": "metadata.clientSecretEncrypted"}
    of_rows = {names.get(one, one) for one in found} - ELSEWHERE
    assert of_rows <= {column.column for column in COLUMNS}
    assert of_rows
