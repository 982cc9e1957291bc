-- +goose Up

-- The sums by day, by month: what shows the costs of a month, or of all time, reads a row for each kind of
-- call, however many days there are.
CREATE TABLE spent_months (
    month       TEXT    NOT NULL, -- 2026-11, of UTC
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
    PRIMARY KEY (month, channel, agent, payer, model)
) WITHOUT ROWID;

-- +goose StatementBegin
CREATE TRIGGER spent_months_new AFTER INSERT ON spent_days
BEGIN
    INSERT INTO spent_months (month, channel, agent, payer, model, thread_id, payer_body, calls, open, settled, tok_in, tok_out, tok_read, tok_write)
    VALUES (substr(NEW.day, 1, 7), NEW.channel, NEW.agent, NEW.payer, NEW.model, NEW.thread_id, NEW.payer_body, NEW.calls, NEW.open, NEW.settled,
        NEW.tok_in, NEW.tok_out, NEW.tok_read, NEW.tok_write)
    ON CONFLICT (month, channel, agent, payer, model) DO UPDATE SET thread_id = excluded.thread_id, payer_body = excluded.payer_body,
        calls = calls + excluded.calls, open = open + excluded.open, settled = settled + excluded.settled, tok_in = tok_in + excluded.tok_in,
        tok_out = tok_out + excluded.tok_out, tok_read = tok_read + excluded.tok_read, tok_write = tok_write + excluded.tok_write;
END;
-- +goose StatementEnd

-- +goose StatementBegin
CREATE TRIGGER spent_months_change AFTER UPDATE ON spent_days
BEGIN
    UPDATE spent_months SET calls = calls + NEW.calls - OLD.calls, open = open + NEW.open - OLD.open, settled = settled + NEW.settled - OLD.settled,
        tok_in = tok_in + NEW.tok_in - OLD.tok_in, tok_out = tok_out + NEW.tok_out - OLD.tok_out, tok_read = tok_read + NEW.tok_read - OLD.tok_read,
        tok_write = tok_write + NEW.tok_write - OLD.tok_write, thread_id = NEW.thread_id, payer_body = NEW.payer_body
    WHERE month = substr(NEW.day, 1, 7) AND channel = NEW.channel AND agent = NEW.agent AND payer = NEW.payer AND model = NEW.model;
END;
-- +goose StatementEnd

INSERT INTO spent_months SELECT substr(day, 1, 7), channel, agent, payer, model, max(thread_id), max(payer_body), sum(calls), sum(open), sum(settled),
    sum(tok_in), sum(tok_out), sum(tok_read), sum(tok_write) FROM spent_days GROUP BY 1, 2, 3, 4, 5;

PRAGMA user_version = 15;

-- +goose Down

DROP TRIGGER spent_months_new;
DROP TRIGGER spent_months_change;
DROP TABLE spent_months;

PRAGMA user_version = 14;
