-- Who wants the mails of a topic once a day, and in which day's mail each of them is told. The release before writes
-- such mails at once, as it does to everybody.
-- compatible-from: 0036
-- locks: outbound_mail, for a moment
CREATE TABLE daily_mails (
    recipient text NOT NULL,
    topic     text NOT NULL,
    since     timestamptz NOT NULL,
    PRIMARY KEY (recipient, topic)
);
ALTER TABLE outbound_mail ADD COLUMN digest_on date;
