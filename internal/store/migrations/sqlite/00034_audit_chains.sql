-- +goose Up

-- Each thread has a chain of its own in the audit log. All lines so far are the beginning of the chain '', which lines that belong
-- to no commit of a thread go on with.
DROP TRIGGER audit_no_update;
ALTER TABLE audit ADD COLUMN chain TEXT NOT NULL DEFAULT '';
ALTER TABLE audit ADD COLUMN seq INTEGER NOT NULL DEFAULT 0; -- its number in the chain
UPDATE audit SET seq = id;
CREATE UNIQUE INDEX audit_chains ON audit (chain, seq);

-- +goose StatementBegin
CREATE TRIGGER audit_no_update BEFORE UPDATE ON audit BEGIN
    SELECT RAISE(ABORT, 'the audit log is only ever appended to');
END;
-- +goose StatementEnd

-- A seal holds the ends of all chains that have moved since the one before it, and its hash.
CREATE TABLE audit_seals (
    id INTEGER NOT NULL PRIMARY KEY, -- without gaps
    at INTEGER NOT NULL,
    chains INTEGER NOT NULL, -- how many ends it holds
    prev TEXT NOT NULL,
    hash TEXT NOT NULL
);

CREATE TABLE audit_sealed (
    chain TEXT NOT NULL,
    seq INTEGER NOT NULL, -- the last line of the chain
    hash TEXT NOT NULL, -- that line's
    seal INTEGER NOT NULL,
    PRIMARY KEY (chain, seq)
) WITHOUT ROWID;

CREATE INDEX audit_sealed_by_seal ON audit_sealed (seal, chain);

-- +goose StatementBegin
CREATE TRIGGER audit_seals_no_update BEFORE UPDATE ON audit_seals BEGIN
    SELECT RAISE(ABORT, 'the audit log is only ever appended to');
END;
-- +goose StatementEnd

-- +goose StatementBegin
CREATE TRIGGER audit_seals_no_delete BEFORE DELETE ON audit_seals BEGIN
    SELECT RAISE(ABORT, 'the audit log is only ever appended to');
END;
-- +goose StatementEnd

-- +goose StatementBegin
CREATE TRIGGER audit_sealed_no_update BEFORE UPDATE ON audit_sealed BEGIN
    SELECT RAISE(ABORT, 'the audit log is only ever appended to');
END;
-- +goose StatementEnd

-- +goose StatementBegin
CREATE TRIGGER audit_sealed_no_delete BEFORE DELETE ON audit_sealed BEGIN
    SELECT RAISE(ABORT, 'the audit log is only ever appended to');
END;
-- +goose StatementEnd

PRAGMA user_version = 34;

-- +goose Down

-- Hashes cannot be computed here: all lines are as if from before the chain, and a line that is written next answers for them.
DROP TRIGGER audit_no_update;
DROP TABLE audit_sealed;
DROP TABLE audit_seals;
DROP INDEX audit_chains;
ALTER TABLE audit DROP COLUMN seq;
ALTER TABLE audit DROP COLUMN chain;
UPDATE audit SET prev = '', hash = '';
DELETE FROM memos WHERE kind = 'store' AND key = 'audit_sealed';

-- +goose StatementBegin
CREATE TRIGGER audit_no_update BEFORE UPDATE ON audit BEGIN
    SELECT RAISE(ABORT, 'the audit log is only ever appended to');
END;
-- +goose StatementEnd

PRAGMA user_version = 33;
