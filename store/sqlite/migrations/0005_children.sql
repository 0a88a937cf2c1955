-- A task may wait for its children, or for a task that its handler asked for. The
-- edge to such a task has the attempt that began to wait, and, when it is done, the
-- state in which that task ended the wait: it may be retried afterwards.
ALTER TABLE weaver_task_dependencies ADD COLUMN awaited INTEGER NOT NULL DEFAULT 0;
ALTER TABLE weaver_task_dependencies ADD COLUMN ended_state TEXT;

-- How far a child is below a task that is none, and what a task waits for by such
-- edges: rerun, complete, dependency, outside; NULL while it does not.
ALTER TABLE weaver_tasks ADD COLUMN depth INTEGER DEFAULT 0;
ALTER TABLE weaver_tasks ADD COLUMN join_kind TEXT;
