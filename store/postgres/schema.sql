-- What the migrations 0001 to 0016 make.

CREATE TABLE weaver_artifacts (
  attempt_no bigint,
  created_at bigint NOT NULL,
  expires_at bigint,
  collect_at bigint,
  namespace text COLLATE "C" NOT NULL,
  task_id bytea NOT NULL,
  kind text COLLATE "C" NOT NULL,
  artifact_id bytea NOT NULL,
  blob_id bytea NOT NULL,
  step text COLLATE "C",
  name text COLLATE "C",
  content_type text COLLATE "C",
  link text COLLATE "C",
  PRIMARY KEY (namespace, task_id, kind, artifact_id)
);

CREATE INDEX weaver_artifacts_by_blob ON weaver_artifacts USING btree (namespace, blob_id);

CREATE INDEX weaver_artifacts_by_id ON weaver_artifacts USING btree (namespace, artifact_id) WHERE name IS NOT NULL;

CREATE INDEX weaver_artifacts_expiring ON weaver_artifacts USING btree (namespace, collect_at, task_id, artifact_id) WHERE collect_at IS NOT NULL;

CREATE TABLE weaver_attempts (
  attempt_no bigint NOT NULL,
  lease_epoch bigint NOT NULL,
  code_version bigint NOT NULL,
  started_at bigint NOT NULL,
  finished_at bigint NOT NULL,
  namespace text COLLATE "C" NOT NULL,
  task_id bytea NOT NULL,
  lease_id bytea NOT NULL,
  worker text COLLATE "C",
  handler text COLLATE "C",
  outcome_kind text COLLATE "C" NOT NULL,
  outcome_hash text COLLATE "C",
  error_kind text COLLATE "C",
  error_json text COLLATE "C",
  outcome_json text COLLATE "C",
  PRIMARY KEY (namespace, task_id, attempt_no)
);

CREATE TABLE weaver_audit (
  audit_id bigint NOT NULL,
  at bigint NOT NULL,
  namespace text COLLATE "C" NOT NULL,
  actor text COLLATE "C" NOT NULL,
  verb text COLLATE "C" NOT NULL,
  target text COLLATE "C" NOT NULL,
  reason text COLLATE "C" NOT NULL,
  PRIMARY KEY (namespace, audit_id)
);

CREATE INDEX weaver_audit_by_target ON weaver_audit USING btree (namespace, target, audit_id);

CREATE TABLE weaver_blobs (
  size_bytes bigint NOT NULL,
  touched_at bigint NOT NULL,
  namespace text COLLATE "C" NOT NULL,
  blob_id bytea NOT NULL,
  sha256 text COLLATE "C" NOT NULL,
  state text COLLATE "C" NOT NULL,
  task_id bytea,
  PRIMARY KEY (namespace, blob_id)
);

CREATE UNIQUE INDEX weaver_blobs_by_content ON weaver_blobs USING btree (namespace, sha256, size_bytes) WHERE state <> 'deleting'::text;

CREATE INDEX weaver_blobs_of_task ON weaver_blobs USING btree (namespace, task_id, blob_id) WHERE state = 'pending'::text;

CREATE INDEX weaver_blobs_unused ON weaver_blobs USING btree (namespace, touched_at, blob_id) WHERE state <> 'live'::text;

CREATE TABLE weaver_checkpoints (
  attempt_no bigint NOT NULL,
  saved_at bigint NOT NULL,
  namespace text COLLATE "C" NOT NULL,
  task_id bytea NOT NULL,
  name text COLLATE "C" NOT NULL,
  value text COLLATE "C" NOT NULL,
  PRIMARY KEY (namespace, task_id, name)
);

CREATE TABLE weaver_chores (
  epoch bigint,
  namespace text COLLATE "C" NOT NULL,
  kind text COLLATE "C" NOT NULL,
  subject bytea NOT NULL,
  position bytea NOT NULL,
  root bytea,
  actor text COLLATE "C",
  reason text COLLATE "C",
  PRIMARY KEY (namespace, kind, subject)
);

CREATE TABLE weaver_claims (
  check_at bigint NOT NULL,
  namespace text COLLATE "C" NOT NULL,
  lease_id bytea NOT NULL,
  worker_id text COLLATE "C" NOT NULL,
  task_ids bytea NOT NULL,
  PRIMARY KEY (namespace, lease_id)
) WITH (autovacuum_vacuum_scale_factor=0, autovacuum_vacuum_threshold=1000, autovacuum_vacuum_cost_delay=0);

CREATE INDEX weaver_claims_by_check ON weaver_claims USING btree (namespace, check_at, worker_id);

