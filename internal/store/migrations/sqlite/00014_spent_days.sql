-- +goose Up

-- What the ledger comes to by day, kept by triggers (spent_days.go), so that a page that shows costs
-- reads a row for each day and kind of call and not for each call. The ledger from before is added in
-- parts after this migration; the memo says how far that has come, and is gone when it is done.
CREATE TABLE spent_days (
    day         TEXT    NOT NULL, -- 2026-11-15, of UTC
    channel     TEXT    NOT NULL,
    agent       TEXT    NOT NULL,
    payer       TEXT    NOT NULL,
    model       TEXT    NOT NULL,
    thread_id   TEXT    NOT NULL, -- one of those in the channel
    payer_body  TEXT    NOT NULL, -- principal as JSON, as it was last
    calls       BIGINT  NOT NULL,
    open        BIGINT  NOT NULL, -- reserved and not settled
    settled     BIGINT  NOT NULL,
    tok_in      BIGINT  NOT NULL,
    tok_out     BIGINT  NOT NULL,
    tok_read    BIGINT  NOT NULL,
    tok_write   BIGINT  NOT NULL,
    PRIMARY KEY (day, channel, agent, payer, model)
) WITHOUT ROWID;

-- For sums of a part of a day, and by thread or run. It is only ever added to at its end.
CREATE INDEX ledger_at ON ledger (at);

INSERT INTO memos (kind, key, value, at) VALUES ('store', 'spent_days', '', 0);

PRAGMA user_version = 14;

-- +goose Down

DROP TRIGGER IF EXISTS spent_days_new;
DROP TRIGGER IF EXISTS spent_days_change;
DROP INDEX ledger_at;
DROP TABLE spent_days;
DELETE FROM memos WHERE kind = 'store' AND key = 'spent_days';

PRAGMA user_version = 13;
