-- The tables stand in a schema of their own, which search_path names: no
-- statement does. They have the names and columns that they have on SQLite, and
-- statements are shared.
--
-- Ids are 16 bytes (ULIDs, so that they sort by creation), instants and durations
-- bigint of microseconds, flags smallint of 0 and 1, maps and errors JSON in text:
-- what was stored comes back byte for byte. Texts are ordered by their bytes.
-- Columns of fixed width come first.
--
-- No column that a claim or a successful finish changes is in an index of
-- weaver_tasks or in the condition of one: then an update is heap-only, and writes no
-- index.

CREATE TABLE weaver_store_meta (
  namespace text COLLATE "C" NOT NULL,   -- '' for what holds in all namespaces
  key       text COLLATE "C" NOT NULL,
  value     text COLLATE "C" NOT NULL,
  PRIMARY KEY (namespace, key)
);

INSERT INTO weaver_store_meta (namespace, key, value) VALUES ('', 'generation', md5(gen_random_uuid()::text));

CREATE TABLE weaver_jobs (
  total            bigint NOT NULL,
  unfinished       bigint NOT NULL,
  movable          bigint NOT NULL,
  failed           bigint NOT NULL,
  succeeded        bigint NOT NULL,
  allowed          bigint NOT NULL DEFAULT 0,   -- failures that do not count against the job
  attempts_used    bigint NOT NULL DEFAULT 0,
  cost             bigint NOT NULL DEFAULT 0,   -- micro-units
  outside          bigint NOT NULL DEFAULT 0,   -- edges from tasks outside of the job to its tasks: as long as there are some it stays
  deadline_at      bigint,
  created_at       bigint NOT NULL,
  updated_at       bigint NOT NULL,
  finished_at      bigint,
  exhausted_at     bigint,
  cancel_requested smallint NOT NULL DEFAULT 0,
  namespace        text COLLATE "C" NOT NULL,
  job_id           bytea NOT NULL,
  name             text COLLATE "C" NOT NULL,
  state            text COLLATE "C" NOT NULL,
  budget_json      text COLLATE "C" NOT NULL,
  meta             text COLLATE "C",
  cancel_by        text COLLATE "C",
  cancel_reason    text COLLATE "C",
  idempotency_key  text COLLATE "C",
  PRIMARY KEY (namespace, job_id)
) WITH (fillfactor = 50, autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 500);

CREATE UNIQUE INDEX weaver_jobs_by_idempotency_key ON weaver_jobs (namespace, name, idempotency_key) WHERE idempotency_key IS NOT NULL;

