-- A task that runs if one of several others fails starts at the first that does:
-- how many of those are open until then, NULL if there are none or one of them
-- went wrong. No program before this migration wrote such a task.
ALTER TABLE weaver_tasks ADD COLUMN open_if_failed INTEGER;

-- A failure that does not count against its job, and how many a job has.
ALTER TABLE weaver_tasks ADD COLUMN allow_failure INTEGER DEFAULT 0;
ALTER TABLE weaver_jobs ADD COLUMN allowed INTEGER NOT NULL DEFAULT 0;
