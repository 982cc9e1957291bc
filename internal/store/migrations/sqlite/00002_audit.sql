-- +goose Up

PRAGMA user_version = 2;

-- +goose Down

PRAGMA user_version = 1;
