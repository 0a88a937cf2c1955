-- additive
-- The task for which a blob was last announced: what nothing came to refer to goes when the task is forgotten.
ALTER TABLE weaver_blobs ADD COLUMN task_id bytea;
CREATE INDEX weaver_blobs_of_task ON weaver_blobs (namespace, task_id, blob_id) WHERE state = 'pending';
