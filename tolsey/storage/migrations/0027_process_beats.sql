-- After a failover two Redis servers may hold themselves for the master, and a process that beats in one
-- is not seen in the other. So a process also beats here, beside the map of slots: it answers for its
-- actors for a lease from its last beat, and nobody takes its slots while that moves.
-- compatible-from: 0026
-- locks: nothing; the table is new
CREATE TABLE process_beats (
    process   text PRIMARY KEY,
    beat      bigint NOT NULL,
    beaten_at timestamptz NOT NULL DEFAULT now()
);
