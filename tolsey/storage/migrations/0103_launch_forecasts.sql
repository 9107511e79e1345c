-- How long a step of a launch will take is told from how long it took the stores that were done with it last: their
-- rows are found by the step, without going through those of all launches.
-- compatible-from: 0036
-- transaction: none
-- locks: nothing that keeps others from writing; of a million rows the index takes seconds
CREATE INDEX CONCURRENTLY IF NOT EXISTS launch_milestones_done
    ON launch_milestones (milestone, finished_at DESC) WHERE state IN ('succeeded', 'approved');
