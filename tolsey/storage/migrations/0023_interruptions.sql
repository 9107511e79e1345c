-- A try that fails is told from one that a process took with it when it ended: only the first is an
-- attempt. Versions before this one leave the column alone.
-- compatible-from: 0022
-- locks: outbox, for a moment; then the runs that are under way, one row each
-- transaction: none
ALTER TABLE outbox ADD COLUMN interruptions integer NOT NULL DEFAULT 0;

-- A run whose work was given up before that was told to its job would go on for ever, and the job could
-- not be asked again. The row of a run's work leaves the outbox in the commit that ends the run.
UPDATE cron_executions e SET status = 'failed', finished_at = now(), error = 'it was given up'
WHERE status = 'running' AND NOT EXISTS (SELECT FROM outbox o WHERE o.key = 'run:' || e.id);
