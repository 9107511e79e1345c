-- What a sender sent and a busy actor could not take is kept in the outbox. What came after it from the
-- same sender must not overtake it, and a repeat of it is a repeat: so a row says who sent it.
-- compatible-from: 0027
-- locks: outbox, for a moment; the index is built beside the traffic, in a second
-- transaction: none
ALTER TABLE outbox ADD COLUMN sender text;
CREATE INDEX CONCURRENTLY IF NOT EXISTS outbox_sender ON outbox (sender, created_at, key)
    WHERE sender IS NOT NULL;
