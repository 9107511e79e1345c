-- What a user let an agent do ends with what it stands on: their membership, the store, their own good
-- standing. A store is deleted in a commit of many turns and a user is banned by hand, so the tables
-- themselves see to it, in the transaction that takes it away; and whatever ends a grant leaves its
-- audit row.
ALTER TABLE oauth_grants ADD COLUMN ended_by text;
CREATE INDEX oauth_grants_store_id ON oauth_grants (store_id) WHERE ended_at IS NULL;

CREATE FUNCTION note_agent_ended() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO audit_log (event, subject, organization_id, actor, metadata)
    VALUES ('agent.ended', NEW.id, NEW.organization_id, coalesce(NEW.ended_by, 'system'),
        jsonb_build_object('client', NEW.client_id, 'store', NEW.store_id, 'why', NEW.why));
    RETURN NULL;
END $$;
CREATE TRIGGER oauth_grants_ended AFTER UPDATE OF ended_at ON oauth_grants FOR EACH ROW
WHEN (OLD.ended_at IS NULL AND NEW.ended_at IS NOT NULL) EXECUTE FUNCTION note_agent_ended();

CREATE FUNCTION end_agents_of_member() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    UPDATE oauth_grants SET ended_at = now(), why = 'member'
    WHERE user_id = OLD.user_id AND organization_id = OLD.organization_id AND ended_at IS NULL;
    RETURN NULL;
END $$;
CREATE TRIGGER members_end_agents AFTER DELETE ON members
FOR EACH ROW EXECUTE FUNCTION end_agents_of_member();

CREATE FUNCTION end_agents_of_store() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    UPDATE oauth_grants SET ended_at = now(), why = 'store'
    WHERE store_id = NEW.id AND ended_at IS NULL;
    RETURN NULL;
END $$;
CREATE TRIGGER stores_end_agents AFTER UPDATE OF deleted_at ON stores FOR EACH ROW
WHEN (OLD.deleted_at IS NULL AND NEW.deleted_at IS NOT NULL)
EXECUTE FUNCTION end_agents_of_store();

CREATE FUNCTION end_agents_of_user() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    UPDATE oauth_grants SET ended_at = now(),
        why = CASE WHEN NEW.banned THEN 'ban' ELSE 'deletion' END
    WHERE user_id = NEW.id AND ended_at IS NULL;
    RETURN NULL;
END $$;
CREATE TRIGGER users_end_agents AFTER UPDATE OF banned, deletion_requested_at ON users FOR EACH ROW
WHEN (NEW.banned OR NEW.deletion_requested_at IS NOT NULL)
EXECUTE FUNCTION end_agents_of_user();

-- Those that lost it before slept, and would have woken.
UPDATE oauth_grants g SET ended_at = now(), why = CASE
    WHEN u.banned THEN 'ban'
    WHEN u.deletion_requested_at IS NOT NULL THEN 'deletion'
    WHEN EXISTS (SELECT FROM stores s WHERE s.id = g.store_id AND s.deleted_at IS NULL) THEN 'member'
    ELSE 'store' END
FROM users u
WHERE u.id = g.user_id AND g.ended_at IS NULL AND (
    u.banned OR u.deletion_requested_at IS NOT NULL OR NOT EXISTS (
        SELECT FROM stores s
        JOIN members m ON m.organization_id = s.organization_id AND m.user_id = g.user_id
        WHERE s.id = g.store_id AND s.deleted_at IS NULL));

-- A request that cannot be allowed waits too: its client is told so, at the address given here, once it
-- is known who its user is.
ALTER TABLE oauth_requests ADD COLUMN refusal text;
