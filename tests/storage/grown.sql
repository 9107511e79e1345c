-- One tenant that has grown, and others beside it: what a page must not read through.
INSERT INTO organizations (id, name) SELECT 'org_' || n, 'Shop ' || n FROM generate_series(1, 5000) n;
INSERT INTO users (id, email, password_hash)
SELECT 'usr_' || n, 'u' || n || '@example.com', 'x' FROM generate_series(1, 300) n;
INSERT INTO deal_threads (id, listing_id, seller_id, buyer_id, requested_by, stage, entered_at, created_at,
    moved_at, seq, hash, leads, fast_track, diligence, transfer, returns, escalated)
SELECT 'deal_' || lpad(n::text, 6, '0'), 'lst_' || lpad((n / 2 + 1)::text, 6, '0'), 'org_' || 1 + n % 300,
    'org_' || 1 + (n + 7) % 300, 'usr_1', 'INQUIRY', now(), now(), now(), 1, 'h', '[]', '[]', '[]', '[]',
    '[]', false FROM generate_series(1, 20000) n;
INSERT INTO deal_offers (id, deal_id, side, status, amount, currency, type, terms, inventory, contingencies,
    valid_until, made_by, made_at)
SELECT 'offer_' || lpad(n::text, 6, '0'), 'deal_' || lpad((n / 2 + 1)::text, 6, '0'), 'buyer', 'PENDING', 1,
    'USD', 'cash', '{}', 'included', '[]', now(), 'usr_1', now() FROM generate_series(1, 20000) n;
INSERT INTO deal_events (deal_id, seq, body, hash, at)
SELECT 'deal_' || lpad(n::text, 6, '0'), s, '{}', 'h', now()
FROM generate_series(1, 10000) n, generate_series(1, 2) s;
INSERT INTO members (organization_id, user_id, role)
SELECT 'org_' || n, 'usr_' || n, 'owner' FROM generate_series(1, 300) n;
INSERT INTO stores (id, organization_id, name, sealed_salt, created_at)
SELECT 'sto_' || n, 'org_' || n, 'Store', 'x', now() FROM generate_series(1, 5000) n;

INSERT INTO provider_events (provider, event_id, type, sealed_body, state, received_at)
SELECT CASE WHEN n % 50 = 0 THEN 'mail' ELSE 'messaging' END, 'evt_' || n, 't', 'x',
    CASE WHEN n % 10000 = 0 THEN 'failed' ELSE 'kept' END, now() - n * interval '1 second' FROM generate_series(1, 20000) n;
INSERT INTO mail_bounces (recipient, kind, why, since)
SELECT 'u' || n || '@example.com', 'bounced', 'w', now() - n * interval '1 minute' FROM generate_series(1, 20000) n;
INSERT INTO commerce_orders (store_id, order_id, updated_at, name, currency, total_minor,
    current_total_minor, financial_status, fulfillment_status, test, source_name, customer_hash,
    metadata, processed_at)
SELECT 'sto_1', 5000000000 + n * 7, now(), '#' || 1000 + n, 'EUR', n % 9000, n % 9000,
    CASE WHEN n % 20000 = 0 THEN 'refunded' ELSE 'paid' END,
    CASE WHEN n % 20000 <> 1 THEN 'fulfilled' END, false, 'web', CASE WHEN n <= 2500 THEN 's1:often' ELSE 's1:' || md5((n % 20000)::text) END,
    '{}', now() - n * interval '10 minutes'
FROM generate_series(1, 60000) n;
INSERT INTO commerce_refunds (store_id, refund_id, order_id, currency, amount_minor, processed_at)
SELECT 'sto_1', n, 5000000000 + n * 7, 'EUR', 100, now() - n * interval '1 hour' FROM generate_series(1, 5000) n;
INSERT INTO commerce_fulfillments (store_id, fulfillment_id, order_id, updated_at)
SELECT 'sto_1', n, 5000000000 + n * 7, now() FROM generate_series(1, 5000) n;
INSERT INTO commerce_customers (store_id, customer_id, updated_at, email_hash)
SELECT 'sto_1', n, now(), 's1:' || md5(n::text) FROM generate_series(1, 20000) n;
INSERT INTO commerce_products (store_id, product_id, updated_at, title, handle, vendor,
    product_type, status, tags, variants, variant_count)
SELECT 'sto_1', 7000000000 + n * 3, now(), 'Robe n° ' || n || CASE WHEN n = 7 THEN ' été' ELSE '' END,
    'robe-' || n, CASE WHEN n = 7 THEN 'Rare' ELSE 'House' END,
    CASE WHEN n = 7 THEN 'Rare' ELSE 'Dress' END, 'active', 'sale',
    jsonb_build_array(jsonb_build_object('id', n, 'title', 'S', 'sku', 'K' || n,
        'inventoryItemId', n, 'inventoryQuantity', 3)), 1