-- Every transition of a task makes a new version of its row, so the row is short:
-- values that are fixed and that no statement selects by are in options_json, long
-- texts are in weaver_payloads. A page has room for a second version of all its rows:
-- the versions of a claim and of a finish then go where older ones were.
CREATE TABLE weaver_tasks (
  priority          bigint NOT NULL,
  lease_epoch       bigint DEFAULT 0,
  attempt_no        bigint DEFAULT 0,
  attempt_count     bigint DEFAULT 0,
  step_count        bigint DEFAULT 0,
  crash_count       bigint DEFAULT 0,
  quarantine_losses bigint DEFAULT 0,
  internal_count    bigint DEFAULT 0,
  repair_count      bigint DEFAULT 0,
  started_version   bigint DEFAULT 0,
  remaining_deps    bigint DEFAULT 0,
  depth             bigint DEFAULT 0,     -- how far a child is below a task that is none
  wake_seq          bigint DEFAULT 0,     -- waits that others completed: a suspension that does not know of all leaves the task claimable
  calls             bigint DEFAULT 0,     -- it has children of a call, which are cancelled when it ends before them
  cost              bigint DEFAULT 0,     -- micro-units
  idle_attempts     bigint DEFAULT 0,     -- in a row, without anything new
  job_limits        bigint DEFAULT 0,     -- the limits of its job's budget that it counts for
  created_at        bigint NOT NULL,
  updated_at        bigint NOT NULL,
  ready_at          bigint,               -- the task does not start earlier; its outbox event has the time at which it is due
  lease_expires_at  bigint,
  started_at        bigint,
  finished_at       bigint,
  deadline_at       bigint,
  schema_version    bigint,
  max_attempts      bigint,
  max_repairs       bigint,
  open_if_failed    bigint,               -- needs that are open and of which one has to fail; NULL if there are none or one went wrong
  plain             smallint DEFAULT 0,   -- no job, parent, node, need, dependent, deadline, key, label, metadata or long input; never changes
  needed            smallint DEFAULT 0,   -- another task depends on it
  isolated          smallint DEFAULT 0,   -- quarantined, and claimed as the only quarantined task of its worker
  has_payloads      smallint DEFAULT 0,   -- weaver_payloads may have rows of it
  cancel_requested  smallint DEFAULT 0,
  allow_failure     smallint DEFAULT 0,   -- its failure does not count against its job
  values_dropped    smallint DEFAULT 0,   -- a rule of retention dropped its input, output and progress, and values of its steps and signals
  namespace         text COLLATE "C" NOT NULL,
  task_id           bytea NOT NULL,
  task_type         text COLLATE "C" NOT NULL,
  queue             text COLLATE "C" NOT NULL,
  state             text COLLATE "C" NOT NULL,
  lease_id          bytea,
  leased_by         text COLLATE "C",     -- the worker's name; it outlives the lease
  waiting_reason    text COLLATE "C",
  join_kind         text COLLATE "C",     -- what it waits for by edges: rerun, complete, dependency, outside, repair
  input             text COLLATE "C",
  output            text COLLATE "C",
  last_error_kind   text COLLATE "C",
  last_error_json   text COLLATE "C",
  progress          text COLLATE "C",
  options_json      text COLLATE "C",     -- backoff, backoff_max, timeout, concurrency_limit, node, labels, metadata
  job_id            bytea,
  parent_task_id    bytea,
  rerun_of          bytea,                -- the task that a rerun repeats
  idempotency_key   text COLLATE "C",
  concurrency_key   text COLLATE "C",
  cancel_kind       text COLLATE "C",
  cancel_by         text COLLATE "C",
  cancel_reason     text COLLATE "C",
  -- The state of a task that ended without success, else NULL. An index over state
  -- would be written with every claim and finish; this changes with neither.
  end_state         text COLLATE "C" GENERATED ALWAYS AS (CASE WHEN state = 'failed' OR state = 'blocked' OR state = 'cancelled' THEN state END) STORED,
  PRIMARY KEY (namespace, task_id),
  CHECK ((lease_id IS NOT NULL) = (state = 'running'))
) WITH (fillfactor = 45, autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 10000, autovacuum_analyze_scale_factor = 0.05);

CREATE UNIQUE INDEX weaver_tasks_by_idempotency_key ON weaver_tasks (namespace, task_type, idempotency_key) WHERE idempotency_key IS NOT NULL;

CREATE INDEX weaver_tasks_by_job ON weaver_tasks (namespace, job_id, task_id) WHERE job_id IS NOT NULL;

CREATE INDEX weaver_tasks_by_end ON weaver_tasks (namespace, end_state, task_id) WHERE end_state IS NOT NULL;

-- Texts too long to be rewritten with every transition, and the input of an
-- unblock.
CREATE TABLE weaver_payloads (
  namespace text COLLATE "C" NOT NULL,
  task_id   bytea NOT NULL,
  kind      text COLLATE "C" NOT NULL,   -- input, output, unblock_input
  data      text COLLATE "C" NOT NULL,
  PRIMARY KEY (namespace, task_id, kind)
);

-- awaited is the attempt that began to wait by the edge. When the edge is done,
-- ended_state is the state in which the other task ended the wait, and ended_kind,
-- ended_code and ended_message (which is cut) say why it did not succeed: it may be
-- retried afterwards. opened_epoch is the lease epoch of the task when the edge to a
-- child of its call was last opened.
CREATE TABLE weaver_task_dependencies (
  awaited            bigint NOT NULL DEFAULT 0,
  opened_epoch       bigint,
  done               smallint NOT NULL DEFAULT 0,
  namespace          text COLLATE "C" NOT NULL,
  task_id            bytea NOT NULL,
  depends_on_task_id bytea NOT NULL,
  kind               text COLLATE "C" NOT NULL,
  step               text COLLATE "C",
  ended_state        text COLLATE "C",
  ended_kind         text COLLATE "C",
  ended_code         text COLLATE "C",
  ended_message      text COLLATE "C",
  PRIMARY KEY (namespace, task_id, depends_on_task_id)
);

