-- In which language somebody reads, so that mails are written in it, and until when they have seen what wants them.
-- compatible-from: 0036
-- locks: users, for a moment
ALTER TABLE users ADD COLUMN language text, ADD COLUMN inbox_seen_at timestamptz;
