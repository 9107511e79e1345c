-- What a store's memory holds is written by its actor: facts and messages say who wrote them and when they were
-- corrected; what was deleted keeps its id and nothing else, until it is swept, so that a correction that is late
-- does not bring it back. Embeddings are made of both, and say of which text and by which model.
-- transaction: none
-- compatible-from: 0036
-- locks: facts, messages, vectors, for a moment
ALTER TABLE facts ADD COLUMN IF NOT EXISTS source text NOT NULL DEFAULT 'merchant',
    ADD COLUMN IF NOT EXISTS user_id text, ADD COLUMN IF NOT EXISTS deleted_at timestamptz;
ALTER TABLE messages ADD COLUMN IF NOT EXISTS source text NOT NULL DEFAULT 'merchant',
    ADD COLUMN IF NOT EXISTS user_id text, ADD COLUMN IF NOT EXISTS updated_at timestamptz NOT NULL DEFAULT now(),
    ADD COLUMN IF NOT EXISTS deleted_at timestamptz;
ALTER TABLE vectors ADD COLUMN IF NOT EXISTS model text, ADD COLUMN IF NOT EXISTS digest text;
CREATE INDEX CONCURRENTLY IF NOT EXISTS facts_deleted ON facts (deleted_at) WHERE deleted_at IS NOT NULL;
CREATE INDEX CONCURRENTLY IF NOT EXISTS messages_deleted ON messages (deleted_at) WHERE deleted_at IS NOT NULL;
CREATE INDEX CONCURRENTLY IF NOT EXISTS facts_words ON facts
    USING gin (to_tsvector('simple', name || ' ' || (value #>> '{}')));
CREATE INDEX CONCURRENTLY IF NOT EXISTS messages_words ON messages USING gin (to_tsvector('simple', left(text, 20000)));
