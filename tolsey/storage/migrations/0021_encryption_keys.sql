-- A lost or exchanged key must stop the start: what it sealed can never be read again, and signatures
-- would be made under a known name by another key. So the fingerprints of the keys that the data were
-- sealed with are kept beside the data. Of older data only the names are known; the first ring with a
-- key of that name tells its fingerprint.
-- compatible-from: 0020
-- locks: nothing that is written to; a million stores are read once, for a second
CREATE TABLE encryption_keys (
    key_id      text PRIMARY KEY,
    fingerprint bytea,
    known_since timestamptz NOT NULL DEFAULT now()
);

INSERT INTO encryption_keys (key_id) SELECT DISTINCT split_part(sealed_salt, '.', 2) FROM stores
WHERE sealed_salt LIKE 'v1.%';
