-- What a sender sent and a busy actor could not take is kept in the outbox. What came after it from the
-- same sender must not overtake it, and a repeat of it is a repeat: so a row says who sent it.
-- compatible-from: 0027
ALTER TABLE outbox ADD COLUMN sender text;
CREATE INDEX outbox_sender ON outbox (sender, created_at, key) WHERE sender IS NOT NULL;
