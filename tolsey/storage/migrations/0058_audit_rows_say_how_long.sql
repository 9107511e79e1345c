-- What ends an invitation or an API key wrote an audit row that does not say how long it stays, and so did
-- migration 48; rows of before migration 26 do not say it either. All are told once, as the list of migration 26
-- has it, and the tables' own triggers say it from now on: nothing guesses any more.
-- compatible-from: 0036
-- transaction: none
-- locks: audit_log, for a moment; that every row says it is read beside the traffic, in half a second a million
-- Who says nothing keeps its row as long as rows of money stay, as in the code.
ALTER TABLE audit_log ALTER COLUMN retention SET DEFAULT '7_years';

CREATE OR REPLACE FUNCTION note_invitation_ended() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO audit_log (event, subject, organization_id, actor, metadata, retention)
    VALUES ('organization.invitation_ended', NEW.id, NEW.organization_id,
        coalesce(NEW.ended_by, 'system'), jsonb_build_object('why', NEW.why), '180_days');
    RETURN NULL;
END $$;
CREATE OR REPLACE FUNCTION note_api_key_ended() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO audit_log (event, subject, organization_id, actor, metadata, retention)
    VALUES ('api_key.ended', NEW.id, NEW.organization_id, coalesce(NEW.ended_by, 'system'),
        jsonb_build_object('why', NEW.why), '180_days');
    RETURN NULL;
END $$;

-- in batches
WITH part AS MATERIALIZED (
    SELECT id, event, retention FROM audit_log
    WHERE id > coalesce(nullif($1, '')::bigint, -1) ORDER BY id LIMIT 20000
), told AS (
    UPDATE audit_log SET retention = audit_retention(part.event, NULL)
    FROM part WHERE audit_log.id = part.id AND part.retention IS NULL
)
SELECT max(id)::text FROM part;

ALTER TABLE audit_log ADD CONSTRAINT audit_log_says_retention CHECK (retention IS NOT NULL) NOT VALID;
ALTER TABLE audit_log VALIDATE CONSTRAINT audit_log_says_retention;

-- The release before still asks this, and the indexes of what is due are built on it: it only repeats what it
-- is told, so that whoever asks for the column alone is served by the same indexes.
CREATE OR REPLACE FUNCTION audit_retention(event text, said text) RETURNS text LANGUAGE sql IMMUTABLE AS
$$ SELECT said $$;

-- With the constraint there nothing is read for this, and who keeps the old plan of an index forgets it.
ALTER TABLE audit_log ALTER COLUMN retention SET NOT NULL;
ALTER TABLE audit_log DROP CONSTRAINT audit_log_says_retention;