CREATE TABLE weaver_conc_keys (
  held bigint NOT NULL,
  cap bigint NOT NULL,
  namespace text COLLATE "C" NOT NULL,
  key text COLLATE "C" NOT NULL,
  PRIMARY KEY (namespace, key)
) WITH (fillfactor=20, autovacuum_vacuum_scale_factor=0, autovacuum_vacuum_threshold=1000, autovacuum_vacuum_cost_delay=0);

CREATE TABLE weaver_conc_waiters (
  due_at bigint NOT NULL,
  namespace text COLLATE "C" NOT NULL,
  key text COLLATE "C" NOT NULL,
  task_id bytea NOT NULL,
  queue text COLLATE "C" DEFAULT ''::text NOT NULL,
  task_type text COLLATE "C" DEFAULT ''::text NOT NULL,
  lane_group text COLLATE "C" DEFAULT ''::text NOT NULL,
  PRIMARY KEY (namespace, key, due_at, task_id)
) WITH (autovacuum_vacuum_scale_factor=0, autovacuum_vacuum_threshold=5000, autovacuum_vacuum_cost_delay=0);

CREATE INDEX weaver_conc_waiters_by_lane ON weaver_conc_waiters USING btree (namespace, key, queue, task_type, lane_group, due_at, task_id);

CREATE INDEX weaver_conc_waiters_by_task ON weaver_conc_waiters USING btree (namespace, task_id);

CREATE TABLE weaver_decisions (
  attempt_no bigint NOT NULL,
  decided_at bigint NOT NULL,
  next_ready_at bigint,
  namespace text COLLATE "C" NOT NULL,
  task_id bytea NOT NULL,
  decision_kind text COLLATE "C" NOT NULL,
  child_task_ids text COLLATE "C",
  reason_json text COLLATE "C" NOT NULL,
  PRIMARY KEY (namespace, task_id, attempt_no)
);

CREATE TABLE weaver_drafts (
  first bigint NOT NULL,
  children bigint NOT NULL,
  awaited bigint NOT NULL,
  namespace text COLLATE "C" NOT NULL,
  task_id bytea NOT NULL,
  drafts text COLLATE "C" NOT NULL,
  PRIMARY KEY (namespace, task_id, first)
);

CREATE TABLE weaver_events (
  seq bigint NOT NULL,
  at bigint NOT NULL,
  namespace text COLLATE "C" NOT NULL,
  task_id bytea NOT NULL,
  type text COLLATE "C" NOT NULL,
  body text COLLATE "C" NOT NULL,
  PRIMARY KEY (namespace, task_id, seq)
);

CREATE TABLE weaver_expiries (
  set_at bigint NOT NULL,
  look_at bigint NOT NULL,
  namespace text COLLATE "C" NOT NULL,
  task_id bytea NOT NULL,
  PRIMARY KEY (namespace, task_id)
);

CREATE INDEX weaver_expiries_due ON weaver_expiries USING btree (namespace, look_at, task_id);

CREATE TABLE weaver_feed (
  pos bigint NOT NULL,
  at bigint NOT NULL,
  size bigint DEFAULT 0 NOT NULL,
  attempt_no bigint,
  epoch bigint,
  seq bigint,
  namespace text COLLATE "C" NOT NULL,
  kind text COLLATE "C" NOT NULL,
  task_id bytea,
  job_id bytea,
  task_type text COLLATE "C",
  queue text COLLATE "C",
  state text COLLATE "C",
  waiting text COLLATE "C",
  name text COLLATE "C",
  PRIMARY KEY (namespace, pos)
);

CREATE TABLE weaver_feeds (
  keep bigint NOT NULL,
  pruned bigint NOT NULL,
  namespace text COLLATE "C" NOT NULL,
  PRIMARY KEY (namespace)
);

CREATE TABLE weaver_idempo_ledger (
  namespace text COLLATE "C" NOT NULL,
  idempotency_key text COLLATE "C" NOT NULL,
  request_digest text COLLATE "C" NOT NULL,
  result_digest text COLLATE "C",
  status text COLLATE "C" NOT NULL,
  http_status bigint NOT NULL,
  response_payload_json text COLLATE "C",
  order_id text COLLATE "C",
  trace_id text COLLATE "C",
  unknown bigint NOT NULL,
  first_seen_at bigint NOT NULL,
  last_seen_at bigint NOT NULL,
  expires_at bigint,
  PRIMARY KEY (namespace, idempotency_key)
);

CREATE TABLE weaver_job_bases (
  namespace text COLLATE "C" NOT NULL,
  base text COLLATE "C" NOT NULL,
  job_id bytea NOT NULL,
  PRIMARY KEY (namespace, base, job_id)
);