CREATE INDEX weaver_task_dependencies_by_need ON weaver_task_dependencies (namespace, depends_on_task_id, task_id);

CREATE INDEX weaver_task_dependencies_open ON weaver_task_dependencies (namespace, task_id) WHERE done = 0;

CREATE TABLE weaver_attempts (
  attempt_no   bigint NOT NULL,
  lease_epoch  bigint NOT NULL,
  code_version bigint NOT NULL,
  started_at   bigint NOT NULL,
  finished_at  bigint NOT NULL,      -- the running attempt is on the task's row
  namespace    text COLLATE "C" NOT NULL,
  task_id      bytea NOT NULL,
  lease_id     bytea NOT NULL,
  worker       text COLLATE "C",
  handler      text COLLATE "C",     -- which a router chose
  outcome_kind text COLLATE "C" NOT NULL,
  outcome_hash text COLLATE "C",
  error_kind   text COLLATE "C",
  error_json   text COLLATE "C",
  outcome_json text COLLATE "C",     -- {"action":{"steps":[…]}}
  PRIMARY KEY (namespace, task_id, attempt_no)
);

CREATE TABLE weaver_decisions (
  attempt_no     bigint NOT NULL,
  decided_at     bigint NOT NULL,
  next_ready_at  bigint,
  namespace      text COLLATE "C" NOT NULL,
  task_id        bytea NOT NULL,
  decision_kind  text COLLATE "C" NOT NULL,
  child_task_ids text COLLATE "C",
  reason_json    text COLLATE "C" NOT NULL,
  PRIMARY KEY (namespace, task_id, attempt_no)
);

-- A completed step has 0 in attempt_no and try, so that the primary key allows one
-- per name; by_attempt and by_try are those that recorded it. A failed try has the
-- same values in both pairs. A step that waits is a row in the state waiting: for a
-- signal (awaits is its name, wake_at the end of the wait) or for the children of a
-- call. It is updated once, to completed; until then its completed_at is 0.
CREATE TABLE weaver_steps (
  attempt_no      bigint NOT NULL,
  try             bigint NOT NULL,
  by_attempt      bigint NOT NULL,
  by_try          bigint NOT NULL,
  step_index      bigint NOT NULL,
  started_at      bigint NOT NULL,
  completed_at    bigint NOT NULL,
  wake_at         bigint,
  children        bigint,
  children_left   bigint,             -- that have not ended or are not stored yet
  children_stored bigint,
  cost            bigint,             -- micro-units
  namespace       text COLLATE "C" NOT NULL,
  task_id         bytea NOT NULL,
  name            text COLLATE "C" NOT NULL,
  kind            text COLLATE "C" NOT NULL,
  state           text COLLATE "C" NOT NULL,
  awaits          text COLLATE "C",
  value           text COLLATE "C",
  error_json      text COLLATE "C",
  redact          text COLLATE "C",   -- paths in the value that readers do not show, as a JSON list
  PRIMARY KEY (namespace, task_id, name, attempt_no, try)
);

CREATE INDEX weaver_steps_waiting ON weaver_steps (namespace, task_id, awaits, step_index) WHERE state = 'waiting';

-- A row makes its task claimable from available_at on. The claim deletes it.
CREATE TABLE weaver_outbox_events (
  priority        bigint NOT NULL,
  available_at    bigint NOT NULL,
  namespace       text COLLATE "C" NOT NULL,
  task_id         bytea NOT NULL,
  queue           text COLLATE "C" NOT NULL,
  task_type       text COLLATE "C" NOT NULL,
  concurrency_key text COLLATE "C",
  PRIMARY KEY (namespace, task_id)
) WITH (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 5000, autovacuum_vacuum_cost_delay = 0);

CREATE INDEX weaver_outbox_events_by_lane ON weaver_outbox_events (namespace, queue, task_type, priority, available_at, task_id, concurrency_key);

