-- The jobs of each day and month look who of those that pay is due; nine in ten organizations pay nothing, and all
-- of them were read and sorted for each page.
-- compatible-from: 0036
-- transaction: none
-- locks: nothing that keeps others from writing; of a million organizations it takes seconds
CREATE INDEX CONCURRENTLY IF NOT EXISTS organizations_paying
    ON organizations (id) WHERE plan <> 'free';