FROM generate_series(1, 5000) n;
INSERT INTO commerce_inventory_levels (store_id, inventory_item_id, location_id, updated_at, available)
SELECT 'sto_1', n, 1, now(), 3 FROM generate_series(1, 5000) n;
INSERT INTO integration_connections (store_id, provider, shop_domain, status, connected_at)
SELECT 'sto_' || n, 'commerce', 's' || n || '.example', 'active', now() FROM generate_series(1, 5000) n;
INSERT INTO store_shops (store_id, shop_domain, facts_at)
SELECT 'sto_' || n, 's' || n || '.example', now() FROM generate_series(1, 5000) n;
INSERT INTO shops_of_stores SELECT 'sto_' || n, 's' || n || '.example', 'sto_' || n, NULL, now()
FROM generate_series(1, 5000) n;
INSERT INTO connection_history SELECT 'sto_' || n, now() - d * interval '1 day', 's' || n || '.example', now()
FROM generate_series(1, 5000) n, generate_series(1, 3) d;
INSERT INTO commerce_webhook_events (store_id, delivery_id, topic, shop_domain, created_at)
SELECT 'sto_' || n % 300, n, 'orders/create', 's.example', now() - n * interval '1 second'
FROM generate_series(1, 30000) n;
INSERT INTO commerce_webhook_events (store_id, delivery_id, topic, shop_domain, created_at)
SELECT 'sto_301', n, CASE WHEN n = 15000 THEN 'app/uninstalled' ELSE 'orders/' || n % 12 END, 's301.example',
    now() - n * interval '1 second' FROM generate_series(1, 15000) n;
INSERT INTO commerce_webhook_events (store_id, delivery_id, topic, shop_domain, created_at)
SELECT 'sto_301', 'c' || n, 'orders/create', 's301.example',
    now() - n * interval '2 seconds' FROM generate_series(1, 3000) n;

INSERT INTO audit_log (event, subject, organization_id, actor, metadata)
SELECT 'store.renamed', 'sto_' || 2 + n, 'org_' || 2 + n % 4000, 'usr_2', '{}' FROM generate_series(1, 4000) n;
INSERT INTO audit_log (event, subject, organization_id, actor, metadata)
SELECT CASE WHEN n % 20000 = 0 THEN 'agent.write' ELSE 'commerce.webhook.orders/create' END,
    'sto_1', 'org_1', 'platform', '{}' FROM generate_series(1, 60000) n;
INSERT INTO agent_operations (store_id, operation_id, user_id, client_id, tool, subject, digest,
    state, created_at, finished_at)
SELECT 'sto_1', 'op_' || n, 'usr_1', 'c', 't', 's', 'd', 'applied', now(), now()
FROM generate_series(1, 10000) n;

INSERT INTO credit_entries (organization_id, seq, key, kind, at, hash)
SELECT 'org_1', n, 'k' || n, 'spend', now(), 'h' FROM generate_series(1, 20000) n;
INSERT INTO credit_postings (organization_id, seq, n, debit, credit, amount)
SELECT 'org_1', n, 0, 'lot:' || n, 'usage', 1 FROM generate_series(1, 20000) n;
INSERT INTO payment_events (event_id, type, object_id, livemode, created_at, links, organization_id,
    state, received_at)
SELECT 'evt_' || n, 'invoice.paid', 'in_' || n, false, now(), ARRAY['in_' || n],
    'org_' || n % 300, CASE WHEN n % 10000 = 0 THEN 'failed' ELSE 'applied' END,
    now() - n * interval '1 second' FROM generate_series(1, 30000) n;
INSERT INTO affiliate_codes (id, user_id, code, created_at)
SELECT 'afc_' || n, 'usr_' || n % 300 + 1, 'CODE' || n, now() FROM generate_series(1, 6000) n;
INSERT INTO affiliate_redemptions (id, organization_id, user_id, code_id, affiliate_id, credits,
    redeemed_at)
SELECT 'afr_' || n, 'o' || n, 'u' || n, 'afc_' || n % 6000, 'usr_1', 1, now()
FROM generate_series(1, 20000) n;

-- No trigger keeps anything of these, and foreign keys are looked up a row at a time.
SET session_replication_role = replica;
INSERT INTO listings (title, anonymous, included_assets, excluded_assets, self_reported,
    auto_approve_access, financing_offered, id, organization_id, slug, status, created_by, created_at,
    seller_active_at)
SELECT 'L', false, '[]', '[]', '{}', false, false, 'lst_' || lpad(n::text, 6, '0'),
    'org_' || 2 + n % 298, 's' || n, CASE WHEN n <= 3 THEN 'ACTIVE' ELSE 'DRAFT' END, 'usr_1', now(),
    now() FROM generate_series(1, 20000) n;