CREATE INDEX weaver_outbox_events_by_key ON weaver_outbox_events (namespace, concurrency_key, queue, task_type, available_at) WHERE concurrency_key IS NOT NULL;

-- One row per claim call, for the reaper and for lists of running tasks. task_ids
-- are the 16-byte ids one after the other.
CREATE TABLE weaver_claims (
  check_at  bigint NOT NULL,   -- none of its leases ends earlier
  namespace text COLLATE "C" NOT NULL,
  lease_id  bytea NOT NULL,
  worker_id text COLLATE "C" NOT NULL,
  task_ids  bytea NOT NULL,
  PRIMARY KEY (namespace, lease_id)
) WITH (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 1000, autovacuum_vacuum_cost_delay = 0);

CREATE INDEX weaver_claims_by_check ON weaver_claims (namespace, check_at, worker_id);

CREATE TABLE weaver_timers (
  due_at    bigint NOT NULL,
  namespace text COLLATE "C" NOT NULL,
  task_id   bytea NOT NULL,
  PRIMARY KEY (namespace, due_at, task_id)
);

CREATE TABLE weaver_task_labels (
  namespace text COLLATE "C" NOT NULL,
  key       text COLLATE "C" NOT NULL,
  value     text COLLATE "C" NOT NULL,
  task_id   bytea NOT NULL,
  PRIMARY KEY (namespace, key, value, task_id)
);

-- Few rows that are updated often: a page has room for many versions of one.
CREATE TABLE weaver_conc_keys (
  held      bigint NOT NULL,
  cap       bigint NOT NULL,
  namespace text COLLATE "C" NOT NULL,
  key       text COLLATE "C" NOT NULL,
  PRIMARY KEY (namespace, key)
) WITH (fillfactor = 20, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 1000, autovacuum_vacuum_cost_delay = 0);

CREATE TABLE weaver_conc_waiters (
  due_at    bigint NOT NULL,
  namespace text COLLATE "C" NOT NULL,
  key       text COLLATE "C" NOT NULL,
  task_id   bytea NOT NULL,
  queue     text COLLATE "C" NOT NULL DEFAULT '',
  task_type text COLLATE "C" NOT NULL DEFAULT '',
  PRIMARY KEY (namespace, key, due_at, task_id)
) WITH (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 5000, autovacuum_vacuum_cost_delay = 0);

CREATE INDEX weaver_conc_waiters_by_task ON weaver_conc_waiters (namespace, task_id);

CREATE INDEX weaver_conc_waiters_by_lane ON weaver_conc_waiters (namespace, key, queue, task_type, due_at, task_id);

CREATE TABLE weaver_workers (
  ttl              bigint NOT NULL,
  last_seen        bigint NOT NULL,
  heartbeats_since bigint NOT NULL,    -- the worker missed no heartbeat since then
  idle_since       bigint,             -- it wants to be told of work since then; NULL: it has some
  namespace        text COLLATE "C" NOT NULL,
  worker_id        text COLLATE "C" NOT NULL,
  name             text COLLATE "C" NOT NULL,
  types            text COLLATE "C",   -- the task types that it announces, as a JSON list
  -- What proves its death: for how long it trusts its leases without an answer of its
  -- session (0: it keeps none), and its lock on its machine: the boot id, the path, and
  -- device and inode ('': it has none).
  session_grace    bigint NOT NULL DEFAULT 0,
  lock_host        text COLLATE "C" NOT NULL DEFAULT '',
  lock_path        text COLLATE "C" NOT NULL DEFAULT '',
  lock_file        text COLLATE "C" NOT NULL DEFAULT '',
  PRIMARY KEY (namespace, worker_id)
) WITH (fillfactor = 20, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 1000, autovacuum_vacuum_cost_delay = 0);

CREATE TABLE weaver_paused_queues (
  at        bigint NOT NULL,
  namespace text COLLATE "C" NOT NULL,
  queue     text COLLATE "C" NOT NULL,
  actor     text COLLATE "C" NOT NULL,
  reason    text COLLATE "C" NOT NULL,
  PRIMARY KEY (namespace, queue)
);

