-- additive
-- The children of a task, and the tasks that its steps started.
CREATE INDEX weaver_tasks_by_parent ON weaver_tasks (namespace, parent_task_id, task_id) WHERE parent_task_id IS NOT NULL;