CREATE TABLE weaver_jobs (
  total bigint NOT NULL,
  unfinished bigint NOT NULL,
  movable bigint NOT NULL,
  failed bigint NOT NULL,
  succeeded bigint NOT NULL,
  allowed bigint DEFAULT 0 NOT NULL,
  attempts_used bigint DEFAULT 0 NOT NULL,
  cost bigint DEFAULT 0 NOT NULL,
  outside bigint DEFAULT 0 NOT NULL,
  deadline_at bigint,
  created_at bigint NOT NULL,
  updated_at bigint NOT NULL,
  finished_at bigint,
  exhausted_at bigint,
  cancel_requested smallint DEFAULT 0 NOT NULL,
  namespace text COLLATE "C" NOT NULL,
  job_id bytea NOT NULL,
  name text COLLATE "C" NOT NULL,
  state text COLLATE "C" NOT NULL,
  budget_json text COLLATE "C" NOT NULL,
  meta text COLLATE "C",
  cancel_by text COLLATE "C",
  cancel_reason text COLLATE "C",
  idempotency_key text COLLATE "C",
  based_on text COLLATE "C",
  PRIMARY KEY (namespace, job_id)
) WITH (fillfactor=50, autovacuum_vacuum_scale_factor=0.02, autovacuum_vacuum_threshold=500);

CREATE UNIQUE INDEX weaver_jobs_by_idempotency_key ON weaver_jobs USING btree (namespace, name, idempotency_key) WHERE idempotency_key IS NOT NULL;

CREATE TABLE weaver_limit_changes (
  namespace text COLLATE "C" NOT NULL,
  revision bigint NOT NULL,
  PRIMARY KEY (namespace)
);

CREATE TABLE weaver_limits (
  namespace text COLLATE "C" NOT NULL,
  name text COLLATE "C" NOT NULL,
  spec text COLLATE "C" NOT NULL,
  revision bigint NOT NULL,
  updated_at bigint NOT NULL,
  actor text COLLATE "C",
  reason text COLLATE "C",
  PRIMARY KEY (namespace, name)
);

CREATE TABLE weaver_logs (
  seq bigint NOT NULL,
  at bigint NOT NULL,
  namespace text COLLATE "C" NOT NULL,
  task_id bytea NOT NULL,
  type text COLLATE "C" NOT NULL,
  body text COLLATE "C" NOT NULL,
  PRIMARY KEY (namespace, task_id, seq)
);

CREATE TABLE weaver_outbox_events (
  priority bigint NOT NULL,
  available_at bigint NOT NULL,
  namespace text COLLATE "C" NOT NULL,
  task_id bytea NOT NULL,
  queue text COLLATE "C" NOT NULL,
  task_type text COLLATE "C" NOT NULL,
  concurrency_key text COLLATE "C",
  sent_until bigint,
  attempts bigint DEFAULT 0,
  last_error text COLLATE "C",
  lane_group text COLLATE "C" DEFAULT ''::text NOT NULL,
  PRIMARY KEY (namespace, task_id)
) WITH (autovacuum_vacuum_scale_factor=0, autovacuum_vacuum_threshold=5000, autovacuum_vacuum_cost_delay=0);

CREATE INDEX weaver_outbox_events_by_key ON weaver_outbox_events USING btree (namespace, concurrency_key, queue, task_type, lane_group, available_at) WHERE concurrency_key IS NOT NULL;

CREATE INDEX weaver_outbox_events_by_lane ON weaver_outbox_events USING btree (namespace, queue, task_type, lane_group, priority, available_at, task_id, concurrency_key);

CREATE TABLE weaver_outbox_orders (
  id bigint NOT NULL,
  namespace text COLLATE "C" NOT NULL,
  idempotency_key text COLLATE "C" NOT NULL,
  profile text COLLATE "C" NOT NULL,
  order_request_json text COLLATE "C" NOT NULL,
  request_digest text COLLATE "C" NOT NULL,
  order_id text COLLATE "C",
  trace_id text COLLATE "C",
  timeout bigint NOT NULL,
  max_age bigint NOT NULL,
  created_at bigint NOT NULL,
  task_id bytea,
  step text COLLATE "C",
  status text COLLATE "C" NOT NULL,
  attempts bigint NOT NULL,
  last_error_code text COLLATE "C",
  last_error_msg text COLLATE "C",
  locked_by text COLLATE "C",
  locked_at bigint,
  lease_until bigint,
  token bigint NOT NULL,
  send_no bigint NOT NULL,
  send_started_at bigint,
  send_ends_at bigint,
  send_open bigint NOT NULL,
  unknown bigint NOT NULL,
  held bigint NOT NULL,
  stale_at bigint,
  next_run_at bigint,
  updated_at bigint NOT NULL,
  expires_at bigint,
  signalled bigint NOT NULL,
  PRIMARY KEY (id)
);