CREATE TABLE weaver_paused_types (
  at        bigint NOT NULL,
  namespace text COLLATE "C" NOT NULL,
  task_type text COLLATE "C" NOT NULL,
  actor     text COLLATE "C" NOT NULL,
  reason    text COLLATE "C" NOT NULL,
  PRIMARY KEY (namespace, task_type)
);

-- Tasks that an operator paused. They have no dispatch row: due_at is the
-- available_at of the one that a task would have, NULL when it would have none.
CREATE TABLE weaver_paused_tasks (
  at        bigint NOT NULL,
  due_at    bigint,
  namespace text COLLATE "C" NOT NULL,
  task_id   bytea NOT NULL,
  actor     text COLLATE "C" NOT NULL,
  reason    text COLLATE "C" NOT NULL,
  PRIMARY KEY (namespace, task_id)
);

CREATE TABLE weaver_audit (
  audit_id  bigint NOT NULL,
  at        bigint NOT NULL,
  namespace text COLLATE "C" NOT NULL,
  actor     text COLLATE "C" NOT NULL,
  verb      text COLLATE "C" NOT NULL,
  target    text COLLATE "C" NOT NULL,
  reason    text COLLATE "C" NOT NULL,
  PRIMARY KEY (namespace, audit_id)
);

CREATE INDEX weaver_audit_by_target ON weaver_audit (namespace, target, audit_id);

-- Work that follows from a committed transaction and was too much for it. Any
-- reaper works it off, a bounded number of rows at a time.
CREATE TABLE weaver_chores (
  epoch     bigint,
  namespace text COLLATE "C" NOT NULL,
  kind      text COLLATE "C" NOT NULL,   -- cancel_job, edges, pause, revive, wake_key
  subject   bytea NOT NULL,              -- a 16-byte id, or the bytes of a key or of a queue's name
  position  bytea NOT NULL,              -- the last row that was looked at; empty at the beginning
  root      bytea,                       -- revive: the task that was retried; epoch is its epoch
  actor     text COLLATE "C",            -- cancel_job: who asked for it, and why
  reason    text COLLATE "C",
  PRIMARY KEY (namespace, kind, subject)
);

-- One row per signal, oldest first; step is the name of the wait that took it.
CREATE TABLE weaver_signals (
  seq       bigint NOT NULL,   -- 1, 2, … of its task
  sent_at   bigint NOT NULL,
  namespace text COLLATE "C" NOT NULL,
  task_id   bytea NOT NULL,
  name      text COLLATE "C" NOT NULL,
  key       text COLLATE "C" NOT NULL,
  actor     text COLLATE "C" NOT NULL,
  step      text COLLATE "C",
  payload   text COLLATE "C" NOT NULL,
  PRIMARY KEY (namespace, task_id, seq)
);

CREATE UNIQUE INDEX weaver_signals_by_key ON weaver_signals (namespace, task_id, name, key);

CREATE INDEX weaver_signals_open ON weaver_signals (namespace, task_id, name, seq) WHERE step IS NULL;

-- Children of a task that decomposed which are not stored yet, a bite of a chore in
-- each row: the number of the first among those of its decompositions, how many they
-- are, and the attempt that waits for them. Its remaining_deps, and the counters of
-- its job, have them already.
CREATE TABLE weaver_drafts (
  first     bigint NOT NULL,
  children  bigint NOT NULL,
  awaited   bigint NOT NULL,
  namespace text COLLATE "C" NOT NULL,
  task_id   bytea NOT NULL,
  drafts    text COLLATE "C" NOT NULL,
  PRIMARY KEY (namespace, task_id, first)
);

-- Bytes in the bucket. Nothing refers to a pending one yet, or any more (touched_at is
-- when it was announced; 0: it was referred to before); rows of weaver_artifacts
-- refer to a live one; a collector has claimed a deleting one.
CREATE TABLE weaver_blobs (
  size_bytes bigint NOT NULL,
  touched_at bigint NOT NULL,
  namespace  text COLLATE "C" NOT NULL,
  blob_id    bytea NOT NULL,
  sha256     text COLLATE "C" NOT NULL,
  state      text COLLATE "C" NOT NULL,
  PRIMARY KEY (namespace, blob_id)
);

