-- +goose Up

-- What a schedule is: '' for one that people add, timer and self_activation for those that an agent sets for itself in a
-- room. One with an adapter and a channel has no thread: each time it posts there and opens a thread on the post.
ALTER TABLE schedules ADD COLUMN kind TEXT NOT NULL DEFAULT '';
ALTER TABLE schedules ADD COLUMN adapter TEXT NOT NULL DEFAULT '';
ALTER TABLE schedules ADD COLUMN channel TEXT NOT NULL DEFAULT '';
ALTER TABLE schedules ADD COLUMN agent TEXT NOT NULL DEFAULT '';
-- The owner was told that the budget is spent, and it has not been kept since.
ALTER TABLE schedules ADD COLUMN told BIGINT NOT NULL DEFAULT 0;
CREATE INDEX schedules_by_thread ON schedules (thread_id) WHERE begins IS NOT NULL;

-- Where it was said, for those that open threads.
ALTER TABLE schedule_runs ADD COLUMN thread_id TEXT NOT NULL DEFAULT '';

PRAGMA user_version = 21;

-- +goose Down

ALTER TABLE schedule_runs DROP COLUMN thread_id;
DROP INDEX schedules_by_thread;
ALTER TABLE schedules DROP COLUMN told;
ALTER TABLE schedules DROP COLUMN agent;
ALTER TABLE schedules DROP COLUMN channel;
ALTER TABLE schedules DROP COLUMN adapter;
ALTER TABLE schedules DROP COLUMN kind;

PRAGMA user_version = 20;
