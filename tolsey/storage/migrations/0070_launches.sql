-- A store is launched by a playbook: the head of its launch, a row for each milestone and each attempt at one, what
-- merchants told about the store and what was made of it, and what people are shown of it. The tick reads only the
-- launches that wait for something.
-- compatible-from: 0036
-- locks: nothing; the tables are new
CREATE TABLE store_launches (
    store_id        text PRIMARY KEY,
    launch_id       text NOT NULL,
    organization_id text NOT NULL,
    playbook        text NOT NULL,
    digest          text NOT NULL,
    begun_by        text,
    begun_at        timestamptz NOT NULL,
    changed_at      timestamptz NOT NULL,
    shop_domain     text,
    reason          text,
    claimed_until   timestamptz,
    draft_hash      text,
    approved_hash   text,
    probed_at       timestamptz,
    unprobed        text NOT NULL DEFAULT '',
    has_work        boolean NOT NULL DEFAULT false,
    is_looking      boolean NOT NULL DEFAULT false
);
CREATE INDEX store_launches_organization ON store_launches (organization_id);
CREATE INDEX store_launches_waiting ON store_launches (store_id) WHERE has_work OR is_looking;

CREATE TABLE launch_milestones (
    store_id    text NOT NULL,
    milestone   text NOT NULL,
    state       text NOT NULL CHECK (state IN ('pending', 'queued', 'running', 'succeeded', 'approved', 'failed',
                                               'blocked', 'skipped')),
    changed_at  timestamptz NOT NULL,
    run         int NOT NULL,
    attempts    int NOT NULL,
    step        int NOT NULL,
    reason      text,
    detail      text,
    scope       text,
    not_before  timestamptz,
    queued_at   timestamptz,
    started_at  timestamptz,
    finished_at timestamptz,
    decided_by  text,
    note        text,
    operations  text NOT NULL DEFAULT '',
    stop        jsonb,
    written     jsonb NOT NULL DEFAULT '{}',
    result      jsonb,
    is_held     boolean NOT NULL DEFAULT false,
    is_hinted   boolean NOT NULL DEFAULT false,
    PRIMARY KEY (store_id, milestone)
);
COMMENT ON COLUMN launch_milestones.written IS 'Which version each thing of the shop had when we wrote it last';

CREATE TABLE launch_attempts (
    store_id   text NOT NULL,
    milestone  text NOT NULL,
    run        int NOT NULL,
    attempt    int NOT NULL,
    started_at timestamptz NOT NULL,
    changed_at timestamptz NOT NULL,
    outcome    text,
    reason     text,
    detail     text,
    PRIMARY KEY (store_id, milestone, run, attempt)
);

CREATE TABLE store_contexts (
    store_id        text NOT NULL,
    organization_id text NOT NULL,
    module          text NOT NULL,
    value           jsonb NOT NULL,
    changed_at      timestamptz NOT NULL,
    PRIMARY KEY (store_id, module)
);
CREATE INDEX store_contexts_organization ON store_contexts (organization_id);

CREATE TABLE platform_activity (
    launch_id       text NOT NULL,
    milestone       text NOT NULL,
    store_id        text NOT NULL,
    organization_id text NOT NULL,
    section         text NOT NULL,
    title           text NOT NULL,
    created_at      timestamptz NOT NULL,
    PRIMARY KEY (launch_id, milestone)
);
CREATE INDEX platform_activity_store ON platform_activity (store_id, created_at);
CREATE INDEX platform_activity_organization ON platform_activity (organization_id);
