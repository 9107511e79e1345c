-- How long an audit row stays was read from its event's name when old rows were let go, by a list that
-- forgot refunds, changes of plans and payout accounts. Who writes a row says it now, in the row. Rows of
-- before, and of processes of before, say nothing: they are still judged by name, and the list is whole.
-- compatible-from: 0025
-- locks: audit_log, for a moment; that its rows keep the rule is read beside the traffic, in half a second
-- transaction: none
ALTER TABLE audit_log ADD COLUMN retention text,
    ADD CONSTRAINT audit_log_retention_check
        CHECK (retention IN ('180_days', '7_years', 'until_erased')) NOT VALID;
ALTER TABLE audit_log VALIDATE CONSTRAINT audit_log_retention_check;

CREATE FUNCTION audit_retention(event text, said text) RETURNS text LANGUAGE sql IMMUTABLE AS $$
    SELECT coalesce(said, CASE
        WHEN event ~ '^commerce\.webhook(\.|$)' THEN 'until_erased'
        WHEN event ~ ('^(purchase|monthly|affiliate|subscription|chargeback|clawback|marketplace|payout|'
            || 'payout_account|bounty|manual|refund|plan|sponsor|admin\.payment_event)(\.|$)') THEN '7_years'
        ELSE '180_days' END)
$$;
