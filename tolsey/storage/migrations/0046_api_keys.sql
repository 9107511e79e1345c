-- Programs read the intelligence API by a key of whoever made it, for one organization. Of its value only a
-- hash is kept and what it begins with; it expires, and ends with what it stands on: the membership, the
-- account, the organization. The tables themselves see to that, as they do for agents, and whatever ends a
-- key leaves its audit row.
-- compatible-from: 0036
-- locks: members and users, for a moment, to add triggers
CREATE TABLE api_keys (
    id              text PRIMARY KEY,
    key_hash        bytea NOT NULL UNIQUE CHECK (octet_length(key_hash) = 32),
    prefix          text NOT NULL,
    organization_id text NOT NULL REFERENCES organizations (id) ON DELETE CASCADE,
    user_id         text NOT NULL REFERENCES users (id) ON DELETE CASCADE,
    name            text NOT NULL,
    scopes          text[] NOT NULL CHECK (scopes <> '{}'),
    created_at      timestamptz NOT NULL,
    expires_at      timestamptz NOT NULL,
    used_at         timestamptz,
    ended_at        timestamptz,
    why             text CHECK (why IN ('user', 'password', 'member', 'ban', 'deletion')),
    ended_by        text,
    CHECK ((ended_at IS NULL) = (why IS NULL))
);
CREATE INDEX api_keys_of_user ON api_keys (user_id, id DESC) WHERE ended_at IS NULL;
CREATE INDEX api_keys_expires_at ON api_keys (expires_at);
CREATE INDEX api_keys_ended_at ON api_keys (ended_at) WHERE ended_at IS NOT NULL;
CREATE INDEX api_keys_organization_id ON api_keys (organization_id);

CREATE FUNCTION note_api_key_ended() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO audit_log (event, subject, organization_id, actor, metadata)
    VALUES ('api_key.ended', NEW.id, NEW.organization_id, coalesce(NEW.ended_by, 'system'),
        jsonb_build_object('why', NEW.why));
    RETURN NULL;
END $$;
CREATE TRIGGER api_keys_ended AFTER UPDATE OF ended_at ON api_keys FOR EACH ROW
WHEN (OLD.ended_at IS NULL AND NEW.ended_at IS NOT NULL) EXECUTE FUNCTION note_api_key_ended();

CREATE FUNCTION end_api_keys_of_member() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    UPDATE api_keys SET ended_at = now(), why = 'member'
    WHERE user_id = OLD.user_id AND organization_id = OLD.organization_id AND ended_at IS NULL;
    RETURN NULL;
END $$;
CREATE TRIGGER members_end_api_keys AFTER DELETE ON members
FOR EACH ROW EXECUTE FUNCTION end_api_keys_of_member();

CREATE FUNCTION end_api_keys_of_user() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    UPDATE api_keys SET ended_at = now(), why = CASE WHEN NEW.banned THEN 'ban' ELSE 'deletion' END
    WHERE user_id = NEW.id AND ended_at IS NULL;
    RETURN NULL;
END $$;
CREATE TRIGGER users_end_api_keys AFTER UPDATE OF banned, deletion_requested_at ON users FOR EACH ROW
WHEN (NEW.banned OR NEW.deletion_requested_at IS NOT NULL)
EXECUTE FUNCTION end_api_keys_of_user();
