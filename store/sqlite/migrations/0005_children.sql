-- A task that decomposes waits for its children. An edge to a child has the attempt
-- of the parent that waits, and, when it is done, the state in which the child ended
-- the wait: the child may be retried afterwards.
ALTER TABLE weaver_task_dependencies ADD COLUMN awaited INTEGER NOT NULL DEFAULT 0;
ALTER TABLE weaver_task_dependencies ADD COLUMN ended_state TEXT;

-- How far a child is below a task that is none, and how a task goes on when its
-- children have ended: rerun, complete; NULL while it does not wait for any.
ALTER TABLE weaver_tasks ADD COLUMN depth INTEGER DEFAULT 0;
ALTER TABLE weaver_tasks ADD COLUMN join_kind TEXT;
