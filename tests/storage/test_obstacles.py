"""What keeps a store from going on is read with its own and its organization's rows, and nobody else's."""

from datetime import timedelta

from tolsey.storage import operations
from tolsey.storage.database import Database

ROWS = """
INSERT INTO launch_milestones (store_id, milestone, state, changed_at, run, attempts, step, reason, scope)
VALUES ('sto_1', 'shipping', 'blocked', now(), 1, 1, 0, 'missing_scope', 'write_shipping'),
    ('sto_1', 'brand', 'failed', now(), 1, 3, 0, 'platform_refused', NULL),
    ('sto_1', 'audit', 'succeeded', now(), 1, 1, 0, NULL, NULL),
    ('sto_2', 'audit', 'blocked', now(), 1, 1, 0, 'missing_scope', NULL);
INSERT INTO dead_letters (id, key, slot, kind, actor_key, name, payload, attempts, error, created_at, lane)
VALUES ('dl_1', 'a', 1, 'store', 'sto_1', 'Tick', '{}', 5, 'ValueError', now(), NULL),
    ('dl_2', 'b', 1, 'store', 'sto_1', 'Call', '{}', 5, 'told as a call', now(), 'platform'),
    ('dl_3', 'c', 1, 'store', 'sto_2', 'Tick', '{}', 5, 'ValueError', now(), NULL);
INSERT INTO compliance_requests
    (id, topic, shop_domain, delivery_id, body_digest, stores, shop_keys, received_at, pending_steps)
VALUES ('cr_1', 'shop/redact', 'a', '1', '1', '{sto_1}', '{k}', now() - interval '31 days', '{x}'),
    ('cr_2', 'shop/redact', 'a', '2', '2', '{sto_1}', '{k}', now() - interval '29 days', '{x}');
INSERT INTO subscriptions (organization_id, subscription_id, status, dunning_since)
VALUES ('org_1', 'sub_1', 'past_due', now()), ('org_2', 'sub_2', 'active', NULL);
INSERT INTO credit_accounts (organization_id, seq, hash, debt, allowance)
VALUES ('org_1', 1, '', 0, 0), ('org_2', 1, '', 0, 0);
INSERT INTO credit_lots
    (organization_id, id, kind, amount, remaining, pinned, granted_at, expires_at, seq)
VALUES ('org_1', 'l1', 'bonus', 10, 10, 10, now(), now() + interval '1 day', 1),
    ('org_1', 'l2', 'bonus', 10, 10, 0, now(), now() - interval '1 day', 1),
    ('org_2', 'l3', 'bonus', 10, 10, 9, now(), now() + interval '1 day', 1);
"""


async def test_what_keeps_a_store_from_going_on_is_found(database: Database) -> None:
    await database.execute(ROWS)

    async def found(store_id: str, organization_id: str) -> list[tuple[str, str, str | None]]:
        rows = await operations.obstacles(
            database, store_id, organization_id, most=20, overdue=timedelta(days=30)
        )
        return [(row["cause"], row["subject"], row["said"]) for row in rows]

    assert sorted(await found("sto_1", "org_1")) == [
        ("credits_used_up", "org_1", None),
        ("message_given_up", "Tick (dl_1)", "ValueError"),
        ("milestone_blocked", "shipping", "missing_scope: write_shipping"),
        ("milestone_failed", "brand", "platform_refused"),
        ("payment_failing", "sub_1", "past_due"),
        ("privacy_overdue", "cr_1", "shop/redact"),
    ]
    assert await found("sto_3", "org_2") == []
