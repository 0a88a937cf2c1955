-- A rule of retention dropped its input, its output, its progress, and the values of
-- its steps and signals.
ALTER TABLE weaver_tasks ADD COLUMN values_dropped INTEGER DEFAULT 0;

-- How many edges lead from tasks outside of a job to tasks of it: as long as there
-- are some it stays.
ALTER TABLE weaver_jobs ADD COLUMN outside INTEGER NOT NULL DEFAULT 0;

UPDATE weaver_jobs SET outside = o.edges FROM (
  SELECT d.namespace, n.job_id, count(*) AS edges FROM weaver_task_dependencies d
  CROSS JOIN weaver_tasks n ON n.namespace = d.namespace AND n.task_id = d.depends_on_task_id
  CROSS JOIN weaver_tasks u ON u.namespace = d.namespace AND u.task_id = d.task_id
  WHERE d.awaited > 0 AND d.kind = 'success' AND n.job_id IS NOT NULL AND u.job_id IS NOT n.job_id
  GROUP BY d.namespace, n.job_id) AS o
WHERE weaver_jobs.namespace = o.namespace AND weaver_jobs.job_id = o.job_id;
