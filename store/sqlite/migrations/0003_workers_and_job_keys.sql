-- The task types that a worker announces, as a JSON list, and the idempotency
-- keys of jobs.
ALTER TABLE weaver_workers ADD COLUMN types TEXT;

ALTER TABLE weaver_jobs ADD COLUMN idempotency_key TEXT;

CREATE UNIQUE INDEX weaver_jobs_by_idempotency_key ON weaver_jobs (namespace, name, idempotency_key) WHERE idempotency_key IS NOT NULL;
