-- +goose Up

-- What is spent in a corner of a channel (a private thread) is the channel's. The sums are
-- kept by triggers that did not know; they are made anew when a ceiling next needs a sum.
DROP TRIGGER IF EXISTS ledger_count_new;
DROP TRIGGER IF EXISTS ledger_count_change;
DELETE FROM spent;
DELETE FROM counted;

PRAGMA user_version = 10;

-- +goose Down

DROP TRIGGER IF EXISTS ledger_count_new;
DROP TRIGGER IF EXISTS ledger_count_change;
DELETE FROM spent;
DELETE FROM counted;

PRAGMA user_version = 9;