CREATE UNIQUE INDEX weaver_blobs_by_content ON weaver_blobs (namespace, sha256, size_bytes) WHERE state <> 'deleting';

CREATE INDEX weaver_blobs_unused ON weaver_blobs (namespace, touched_at, blob_id) WHERE state <> 'live';

-- What refers to blobs: artifacts, and inputs, outputs and values of steps, of which
-- artifact_id is the blob's. collect_at is when one that expires is looked at next.
CREATE TABLE weaver_artifacts (
  attempt_no   bigint,
  created_at   bigint NOT NULL,
  expires_at   bigint,
  collect_at   bigint,
  namespace    text COLLATE "C" NOT NULL,
  task_id      bytea NOT NULL,
  kind         text COLLATE "C" NOT NULL,
  artifact_id  bytea NOT NULL,
  blob_id      bytea NOT NULL,
  step         text COLLATE "C",
  name         text COLLATE "C",
  content_type text COLLATE "C",
  PRIMARY KEY (namespace, task_id, kind, artifact_id)
);

CREATE INDEX weaver_artifacts_by_blob ON weaver_artifacts (namespace, blob_id);

CREATE INDEX weaver_artifacts_expiring ON weaver_artifacts (namespace, collect_at, task_id, artifact_id) WHERE collect_at IS NOT NULL;

-- The latest value that a task keeps under a name.
CREATE TABLE weaver_checkpoints (
  attempt_no bigint NOT NULL,
  saved_at   bigint NOT NULL,
  namespace  text COLLATE "C" NOT NULL,
  task_id    bytea NOT NULL,
  name       text COLLATE "C" NOT NULL,
  value      text COLLATE "C" NOT NULL,
  PRIMARY KEY (namespace, task_id, name)
);

-- Events of tasks, and the lines of their logs. seq orders the rows of a task in both
-- tables together; above the 24 low bits is the epoch of the lease. body is JSON
-- without what all events of the task have in common. Nothing is read from here to
-- decide.
CREATE TABLE weaver_events (
  seq       bigint NOT NULL,
  at        bigint NOT NULL,
  namespace text COLLATE "C" NOT NULL,
  task_id   bytea NOT NULL,
  type      text COLLATE "C" NOT NULL,
  body      text COLLATE "C" NOT NULL,
  PRIMARY KEY (namespace, task_id, seq)
);

CREATE TABLE weaver_logs (
  seq       bigint NOT NULL,
  at        bigint NOT NULL,
  namespace text COLLATE "C" NOT NULL,
  task_id   bytea NOT NULL,
  type      text COLLATE "C" NOT NULL,
  body      text COLLATE "C" NOT NULL,
  PRIMARY KEY (namespace, task_id, seq)
);

-- Functions that SQLite has: a path is '$.a.b'. NULL stays NULL, and so does what is
-- not there.
CREATE FUNCTION json_remove(doc text, VARIADIC paths text[]) RETURNS text LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL SAFE AS $$
DECLARE
  j jsonb := doc;
  p text;
BEGIN
  FOREACH p IN ARRAY paths LOOP
    j := j #- string_to_array(substr(p, 3), '.');
  END LOOP;
  RETURN j::text;
END $$;

CREATE FUNCTION json_set(doc text, path text, value text) RETURNS text LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE AS $$
  SELECT jsonb_set(doc::jsonb, string_to_array(substr(path, 3), '.'), to_jsonb(value))::text $$;

CREATE FUNCTION json_set(doc text, path text, value bigint) RETURNS text LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE AS $$
  SELECT jsonb_set(doc::jsonb, string_to_array(substr(path, 3), '.'), to_jsonb(value))::text $$;

CREATE FUNCTION json_replace(doc text, path text, value text) RETURNS text LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE AS $$
  SELECT jsonb_set(doc::jsonb, string_to_array(substr(path, 3), '.'), to_jsonb(value), false)::text $$;

CREATE FUNCTION json_extract(doc text, path text) RETURNS bigint LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE AS $$
  SELECT (doc::jsonb #>> string_to_array(substr(path, 3), '.'))::bigint $$;
