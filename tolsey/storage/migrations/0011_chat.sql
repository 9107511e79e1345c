-- Answers of the chat model: who asked for each, and what it came to. What was said is not kept.
-- A row without an end is at work, or its process died: then its hold says what it came to. The
-- claim is the same in every attempt of one request, so that it is answered once.
CREATE TABLE chat_generations (
    id              text PRIMARY KEY,
    organization_id text NOT NULL,
    store_id        text NOT NULL,
    user_id         text NOT NULL,
    claim           text NOT NULL,
    model           text NOT NULL,
    created_at      timestamptz NOT NULL,
    ended_at        timestamptz,
    outcome         text CHECK (outcome IN (
                        'done', 'balance', 'left', 'model_failed', 'stopping', 'unavailable', 'crashed')),
    input_tokens    bigint CHECK (input_tokens >= 0),
    output_tokens   bigint CHECK (output_tokens >= 0),
    estimated       boolean,
    cost            bigint CHECK (cost >= 0),
    charged         bigint CHECK (charged BETWEEN 0 AND cost),
    CHECK ((ended_at IS NULL) = (outcome IS NULL)),
    CHECK ((ended_at IS NULL) = (charged IS NULL))
);
CREATE UNIQUE INDEX chat_generations_claim ON chat_generations (claim);
CREATE INDEX chat_generations_organization ON chat_generations (organization_id, created_at);
CREATE INDEX chat_generations_open ON chat_generations (created_at) WHERE ended_at IS NULL;

-- What is remembered of a store is looked through by the words of a question; a text of any length
-- can be remembered, so only its beginning is indexed.
CREATE INDEX vectors_text ON vectors USING gin (to_tsvector('simple', left(text, 20000)))
    WHERE text IS NOT NULL;
