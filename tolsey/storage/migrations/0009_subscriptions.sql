-- What organizations pay for: one row each, a join of what the processor said in whatever order, so
-- that the plan in effect follows from what is paid. Sponsors pay without being granted anything.
CREATE TABLE subscriptions (
    organization_id      text PRIMARY KEY,
    customer_id          text,
    subscription_id      text,
    item_id              text,
    price_id             text,
    status               text,
    plan                 text NOT NULL DEFAULT 'free',
    cadence              text CHECK (cadence IN ('monthly', 'yearly')),
    subscribed_plan      text,
    subscribed_cadence   text,
    period_start         timestamptz,
    period_end           timestamptz,
    cancel_at_period_end boolean NOT NULL DEFAULT false,
    schedule_id          text,
    next_schedule_id     text,
    next_plan            text,
    next_cadence         text,
    seen_at              timestamptz,
    paid_plan            text,
    paid_cadence         text,
    paid_from            timestamptz,
    paid_until           timestamptz,
    paid_at              timestamptz,
    paid_invoice_id      text,
    dunning_since        timestamptz,
    dunning_at           timestamptz,
    dunning_invoice_id   text,
    dunning_url          text,
    refused_changes      integer NOT NULL DEFAULT 0 CHECK (refused_changes >= 0)
);
CREATE INDEX subscriptions_subscription ON subscriptions (subscription_id);
CREATE INDEX subscriptions_paid_until ON subscriptions (paid_until) WHERE cadence = 'yearly';

CREATE TABLE sponsorships (
    payment_ref     text PRIMARY KEY,
    organization_id text,
    paid_cents      bigint NOT NULL DEFAULT 0 CHECK (paid_cents >= 0),
    refunded_cents  bigint NOT NULL DEFAULT 0 CHECK (refunded_cents >= 0),
    currency        text NOT NULL,
    event_id        text NOT NULL,
    created_at      timestamptz NOT NULL
);
CREATE INDEX sponsorships_organization ON sponsorships (organization_id);

-- An event whose application fails is left alone for a while, and the others go on; who applies one
-- moves its time on first, so that several processes never work at the same one.
ALTER TABLE payment_events
    ADD COLUMN attempts integer NOT NULL DEFAULT 0,
    ADD COLUMN due_at timestamptz NOT NULL DEFAULT now();
DROP INDEX payment_events_waiting;
CREATE INDEX payment_events_waiting ON payment_events (due_at, received_at) WHERE state = 'new';