CREATE INDEX weaver_outbox_orders_due ON weaver_outbox_orders USING btree (namespace, status, next_run_at, id);

CREATE INDEX weaver_outbox_orders_held ON weaver_outbox_orders USING btree (namespace, id) WHERE held = 1;

CREATE UNIQUE INDEX weaver_outbox_orders_key ON weaver_outbox_orders USING btree (namespace, idempotency_key);

CREATE INDEX weaver_outbox_orders_open ON weaver_outbox_orders USING btree (namespace, id) WHERE expires_at IS NULL;

CREATE INDEX weaver_outbox_orders_page ON weaver_outbox_orders USING btree (namespace, id);

CREATE INDEX weaver_outbox_orders_settled ON weaver_outbox_orders USING btree (namespace, status, expires_at) WHERE expires_at IS NOT NULL;

CREATE INDEX weaver_outbox_orders_task ON weaver_outbox_orders USING btree (namespace, task_id, id) WHERE task_id IS NOT NULL;

CREATE INDEX weaver_outbox_orders_unknown ON weaver_outbox_orders USING btree (namespace, status) WHERE unknown = 1;

CREATE INDEX weaver_outbox_orders_unsignalled ON weaver_outbox_orders USING btree (namespace, id) WHERE signalled = 0;

CREATE TABLE weaver_paused_queues (
  at bigint NOT NULL,
  namespace text COLLATE "C" NOT NULL,
  queue text COLLATE "C" NOT NULL,
  actor text COLLATE "C" NOT NULL,
  reason text COLLATE "C" NOT NULL,
  PRIMARY KEY (namespace, queue)
);

CREATE TABLE weaver_paused_tasks (
  at bigint NOT NULL,
  due_at bigint,
  namespace text COLLATE "C" NOT NULL,
  task_id bytea NOT NULL,
  actor text COLLATE "C" NOT NULL,
  reason text COLLATE "C" NOT NULL,
  PRIMARY KEY (namespace, task_id)
);

CREATE TABLE weaver_paused_types (
  at bigint NOT NULL,
  namespace text COLLATE "C" NOT NULL,
  task_type text COLLATE "C" NOT NULL,
  actor text COLLATE "C" NOT NULL,
  reason text COLLATE "C" NOT NULL,
  PRIMARY KEY (namespace, task_type)
);

CREATE TABLE weaver_payloads (
  namespace text COLLATE "C" NOT NULL,
  task_id bytea NOT NULL,
  kind text COLLATE "C" NOT NULL,
  data text COLLATE "C" NOT NULL,
  PRIMARY KEY (namespace, task_id, kind)
);

CREATE TABLE weaver_rates (
  namespace text COLLATE "C" NOT NULL,
  name text COLLATE "C" NOT NULL,
  arrival bigint NOT NULL,
  rest_until bigint NOT NULL,
  idle_at bigint NOT NULL,
  PRIMARY KEY (namespace, name)
);

CREATE INDEX weaver_rates_by_idle ON weaver_rates USING btree (namespace, idle_at);

CREATE TABLE weaver_schedule_fires (
  namespace text COLLATE "C" NOT NULL,
  schedule text COLLATE "C" NOT NULL,
  at bigint NOT NULL,
  until_at bigint NOT NULL,
  times bigint NOT NULL,
  kind text COLLATE "C" NOT NULL,
  reason text COLLATE "C",
  actor text COLLATE "C",
  run_task bytea,
  run_job bytea,
  recorded_at bigint NOT NULL,
  PRIMARY KEY (namespace, schedule, at)
);

CREATE TABLE weaver_schedules (
  namespace text COLLATE "C" NOT NULL,
  name text COLLATE "C" NOT NULL,
  revision bigint NOT NULL,
  look_at bigint,
  rule text COLLATE "C" NOT NULL,
  work text COLLATE "C" NOT NULL,
  state text COLLATE "C" NOT NULL,
  created_at bigint NOT NULL,
  updated_at bigint NOT NULL,
  PRIMARY KEY (namespace, name)
);

CREATE INDEX weaver_schedules_by_look ON weaver_schedules USING btree (namespace, look_at, name) WHERE look_at IS NOT NULL;

CREATE TABLE weaver_schema_versions (
  version bigint NOT NULL,
  applied_at bigint NOT NULL,
  name text COLLATE "C" NOT NULL,
  checksum text COLLATE "C" NOT NULL,
  PRIMARY KEY (version)
);