UPDATE listings SET organization_id = 'org_1', store_id = 'sto_1' WHERE id < 'lst_000004';
INSERT INTO listing_verifications (listing_id, state, generation, shop_domain, keeps_badge, provider)
SELECT id, 'verified', 1, id || '.example', false, 'commerce' FROM listings;
INSERT INTO revenue_snapshots (listing_id, window_end, window_start, source, shop_domain, definition,
    shop_currency, verified, figures, orders, skipped, flags)
SELECT id, now() - n * interval '1 hour', now(), 'commerce', id || '.example', 'rv2', 'EUR', true,
    '{}', 1, '{}', CASE WHEN id = 'lst_000002' THEN '["refund_rate"]' ELSE '[]' END::jsonb
FROM listings, generate_series(1, 2) n;
INSERT INTO revenue_sources (listing_id, organization_id, provider, shop_domain, client_id,
    connected_by, connected_at)
SELECT id, organization_id, 'commerce', id || '.example', 'c', 'usr_1', now() FROM listings;
SET session_replication_role = DEFAULT;

INSERT INTO market_entries (listing_id, words, status, category, country, currency, price, financing, revenue_until,
    revenue_currency, revenue_low, revenue_high, verified_until)
SELECT 'lst_' || lpad(n::text, 6, '0'),
    to_tsvector('simple', 'shop ' || n || CASE WHEN n % 5000 = 7 THEN ' rare' ELSE '' END), 'ACTIVE', 'c' || n % 9, 'DE', 'USD',
    n * 100, false, '2100-01-01', shown.currency, shown.revenue, shown.revenue, CASE WHEN n <= 3 THEN timestamptz '2100-01-01' END
FROM generate_series(1, 20000) n LEFT JOIN LATERAL (SELECT 'USD', n::bigint) AS shown(currency, revenue) ON n <= 4000;
INSERT INTO listing_watchers SELECT 'lst_' || lpad((n * 9)::text, 6, '0'), 'usr_' || n % 200, now()
FROM generate_series(1, 2000) n;

INSERT INTO oauth_clients (id, name, redirect_uris, auth_method, created_at, used_at)
SELECT 'cli_' || n, 'Agent', '{}', 'none', now(), now() FROM generate_series(1, 2000) n;
INSERT INTO oauth_grants (id, user_id, client_id, client_name, redirect_uri, organization_id,
    store_id, resource, scopes, created_at)
SELECT 'gra_' || n, 'usr_' || 1 + n % 300, 'cli_' || 1 + n % 2000, 'Agent', 'https://a.example', 'org_1',
    'sto_1', 'https://r.example', '{}', now() FROM generate_series(1, 20000) n;
INSERT INTO oauth_tokens (token_hash, grant_id, kind, scopes, expires_at)
SELECT sha256(n::text::bytea), 'gra_' || n, 'access', '{}', now() + interval '1 day'
FROM generate_series(1, 20000) n;
INSERT INTO oauth_codes (code_hash, grant_id, code_challenge, expires_at)
SELECT sha256(n::text::bytea), 'gra_' || n, 'c', now() + interval '1 day'
FROM generate_series(1, 20000) n;
INSERT INTO sessions (token_hash, user_id, created_at, expires_at)
SELECT sha256(n::text::bytea), 'usr_' || 1 + n % 300, now(), now() + interval '1 day'
FROM generate_series(1, 20000) n;

INSERT INTO actors (kind, key, slot, version)
SELECT 'store', 'sto_' || n, n % 1024, 1 FROM generate_series(1, 20000) n;
INSERT INTO actor_journal (kind, key, version, message_id, message, epoch)
SELECT 'store', 'sto_' || n, 1, 'm' || n, 'N', 1 FROM generate_series(1, 20000) n;
INSERT INTO cron_executions (id, job, scheduled_at, trigger, started_at, status)
SELECT 'run_' || n, 'sweep', now() - n * interval '1 hour', 'schedule', now(), 'succeeded'
FROM generate_series(1, 20000) n;
INSERT INTO operations (id, organization_id, user_id, kind, subject, state, wanted, created_at,
    finished_at)
SELECT 'operation_' || n, 'org_' || 1 + n % 300, 'usr_1', 'refund', 'pi_' || n, 'done', '{}', now(), now()
FROM generate_series(1, 20000) n;
INSERT INTO finished_calls (key, kind, actor_key, name, lane, attempts, created_at)
SELECT 'f' || n, 'store', 's', 'N', 'short', 0, now() FROM generate_series(1, 60000) n;
INSERT INTO outbox (key, slot, kind, actor_key, name, payload, lane)
SELECT 'c' || n, 512 + n % 512, 'store', 's', 'N', '{}', 'short' FROM generate_series(1, 20000) n;
INSERT INTO outbox (key, slot, kind, actor_key, name, payload)
SELECT 'o' || n, 512 + n % 512, 'store', 's', 'N', '{}' FROM generate_series(1, 60000) n;
INSERT INTO dead_letters (id, key, slot, kind, actor_key, name, payload, attempts, error, status,
    created_at, settled_at)
