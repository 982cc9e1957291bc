-- +goose Up

-- How runs ended: what a list of sessions shows of each, without reading their journals.
-- One entry a run, so a turn pays nothing for it.
CREATE INDEX events_ends ON events (thread_id, seq) WHERE kind = 'run_ended';

PRAGMA user_version = 6;

-- +goose Down

DROP INDEX events_ends;

PRAGMA user_version = 5;