CREATE TABLE weaver_signals (
  seq bigint NOT NULL,
  sent_at bigint NOT NULL,
  namespace text COLLATE "C" NOT NULL,
  task_id bytea NOT NULL,
  name text COLLATE "C" NOT NULL,
  key text COLLATE "C" NOT NULL,
  actor text COLLATE "C" NOT NULL,
  step text COLLATE "C",
  payload text COLLATE "C" NOT NULL,
  PRIMARY KEY (namespace, task_id, seq)
);

CREATE UNIQUE INDEX weaver_signals_by_key ON weaver_signals USING btree (namespace, task_id, name, key);

CREATE INDEX weaver_signals_open ON weaver_signals USING btree (namespace, task_id, name, seq) WHERE step IS NULL;

CREATE TABLE weaver_stats (
  width bigint NOT NULL,
  slot bigint NOT NULL,
  attempts bigint NOT NULL,
  namespace text COLLATE "C" NOT NULL,
  worker text COLLATE "C" NOT NULL,
  task_type text COLLATE "C" NOT NULL,
  queue text COLLATE "C" NOT NULL,
  outcome text COLLATE "C" NOT NULL,
  error_kind text COLLATE "C" NOT NULL,
  run_times bytea NOT NULL,
  wait_times bytea NOT NULL,
  PRIMARY KEY (namespace, width, slot, worker, task_type, queue, outcome, error_kind)
);

CREATE TABLE weaver_steps (
  attempt_no bigint NOT NULL,
  try bigint NOT NULL,
  by_attempt bigint NOT NULL,
  by_try bigint NOT NULL,
  step_index bigint NOT NULL,
  started_at bigint NOT NULL,
  completed_at bigint NOT NULL,
  wake_at bigint,
  children bigint,
  children_left bigint,
  children_stored bigint,
  cost bigint,
  namespace text COLLATE "C" NOT NULL,
  task_id bytea NOT NULL,
  name text COLLATE "C" NOT NULL,
  kind text COLLATE "C" NOT NULL,
  state text COLLATE "C" NOT NULL,
  awaits text COLLATE "C",
  value text COLLATE "C",
  error_json text COLLATE "C",
  redact text COLLATE "C",
  undo smallint DEFAULT 0,
  undo_no bigint DEFAULT 0,
  round bigint DEFAULT 0,
  PRIMARY KEY (namespace, task_id, name, attempt_no, try)
);

CREATE INDEX weaver_steps_waiting ON weaver_steps USING btree (namespace, task_id, awaits, step_index) WHERE state = 'waiting'::text;

CREATE TABLE weaver_store_meta (
  namespace text COLLATE "C" NOT NULL,
  key text COLLATE "C" NOT NULL,
  value text COLLATE "C" NOT NULL,
  PRIMARY KEY (namespace, key)
);

CREATE TABLE weaver_task_dependencies (
  awaited bigint DEFAULT 0 NOT NULL,
  opened_epoch bigint,
  done smallint DEFAULT 0 NOT NULL,
  namespace text COLLATE "C" NOT NULL,
  task_id bytea NOT NULL,
  depends_on_task_id bytea NOT NULL,
  kind text COLLATE "C" NOT NULL,
  step text COLLATE "C",
  ended_state text COLLATE "C",
  ended_kind text COLLATE "C",
  ended_code text COLLATE "C",
  ended_message text COLLATE "C",
  PRIMARY KEY (namespace, task_id, depends_on_task_id)
);

CREATE INDEX weaver_task_dependencies_by_need ON weaver_task_dependencies USING btree (namespace, depends_on_task_id, task_id);

CREATE INDEX weaver_task_dependencies_open ON weaver_task_dependencies USING btree (namespace, task_id) WHERE done = 0;

CREATE TABLE weaver_task_labels (
  namespace text COLLATE "C" NOT NULL,
  key text COLLATE "C" NOT NULL,
  value text COLLATE "C" NOT NULL,
  task_id bytea NOT NULL,
  PRIMARY KEY (namespace, key, value, task_id)
);

