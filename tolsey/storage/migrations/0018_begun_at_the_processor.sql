-- What was begun at the payment processor, so that a request which dies on the way is known for what
-- it was. A refund that an operator decided is ended by whoever repeats it, and not judged anew. What
-- waited for the end of a period and made way for another change is put back when that did not come.
ALTER TABLE payment_facts ADD COLUMN refund_asked_at timestamptz;
ALTER TABLE subscriptions
    ADD COLUMN aside_plan text,
    ADD COLUMN aside_cadence text,
    ADD COLUMN aside_price_id text,
    ADD COLUMN aside_until timestamptz;
CREATE INDEX subscriptions_aside ON subscriptions (aside_until) WHERE aside_until IS NOT NULL;
