-- +goose Up

-- What attempts took, summed by the hour, so that shares and limits are counted without reading every attempt, and so that what was
-- spent stays spent when its task is deleted.
CREATE TABLE work_hours (
    project     TEXT    NOT NULL,
    hour        BIGINT  NOT NULL, -- since 1970
    tokens      BIGINT  NOT NULL,
    cost        BIGINT  NOT NULL, -- billionths of a dollar
    attempts    BIGINT  NOT NULL,
    completed   BIGINT  NOT NULL,
    PRIMARY KEY (project, hour)
) WITHOUT ROWID;

CREATE INDEX work_hours_by_time ON work_hours (hour);

INSERT INTO work_hours (project, hour, tokens, cost, attempts, completed)
    SELECT project, at / 3600000000, SUM(tokens), SUM(cost), count(*), SUM(CASE WHEN outcome = 'completed' THEN 1 ELSE 0 END) FROM task_results GROUP BY 1, 2;

DROP INDEX task_results_by_time;
CREATE INDEX task_results_by_project ON task_results (project);
-- Lists of all tasks, whatever their state.
CREATE INDEX tasks_in_order ON tasks (priority, created_at, id);
CREATE INDEX tasks_of_project_in_order ON tasks (project, priority, created_at, id);

PRAGMA user_version = 24;

-- +goose Down

DROP INDEX tasks_of_project_in_order;
DROP INDEX tasks_in_order;
DROP INDEX task_results_by_project;
CREATE INDEX task_results_by_time ON task_results (at, project, outcome, tokens);
DROP TABLE work_hours;

PRAGMA user_version = 23;
