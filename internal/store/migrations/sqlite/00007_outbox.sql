-- +goose Up

-- What a channel should show, as one bot says it, and how far the platform has come.
CREATE TABLE lanes (
    platform TEXT   NOT NULL,
    bot      TEXT   NOT NULL,
    channel  TEXT   NOT NULL,
    next_seq BIGINT NOT NULL DEFAULT 1, -- the only source of places in the lane
    PRIMARY KEY (platform, bot, channel)
) WITHOUT ROWID;

CREATE TABLE outbox (
    platform   TEXT   NOT NULL,
    bot        TEXT   NOT NULL,
    channel    TEXT   NOT NULL,
    seq        BIGINT NOT NULL, -- place in the lane
    key        TEXT   NOT NULL,
    thread_id  TEXT   NOT NULL,
    event      BIGINT NOT NULL, -- the newest event that the wish follows from
    part       BIGINT NOT NULL,
    team       TEXT   NOT NULL, -- fails together
    thing      TEXT   NOT NULL,
    target     TEXT   NOT NULL,
    target_key TEXT   NOT NULL,
    nonce      TEXT   NOT NULL,
    final      BIGINT NOT NULL,
    gone       BIGINT NOT NULL,
    want       BIGINT NOT NULL DEFAULT 1,
    have       BIGINT NOT NULL DEFAULT 0,
    message_id TEXT   NOT NULL DEFAULT '',
    tried      BIGINT NOT NULL DEFAULT 0, -- revision of the call with an unknown outcome
    tried_at   BIGINT,
    tried_body TEXT   NOT NULL DEFAULT '',
    state      TEXT   NOT NULL DEFAULT 'planned',
    attempts   BIGINT NOT NULL DEFAULT 0,
    not_before BIGINT,
    why        TEXT   NOT NULL DEFAULT '',
    error      TEXT   NOT NULL DEFAULT '',
    created    BIGINT NOT NULL,
    changed    BIGINT NOT NULL,
    body       TEXT   NOT NULL,
    PRIMARY KEY (platform, bot, channel, key)
);

-- What a lane still has to do, and nothing else.
CREATE INDEX outbox_open ON outbox (platform, bot, channel, seq) WHERE state = 'planned' OR state = 'sending';
CREATE INDEX outbox_nonce ON outbox (nonce);
CREATE INDEX outbox_failed ON outbox (changed) WHERE state = 'failed';

-- Which thread a message of ours belongs to; those of others are found in the events.
CREATE TABLE message_places (
    platform   TEXT   NOT NULL,
    message_id TEXT   NOT NULL,
    thread_id  TEXT   NOT NULL,
    seq        BIGINT NOT NULL,
    part       BIGINT NOT NULL,
    bot        TEXT   NOT NULL,
    channel    TEXT   NOT NULL,
    key        TEXT   NOT NULL,
    PRIMARY KEY (platform, message_id, thread_id)
) WITHOUT ROWID;

CREATE INDEX events_heard ON events (platform, platform_id) WHERE kind = 'received' AND platform_id <> '';

-- Up to which message a channel's history was read.
CREATE TABLE cursors (
    platform   TEXT   NOT NULL,
    bot        TEXT   NOT NULL,
    channel    TEXT   NOT NULL,
    message_id TEXT   NOT NULL,
    at         BIGINT NOT NULL,
    PRIMARY KEY (platform, bot, channel)
) WITHOUT ROWID;

PRAGMA user_version = 7;

-- +goose Down

DROP TABLE cursors;
DROP INDEX events_heard;
DROP TABLE message_places;
DROP TABLE outbox;
DROP TABLE lanes;

PRAGMA user_version = 6;
