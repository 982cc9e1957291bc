-- +goose Up

-- What was told on Discord is told, whichever bot did it: an agent that gets a bot of its own,
-- or loses it, goes on where the other one stood.
INSERT INTO readers (reader, thread_id, seq)
    SELECT 'discord', thread_id, max(seq) FROM readers WHERE reader LIKE 'discord/%' GROUP BY thread_id;
DELETE FROM readers WHERE reader LIKE 'discord/%';

PRAGMA user_version = 11;

-- +goose Down

INSERT INTO readers (reader, thread_id, seq)
    SELECT 'discord/' || b.bot, r.thread_id, r.seq FROM readers r
    CROSS JOIN (SELECT DISTINCT bot FROM cursors WHERE platform = 'discord') b WHERE r.reader = 'discord';
DELETE FROM readers WHERE reader = 'discord';

PRAGMA user_version = 10;
