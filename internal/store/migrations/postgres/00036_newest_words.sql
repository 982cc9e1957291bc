-- +goose Up

-- Words that are everywhere are looked for from the newest on, and no further than needed.
CREATE INDEX search_docs_newest ON search_docs (at DESC, thread, seq DESC);

-- +goose Down

DROP INDEX search_docs_newest;