SELECT 'dl_' || lpad(n::text, 8, '0'), 'k' || n, n % 1024, 'store', 's', 'N', '{}', 4, 'e',
    CASE WHEN n < 3 THEN 'dead' ELSE 'replayed' END, now(), now() FROM generate_series(1, 60000) n;
INSERT INTO files
SELECT 'file_' || n, 'org_' || 1 + n % 300, 'sto_' || 1 + n % 300, 'store_export', 'f', 'application/json',
    encode(sha256(n::text::bytea), 'hex'), 1, 'usr_1', now(), now() + (n - 20) * interval '1 hour'
FROM generate_series(1, 20000) n;

INSERT INTO compliance_requests (id, topic, shop_domain, delivery_id, body_digest, stores, shop_keys,
    received_at, pending_steps, completed_at, handled_at)
SELECT 'request_' || lpad(n::text, 6, '0'), 'customers/redact', 's' || n % 300 || '.example', 'd' || n,
    'b' || n, ARRAY['sto_' || n % 300], ARRAY['sto_' || n % 300], now() - interval '40 days', '{}',
    now(), CASE WHEN n > 20 THEN now() END
FROM generate_series(1, 20000) n;
INSERT INTO compliance_receipts (request_id, store_id, leg, rows_before, rows_after, at)
SELECT id, stores[1], 'orders', 1, 0, now() FROM compliance_requests;
INSERT INTO customer_redactions (request_id, store_id, subject_key, email_hash)
SELECT id, stores[1], 'subject', 's1:1' FROM compliance_requests;

INSERT INTO storefronts (domain, state, source, discovered_at, platform, country, category, velocity,
    scanned_at, next_scan_at)
SELECT 'd' || lpad(n::text, 6, '0') || '.example', 'active', 'competitor', now() - n * interval '1 minute',
    CASE WHEN n = 15000 THEN 'rare' ELSE 'common' END, CASE WHEN n = 15000 THEN 'MT' ELSE 'DE' END,
    CASE WHEN n = 15000 THEN 'rare' ELSE 'common' END, n % 100, now(), now() + interval '1 day'
FROM generate_series(1, 20000) n;
INSERT INTO storefront_scans (id, domain, mode, is_kept, was_restored, source, state, asked_at, ended_at)
SELECT 'scan_' || n, 'd' || lpad((n % 5000)::text, 6, '0') || '.example', 'full', true, false, 'operator', 'done',
    now(), now() FROM generate_series(1, 20000) n;
INSERT INTO intelligence_suppressions (domain_hash, suppressed_at, reason, source)
SELECT sha256(n::text::bytea), now(), 'asked', 'owner' FROM generate_series(1, 20000) n;
INSERT INTO storefront_snapshots (domain, taken_at, scan_id, product_count, variant_count, changed)
SELECT 'd' || lpad((1 + n % 4)::text, 6, '0') || '.example', now() - n * interval '1 hour', 'scan_' || n, 1, 1, 1
FROM generate_series(1, 20000) n;
INSERT INTO storefront_products (domain, product_id, title, handle, vendor, product_type, first_seen_at, changed_at)
SELECT 'd' || lpad((1 + n % 4)::text, 6, '0') || '.example', n, 'Robe', 'robe', 'House', 'Dress', now(), now()
FROM generate_series(1, 20000) n;
INSERT INTO storefront_variants (domain, variant_id, product_id, title, sku, price, changed_at)
SELECT domain, product_id, product_id, 'S', 'K', 1, now() FROM storefront_products;
INSERT INTO storefront_changes (domain, at, variant_id, kind, product_id)
SELECT domain, now() - product_id / 4000 * interval '1 day', product_id, 'price', product_id FROM storefront_products;
INSERT INTO calibrating_listings (listing_id, domain, agreed_by, agreed_at)
SELECT id, id || '.example', 'usr_1', now() FROM listings;
INSERT INTO calibrations (fitted_at, factor, spread, shops, median_error)
SELECT now() - n * interval '1 hour', 1, 1, 10, 0.1 FROM generate_series(1, 9000) n;
INSERT INTO competitors (store_id, domain, added_by, added_at)
SELECT 'sto_' || 1 + n % 5000, 'd' || lpad(n::text, 6, '0') || '.example', 'usr_1', now()
FROM generate_series(1, 20000) n;
INSERT INTO competitors (store_id, domain, added_by, added_at)
SELECT 'sto_1', 'e' || n || '.example', 'usr_1', now() - n * interval '1 minute' FROM generate_series(1, 5000) n;
