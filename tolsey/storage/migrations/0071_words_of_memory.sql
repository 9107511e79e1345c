-- A key such as `brand.voice` is a host to PostgreSQL's reader of texts, `acme.de/returns` an address, and neither
-- was found by one of its words: what is remembered is read with its punctuation as blanks, as questions are.
-- compatible-from: 0036
-- transaction: none
-- locks: none that a writer waits for; of a million facts or messages the indexes take a minute. A process of the
-- release before looks through a store's own rows meanwhile.
CREATE OR REPLACE FUNCTION remembered_words(said text) RETURNS tsvector LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN to_tsvector('simple', translate(said, '.:/@_-+#&=?<>', '             '));

CREATE INDEX CONCURRENTLY IF NOT EXISTS facts_remembered ON facts
    USING gin (remembered_words(name || ' ' || (value #>> '{}')));
CREATE INDEX CONCURRENTLY IF NOT EXISTS messages_remembered ON messages
    USING gin (remembered_words(left(text, 20000)));
DROP INDEX CONCURRENTLY IF EXISTS facts_words;
DROP INDEX CONCURRENTLY IF EXISTS messages_words;
