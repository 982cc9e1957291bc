-- +goose Up

-- Every line of the audit log names the hash of the one before it and has a hash
-- of its own, over that and all its fields. Lines from before have none; a line
-- that is written right after this migration answers for all of them.
ALTER TABLE audit ADD COLUMN prev TEXT NOT NULL DEFAULT '';
ALTER TABLE audit ADD COLUMN hash TEXT NOT NULL DEFAULT '';

-- +goose StatementBegin
CREATE TRIGGER audit_no_update BEFORE UPDATE ON audit BEGIN
    SELECT RAISE(ABORT, 'the audit log is only ever appended to');
END;
-- +goose StatementEnd

-- +goose StatementBegin
CREATE TRIGGER audit_no_delete BEFORE DELETE ON audit BEGIN
    SELECT RAISE(ABORT, 'the audit log is only ever appended to');
END;
-- +goose StatementEnd

-- REPLACE removes a row without asking the trigger above.
-- +goose StatementBegin
CREATE TRIGGER audit_at_the_end BEFORE INSERT ON audit
WHEN NEW.hash = '' OR NEW.id <= (SELECT max(id) FROM audit) BEGIN
    SELECT RAISE(ABORT, 'the audit log is only ever appended to');
END;
-- +goose StatementEnd

PRAGMA user_version = 2;

-- +goose Down

DROP TRIGGER audit_no_update;
DROP TRIGGER audit_no_delete;
DROP TRIGGER audit_at_the_end;
ALTER TABLE audit DROP COLUMN hash;
ALTER TABLE audit DROP COLUMN prev;

PRAGMA user_version = 1;
