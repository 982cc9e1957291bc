-- +goose Up

ALTER TABLE approvals ADD COLUMN reason TEXT NOT NULL DEFAULT '';
ALTER TABLE approvals ADD COLUMN again TEXT NOT NULL DEFAULT ''; -- what changed since an earlier yes
ALTER TABLE approvals ADD COLUMN payer TEXT NOT NULL DEFAULT '{}'; -- principal as JSON
ALTER TABLE approvals ADD COLUMN who TEXT NOT NULL DEFAULT ''; -- who may answer
ALTER TABLE approvals ADD COLUMN remind BIGINT; -- NULL: people were reminded, or never are

CREATE INDEX approvals_remind ON approvals (remind) WHERE state = 'pending' AND remind IS NOT NULL;

-- What each person said. The approval's own row has what came of it.
CREATE TABLE answers (
    approval_id TEXT    NOT NULL REFERENCES approvals (id) ON DELETE CASCADE,
    principal   TEXT    NOT NULL, -- the principal's key
    principal_body TEXT NOT NULL, -- principal as JSON
    ok          BIGINT  NOT NULL,
    note        TEXT    NOT NULL,
    at          BIGINT  NOT NULL,
    PRIMARY KEY (approval_id, principal)
) WITHOUT ROWID;

PRAGMA user_version = 4;

-- +goose Down

DROP TABLE answers;
DROP INDEX approvals_remind;
ALTER TABLE approvals DROP COLUMN remind;
ALTER TABLE approvals DROP COLUMN who;
ALTER TABLE approvals DROP COLUMN payer;
ALTER TABLE approvals DROP COLUMN again;
ALTER TABLE approvals DROP COLUMN reason;

PRAGMA user_version = 3;
