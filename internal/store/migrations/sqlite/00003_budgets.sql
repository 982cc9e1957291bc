-- +goose Up

PRAGMA user_version = 3;

-- +goose Down

PRAGMA user_version = 2;
