-- Nobody is put into an organization unasked: who is wanted there gets an invitation by mail, and joins by it.
-- Its token is kept as a hash, works once and for 7 days, and ends with what it stands on: the organization,
-- and the right of whoever invited. A member is removed, demoted or banned in many places, so the tables
-- themselves see to that, and whatever ends an invitation leaves its audit row.
-- compatible-from: 0036
-- locks: members and users, for a moment, to add triggers
CREATE TABLE invitations (
    id              text PRIMARY KEY,
    token_hash      bytea NOT NULL UNIQUE CHECK (octet_length(token_hash) = 32),
    organization_id text NOT NULL REFERENCES organizations (id) ON DELETE CASCADE,
    email           text NOT NULL CHECK (email = lower(email)),
    role            text NOT NULL CHECK (role IN ('owner', 'admin', 'member')),
    invited_by      text NOT NULL REFERENCES users (id) ON DELETE CASCADE,
    created_at      timestamptz NOT NULL,
    expires_at      timestamptz NOT NULL,
    ended_at        timestamptz,
    why             text CHECK (why IN ('accepted', 'withdrawn', 'replaced', 'inviter')),
    ended_by        text,
    CHECK ((ended_at IS NULL) = (why IS NULL))
);
-- One at a time for each address: a second one takes the first one's place.
CREATE UNIQUE INDEX invitations_open ON invitations (organization_id, email) WHERE ended_at IS NULL;
CREATE INDEX invitations_of_organization ON invitations (organization_id, id DESC)
    WHERE ended_at IS NULL;
CREATE INDEX invitations_invited_by ON invitations (invited_by) WHERE ended_at IS NULL;
CREATE INDEX invitations_expires_at ON invitations (expires_at);

CREATE FUNCTION note_invitation_ended() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO audit_log (event, subject, organization_id, actor, metadata)
    VALUES ('organization.invitation_ended', NEW.id, NEW.organization_id,
        coalesce(NEW.ended_by, 'system'), jsonb_build_object('why', NEW.why));
    RETURN NULL;
END $$;
CREATE TRIGGER invitations_ended AFTER UPDATE OF ended_at ON invitations FOR EACH ROW
WHEN (OLD.ended_at IS NULL AND NEW.ended_at IS NOT NULL) EXECUTE FUNCTION note_invitation_ended();

CREATE FUNCTION end_invitations_of_member() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    UPDATE invitations SET ended_at = now(), why = 'inviter'
    WHERE invited_by = OLD.user_id AND organization_id = OLD.organization_id AND ended_at IS NULL
        AND (TG_OP = 'DELETE' OR NEW.role = 'member' OR (role = 'owner' AND NEW.role <> 'owner'));
    RETURN NULL;
END $$;
CREATE TRIGGER members_end_invitations AFTER DELETE OR UPDATE OF role ON members
FOR EACH ROW EXECUTE FUNCTION end_invitations_of_member();

CREATE FUNCTION end_invitations_of_user() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    UPDATE invitations SET ended_at = now(), why = 'inviter'
    WHERE invited_by = NEW.id AND ended_at IS NULL;
    RETURN NULL;
END $$;
CREATE TRIGGER users_end_invitations AFTER UPDATE OF banned, deletion_requested_at ON users FOR EACH ROW
WHEN (NEW.banned OR NEW.deletion_requested_at IS NOT NULL)
EXECUTE FUNCTION end_invitations_of_user();
