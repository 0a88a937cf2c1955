-- additive
-- What a worker says of itself, as JSON, and an index by which the tasks of each type
-- and queue are counted. None of its columns ever changes.
ALTER TABLE weaver_workers ADD COLUMN announced text COLLATE "C";

CREATE INDEX weaver_tasks_by_lane ON weaver_tasks (namespace, task_type, queue, task_id);
