-- A dry run answers an operation's id before anything is written under it; get_operation finds the
-- plan by it, in the audit row that the dry run left.
CREATE INDEX audit_log_plan ON audit_log ((metadata->>'operationId'), id)
    WHERE event = 'agent.write.planned';