CREATE TABLE weaver_tasks (
  priority bigint NOT NULL,
  created_at bigint NOT NULL,
  schema_version bigint,
  max_attempts bigint,
  max_repairs bigint,
  depth bigint DEFAULT 0,
  job_limits bigint DEFAULT 0,
  remaining_deps bigint DEFAULT 0,
  step_count bigint DEFAULT 0,
  crash_count bigint DEFAULT 0,
  quarantine_losses bigint DEFAULT 0,
  internal_count bigint DEFAULT 0,
  repair_count bigint DEFAULT 0,
  wake_seq bigint DEFAULT 0,
  calls bigint DEFAULT 0,
  cost bigint DEFAULT 0,
  idle_attempts bigint DEFAULT 0,
  undo_open bigint DEFAULT 0,
  undo_no bigint DEFAULT 0,
  plain smallint DEFAULT 0,
  needed smallint DEFAULT 0,
  isolated smallint DEFAULT 0,
  has_payloads smallint DEFAULT 0,
  cancel_requested smallint DEFAULT 0,
  allow_failure smallint DEFAULT 0,
  values_dropped smallint DEFAULT 0,
  deadline_at bigint,
  ready_at bigint,
  open_if_failed bigint,
  namespace text COLLATE "C" NOT NULL,
  task_id bytea NOT NULL,
  task_type text COLLATE "C" NOT NULL,
  queue text COLLATE "C" NOT NULL,
  options_json text COLLATE "C",
  input text COLLATE "C",
  job_id bytea,
  parent_task_id bytea,
  rerun_of bytea,
  idempotency_key text COLLATE "C",
  concurrency_key text COLLATE "C",
  lease_epoch bigint DEFAULT 0,
  attempt_no bigint DEFAULT 0,
  attempt_count bigint DEFAULT 0,
  started_version bigint DEFAULT 0,
  updated_at bigint NOT NULL,
  started_at bigint,
  lease_expires_at bigint,
  finished_at bigint,
  state text COLLATE "C" NOT NULL,
  lease_id bytea,
  leased_by text COLLATE "C",
  waiting_reason text COLLATE "C",
  output text COLLATE "C",
  join_kind text COLLATE "C",
  last_error_kind text COLLATE "C",
  last_error_json text COLLATE "C",
  progress text COLLATE "C",
  cancel_kind text COLLATE "C",
  cancel_by text COLLATE "C",
  cancel_reason text COLLATE "C",
  undo text COLLATE "C",
  end_state text COLLATE "C",
  lane_group text COLLATE "C",
  PRIMARY KEY (namespace, task_id)
) WITH (fillfactor=45, autovacuum_vacuum_scale_factor=0.02, autovacuum_vacuum_threshold=10000, autovacuum_analyze_scale_factor=0.05);

CREATE INDEX weaver_tasks_by_end ON weaver_tasks USING btree (namespace, end_state, task_id) WHERE end_state IS NOT NULL;

CREATE UNIQUE INDEX weaver_tasks_by_idempotency_key ON weaver_tasks USING btree (namespace, task_type, idempotency_key) WHERE idempotency_key IS NOT NULL;

CREATE INDEX weaver_tasks_by_job ON weaver_tasks USING btree (namespace, job_id, task_id) WHERE job_id IS NOT NULL;

CREATE INDEX weaver_tasks_by_lane ON weaver_tasks USING btree (namespace, task_type, queue, task_id);

CREATE INDEX weaver_tasks_by_parent ON weaver_tasks USING btree (namespace, parent_task_id, task_id) WHERE parent_task_id IS NOT NULL;

CREATE INDEX weaver_tasks_undoing ON weaver_tasks USING btree (namespace, concurrency_key, task_id) WHERE undo IS NOT NULL AND concurrency_key IS NOT NULL;

CREATE TABLE weaver_timers (
  due_at bigint NOT NULL,
  namespace text COLLATE "C" NOT NULL,
  task_id bytea NOT NULL,
  PRIMARY KEY (namespace, due_at, task_id)
);

CREATE TABLE weaver_types (
  schema_version bigint NOT NULL,
  code_version bigint NOT NULL,
  announced_at bigint NOT NULL,
  namespace text COLLATE "C" NOT NULL,
  task_type text COLLATE "C" NOT NULL,
  digest text COLLATE "C" NOT NULL,
  announced_by text COLLATE "C" NOT NULL,
  body text COLLATE "C" NOT NULL,
  PRIMARY KEY (namespace, task_type)
);

CREATE TABLE weaver_workers (
  ttl bigint NOT NULL,
  last_seen bigint NOT NULL,
  heartbeats_since bigint NOT NULL,
  idle_since bigint,
  namespace text COLLATE "C" NOT NULL,
  worker_id text COLLATE "C" NOT NULL,
  name text COLLATE "C" NOT NULL,
  types text COLLATE "C",
  session_grace bigint DEFAULT 0 NOT NULL,
  lock_host text COLLATE "C" DEFAULT ''::text NOT NULL,
  lock_path text COLLATE "C" DEFAULT ''::text NOT NULL,
  lock_file text COLLATE "C" DEFAULT ''::text NOT NULL,
  announced text COLLATE "C",
  PRIMARY KEY (namespace, worker_id)
) WITH (fillfactor=20, autovacuum_vacuum_scale_factor=0, autovacuum_vacuum_threshold=1000, autovacuum_vacuum_cost_delay=0);

