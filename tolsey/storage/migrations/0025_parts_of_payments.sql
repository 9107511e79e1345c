-- A reversal of an old payment must not take what a newer one brought: what expired unspent is nobody's
-- debt, and what became a debt comes back when a dispute is won. So a payment remembers of each of its
-- grants what was taken back, what of that was owed, and what expired. What is known of older payments
-- is read from the ledger: what was taken back is put down to their grants from the first on.
-- compatible-from: 0025 (code before takes a payment back without keeping its parts)
-- locks: payment_facts, for a moment; then the payments of 100 organizations at a time, a million in minutes
-- transaction: none
ALTER TABLE payment_facts ADD COLUMN parts jsonb NOT NULL DEFAULT '[]';

-- in batches
WITH organizations AS (
    SELECT DISTINCT organization_id FROM payment_facts WHERE organization_id > $1
    ORDER BY organization_id LIMIT 100
), granted AS (
    SELECT l.organization_id, l.reference, l.id, l.amount, l.granted_at, l.expires_at,
        coalesce(sum(l.amount) OVER (
            PARTITION BY l.organization_id, l.reference ORDER BY l.granted_at, l.id
            ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING), 0)::bigint AS before,
        coalesce(x.amount, 0)::bigint AS expired
    FROM credit_lots l
    LEFT JOIN (
        SELECT organization_id, credit, sum(amount) AS amount FROM credit_postings
        WHERE organization_id IN (SELECT organization_id FROM organizations) AND debit = 'expired'
        GROUP BY organization_id, credit
    ) x ON x.organization_id = l.organization_id AND x.credit = 'lot:' || l.id
    WHERE l.organization_id IN (SELECT organization_id FROM organizations)
        AND l.reference IS NOT NULL AND l.id NOT LIKE 'restored:%'
), owed AS (
    SELECT e.organization_id, e.reference, sum(p.amount)::bigint AS owed
    FROM credit_entries e
    JOIN credit_postings p ON p.organization_id = e.organization_id AND p.seq = e.seq
    WHERE e.organization_id IN (SELECT organization_id FROM organizations)
        AND p.credit = 'debt' AND p.debit IN ('refunded', 'clawback')
    GROUP BY e.organization_id, e.reference
), known AS (
    SELECT g.*, f.refund_removed + f.dispute_removed AS removed, coalesce(o.owed, 0) AS owed,
        greatest(0, least(g.amount, f.refund_removed + f.dispute_removed - g.before)) AS share
    FROM granted g
    JOIN payment_facts f ON f.organization_id = g.organization_id AND f.payment_ref = g.reference
    LEFT JOIN owed o ON o.organization_id = g.organization_id AND o.reference = g.reference
), told AS (
    SELECT organization_id, reference, jsonb_agg(jsonb_build_array(
        id, amount, granted_at, expires_at, 0, share,
        CASE WHEN removed = 0 THEN 0 ELSE least(share, floor(owed::numeric * share / removed)) END,
        expired) ORDER BY granted_at, id) AS parts
    FROM known GROUP BY organization_id, reference
), written AS (
    UPDATE payment_facts f SET parts = t.parts FROM told t
    WHERE f.organization_id = t.organization_id AND f.payment_ref = t.reference
)
SELECT max(organization_id) FROM organizations;
