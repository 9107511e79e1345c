-- A platform that is away for an hour leaves thousands of dead letters with one cause: they are listed, sent again and
-- given up by that cause. Words with a digit in them (ids, amounts, times) differ from letter to letter and do not count.
-- compatible-from: 0036
-- transaction: none
-- locks: nothing that keeps others from writing; of a million rows the index takes seconds
CREATE OR REPLACE FUNCTION dead_letter_fingerprint(kind text, name text, error text) RETURNS text
    LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
    SELECT left(md5(kind || '.' || name || ': ' || regexp_replace(error, '[[:alnum:]_-]*[0-9][[:alnum:]_-]*', '#', 'g')), 16)
$$;
CREATE INDEX CONCURRENTLY IF NOT EXISTS dead_letters_fingerprint
    ON dead_letters (status, dead_letter_fingerprint(kind, name, error), id);
-- Calls that are not done, for operators: the first due first, beside a million messages that wait for tomorrow.
CREATE INDEX CONCURRENTLY IF NOT EXISTS outbox_calls_due ON outbox (due_at, key) WHERE lane IS NOT NULL;