CREATE SEQUENCE weaver_feed_pos;

CREATE SEQUENCE weaver_outbox_orders_id_seq;

CREATE OR REPLACE FUNCTION json_extract(doc text, path text)
 RETURNS bigint
 LANGUAGE sql
 IMMUTABLE PARALLEL SAFE STRICT
AS $function$
  SELECT (doc::jsonb #>> string_to_array(substr(path, 3), '.'))::bigint $function$
;

CREATE OR REPLACE FUNCTION json_remove(doc text, VARIADIC paths text[])
 RETURNS text
 LANGUAGE plpgsql
 IMMUTABLE PARALLEL SAFE STRICT
AS $function$
DECLARE
  j jsonb := doc;
  p text;
BEGIN
  FOREACH p IN ARRAY paths LOOP
    j := j #- string_to_array(substr(p, 3), '.');
  END LOOP;
  RETURN j::text;
END $function$
;

CREATE OR REPLACE FUNCTION json_replace(doc text, path text, value text)
 RETURNS text
 LANGUAGE sql
 IMMUTABLE PARALLEL SAFE STRICT
AS $function$
  SELECT jsonb_set(doc::jsonb, string_to_array(substr(path, 3), '.'), to_jsonb(value), false)::text $function$
;

CREATE OR REPLACE FUNCTION json_set(doc text, path text, value bigint)
 RETURNS text
 LANGUAGE sql
 IMMUTABLE PARALLEL SAFE STRICT
AS $function$
  SELECT jsonb_set(doc::jsonb, string_to_array(substr(path, 3), '.'), to_jsonb(value))::text $function$
;

CREATE OR REPLACE FUNCTION json_set(doc text, path text, value text)
 RETURNS text
 LANGUAGE sql
 IMMUTABLE PARALLEL SAFE STRICT
AS $function$
  SELECT jsonb_set(doc::jsonb, string_to_array(substr(path, 3), '.'), to_jsonb(value))::text $function$
;

CREATE OR REPLACE FUNCTION weaver_feed_attempt()
 RETURNS trigger
 LANGUAGE plpgsql
 SECURITY DEFINER
 SET search_path TO 'weaver', 'pg_temp'
AS $function$
BEGIN
  INSERT INTO weaver_feed (namespace, pos, kind, at, task_id, job_id, task_type, queue, attempt_no, epoch, state, waiting, name, size)
  SELECT n.namespace, nextval('weaver_feed_pos'), 'ended', n.finished_at, n.task_id, t.job_id, t.task_type, t.queue, n.attempt_no, n.lease_epoch, t.state, t.waiting_reason, n.outcome_kind, coalesce(octet_length(n.error_json), 0)
  FROM added n
  JOIN weaver_tasks t ON t.namespace = n.namespace AND t.task_id = n.task_id
  JOIN weaver_feeds f ON f.namespace = n.namespace
  WHERE f.keep > 0;
  INSERT INTO weaver_feed (namespace, pos, kind, at, task_id, job_id, task_type, queue, attempt_no, epoch, state, waiting)
  SELECT n.namespace, nextval('weaver_feed_pos'), 'over', n.finished_at, n.task_id, t.job_id, t.task_type, t.queue, n.attempt_no, t.lease_epoch, t.state, t.waiting_reason
  FROM added n
  JOIN weaver_tasks t ON t.namespace = n.namespace AND t.task_id = n.task_id
  JOIN weaver_feeds f ON f.namespace = n.namespace
  WHERE f.keep > 0 AND n.outcome_kind IN ('lease_lost', 'released') AND t.state IN ('succeeded', 'failed', 'cancelled', 'blocked');
  RETURN NULL;
END $function$
;

CREATE OR REPLACE FUNCTION weaver_feed_enqueued()
 RETURNS trigger
 LANGUAGE plpgsql
 SECURITY DEFINER
 SET search_path TO 'weaver', 'pg_temp'
AS $function$
BEGIN
  INSERT INTO weaver_feed (namespace, pos, kind, at, task_id, job_id, task_type, queue, attempt_no, epoch, state, waiting)
  SELECT n.namespace, nextval('weaver_feed_pos'), 'enqueued', n.updated_at, n.task_id, n.job_id, n.task_type, n.queue, n.attempt_no, n.lease_epoch, n.state, n.waiting_reason
  FROM (SELECT * FROM added ORDER BY task_id) n
  JOIN weaver_feeds f ON f.namespace = n.namespace
  WHERE f.keep > 0;
  INSERT INTO weaver_feed (namespace, pos, kind, at, task_id, job_id, task_type, queue, attempt_no, epoch, state, waiting)
  SELECT n.namespace, nextval('weaver_feed_pos'), 'over', n.updated_at, n.task_id, n.job_id, n.task_type, n.queue, n.attempt_no, n.lease_epoch, n.state, n.waiting_reason
  FROM (SELECT * FROM added ORDER BY task_id) n
  JOIN weaver_feeds f ON f.namespace = n.namespace
  WHERE f.keep > 0 AND n.state IN ('succeeded', 'failed', 'cancelled', 'blocked');
  RETURN NULL;
END $function$
;

CREATE OR REPLACE FUNCTION weaver_feed_event()
 RETURNS trigger
 LANGUAGE plpgsql
 SECURITY DEFINER
 SET search_path TO 'weaver', 'pg_temp'
AS $function$
BEGIN
  INSERT INTO weaver_feed (namespace, pos, kind, at, task_id, job_id, task_type, queue, attempt_no, epoch, state, seq, name, size)
  SELECT n.namespace, nextval('weaver_feed_pos'), 'event', n.at, n.task_id, t.job_id, t.task_type, t.queue, t.attempt_no, t.lease_epoch, t.state, n.seq, n.type, octet_length(n.body)
  FROM (SELECT * FROM added ORDER BY task_id, seq) n
  JOIN weaver_tasks t ON t.namespace = n.namespace AND t.task_id = n.task_id
  JOIN weaver_feeds f ON f.namespace = n.namespace
  WHERE f.keep > 0;
  RETURN NULL;
END $function$
;

CREATE OR REPLACE FUNCTION weaver_feed_last()
 RETURNS bigint
 LANGUAGE plpgsql
 SECURITY DEFINER
 SET search_path TO 'weaver', 'pg_temp'
AS $function$
BEGIN
  RETURN (SELECT CASE WHEN is_called THEN last_value ELSE 0 END FROM weaver_feed_pos);
END $function$
;

CREATE OR REPLACE FUNCTION weaver_feed_log()
 RETURNS trigger
 LANGUAGE plpgsql
 SECURITY DEFINER
 SET search_path TO 'weaver', 'pg_temp'
AS $function$
BEGIN
  INSERT INTO weaver_feed (namespace, pos, kind, at, task_id, job_id, task_type, queue, attempt_no, epoch, state, seq, name, size)
  SELECT n.namespace, nextval('weaver_feed_pos'), 'log', n.at, n.task_id, t.job_id, t.task_type, t.queue, t.attempt_no, t.lease_epoch, t.state, n.seq, n.type, octet_length(n.body)
  FROM (SELECT * FROM added ORDER BY task_id, seq) n
  JOIN weaver_tasks t ON t.namespace = n.namespace AND t.task_id = n.task_id
  JOIN weaver_feeds f ON f.namespace = n.namespace
  WHERE f.keep > 0;
  RETURN NULL;
END $function$
;

CREATE OR REPLACE FUNCTION weaver_feed_settled()
 RETURNS trigger
 LANGUAGE plpgsql
 SECURITY DEFINER
 SET search_path TO 'weaver', 'pg_temp'
AS $function$
BEGIN
  INSERT INTO weaver_feed (namespace, pos, kind, at, job_id, state)
  SELECT NEW.namespace, nextval('weaver_feed_pos'), 'settled', NEW.updated_at, NEW.job_id, NEW.state
  FROM weaver_feeds f WHERE f.namespace = NEW.namespace AND f.keep > 0;
  RETURN NULL;
END $function$
;

CREATE OR REPLACE FUNCTION weaver_feed_skip()
 RETURNS bigint
 LANGUAGE plpgsql
 SECURITY DEFINER
 SET search_path TO 'weaver', 'pg_temp'
AS $function$
BEGIN
  RETURN nextval('weaver_feed_pos');
END $function$
;

CREATE OR REPLACE FUNCTION weaver_feed_state()
 RETURNS trigger
 LANGUAGE plpgsql
 SECURITY DEFINER
 SET search_path TO 'weaver', 'pg_temp'
AS $function$
BEGIN
  INSERT INTO weaver_feed (namespace, pos, kind, at, task_id, job_id, task_type, queue, attempt_no, epoch, state, waiting)
  SELECT NEW.namespace, nextval('weaver_feed_pos'), CASE NEW.state WHEN 'running' THEN 'started' WHEN 'pending' THEN 'reopened' WHEN 'ready' THEN 'reopened' ELSE 'over' END,
    NEW.updated_at, NEW.task_id, NEW.job_id, NEW.task_type, NEW.queue, NEW.attempt_no, NEW.lease_epoch, NEW.state, NEW.waiting_reason
  FROM weaver_feeds f WHERE f.namespace = NEW.namespace AND f.keep > 0;
  RETURN NULL;
END $function$
;
