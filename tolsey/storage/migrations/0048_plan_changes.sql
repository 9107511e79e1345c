-- What waits for the end of a period and makes way for another change is kept by the operation that makes the
-- change, and put back by a call of its organization. What processes of the release before had set aside and
-- could not put back is written down as lost, for a person to look at: they go on trying as long as they
-- live. Its columns are theirs, and go with a later release.
-- compatible-from: 0036
-- locks: nothing
INSERT INTO audit_log (event, subject, organization_id, actor, metadata)
SELECT 'plan.change_lost', coalesce(subscription_id, ''), organization_id, 'platform',
    jsonb_build_object('plan', aside_plan, 'cadence', aside_cadence)
FROM subscriptions WHERE aside_until < now();
