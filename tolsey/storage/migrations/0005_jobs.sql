-- Every run of a scheduled job, once for each due time: rules/service#scheduled-jobs.
CREATE TABLE cron_executions (
    id           text PRIMARY KEY,
    job          text NOT NULL,
    scheduled_at timestamptz NOT NULL,
    trigger      text NOT NULL,
    started_at   timestamptz NOT NULL,
    finished_at  timestamptz,
    status       text NOT NULL,
    outcome      jsonb,
    error        text,
    UNIQUE (job, scheduled_at)
);
