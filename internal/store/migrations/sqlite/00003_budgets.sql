-- +goose Up

-- The kinds of sums that a ceiling has asked for so far. The first one also brings the
-- triggers that keep them (budget_count.go): without budgets nobody pays for any.
CREATE TABLE counted (
    scope       TEXT    NOT NULL, -- guild, channel, agent or person
    unit        TEXT    NOT NULL, -- day or month
    PRIMARY KEY (scope, unit)
) WITHOUT ROWID;

-- What the ledger comes to, for each kind that is counted.
CREATE TABLE spent (
    scope       TEXT    NOT NULL,
    whose       TEXT    NOT NULL,
    period      TEXT    NOT NULL, -- 2026-11-15 or 2026-11
    open        BIGINT  NOT NULL, -- reserved and not settled
    settled     BIGINT  NOT NULL,
    PRIMARY KEY (scope, whose, period)
) WITHOUT ROWID;

-- Where the room was asked at a soft limit; a ceiling that is changed is another one.
CREATE TABLE budget_asked (
    key         TEXT    NOT NULL, -- the ceiling's place in the configuration
    whose       TEXT    NOT NULL,
    period      TEXT    NOT NULL,
    most        BIGINT  NOT NULL,
    at          BIGINT  NOT NULL,
    PRIMARY KEY (key, whose, period, most)
) WITHOUT ROWID;

PRAGMA user_version = 3;

-- +goose Down

DROP TRIGGER IF EXISTS ledger_count_change;
DROP TRIGGER IF EXISTS ledger_count_new;
DROP TABLE budget_asked;
DROP TABLE spent;
DROP TABLE counted;

PRAGMA user_version = 2;
