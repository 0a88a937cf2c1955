-- What the migrations 0001 to 0028 make of an empty database.

CREATE TABLE weaver_store_meta (
  namespace TEXT NOT NULL,   -- '' for what holds in all namespaces
  key       TEXT NOT NULL,
  value     TEXT NOT NULL,
  PRIMARY KEY (namespace, key)
) WITHOUT ROWID;

CREATE TABLE weaver_jobs (
  namespace        TEXT NOT NULL,
  job_id           BLOB NOT NULL,
  name             TEXT NOT NULL,
  state            TEXT NOT NULL,
  budget_json      TEXT NOT NULL,
  meta             TEXT,
  total            INTEGER NOT NULL,
  unfinished       INTEGER NOT NULL,
  movable          INTEGER NOT NULL,
  failed           INTEGER NOT NULL,
  succeeded        INTEGER NOT NULL,
  cancel_requested INTEGER NOT NULL DEFAULT 0,
  cancel_by        TEXT,
  cancel_reason    TEXT,
  deadline_at      INTEGER,
  created_at       INTEGER NOT NULL,
  updated_at       INTEGER NOT NULL,
  finished_at      INTEGER, idempotency_key TEXT, allowed INTEGER NOT NULL DEFAULT 0, attempts_used INTEGER NOT NULL DEFAULT 0, cost INTEGER NOT NULL DEFAULT 0, exhausted_at INTEGER, outside INTEGER NOT NULL DEFAULT 0, based_on TEXT,
  PRIMARY KEY (namespace, job_id)
) WITHOUT ROWID;

CREATE TABLE weaver_tasks (
  namespace         TEXT NOT NULL,
  task_id           BLOB NOT NULL,
  task_type         TEXT NOT NULL,
  queue             TEXT NOT NULL,
  priority          INTEGER NOT NULL,
  state             TEXT NOT NULL,
  waiting_reason    TEXT,
  ready_at          INTEGER,            -- the task does not start earlier; its outbox event has the time at which it is due
  remaining_deps    INTEGER DEFAULT 0,
  plain             INTEGER DEFAULT 0,  -- no job, parent, node, need, dependent, deadline, key, label, metadata or long input; never changes
  needed            INTEGER DEFAULT 0,  -- another task depends on it
  isolated          INTEGER DEFAULT 0,  -- quarantined, and claimed as the only quarantined task of its worker
  has_payloads      INTEGER DEFAULT 0,  -- weaver_payloads may have rows of it
  lease_epoch       INTEGER DEFAULT 0,
  lease_id          BLOB,
  leased_by         TEXT,               -- the worker's name; it outlives the lease
  lease_expires_at  INTEGER,
  attempt_no        INTEGER DEFAULT 0,
  attempt_count     INTEGER DEFAULT 0,
  step_count        INTEGER DEFAULT 0,
  crash_count       INTEGER DEFAULT 0,
  quarantine_losses INTEGER DEFAULT 0,
  internal_count    INTEGER DEFAULT 0,
  repair_count      INTEGER DEFAULT 0,
  started_version   INTEGER DEFAULT 0,
  input             TEXT,
  schema_version    INTEGER,
  output            TEXT,
  last_error_kind   TEXT,
  last_error_json   TEXT,
  progress          TEXT,
  max_attempts      INTEGER,
  max_repairs       INTEGER,
  options_json      TEXT,               -- backoff, backoff_max, timeout, concurrency_limit, node, labels, metadata
  job_id            BLOB,
  parent_task_id    BLOB,
  idempotency_key   TEXT,
  concurrency_key   TEXT,
  cancel_requested  INTEGER DEFAULT 0,
  cancel_kind       TEXT,
  cancel_by         TEXT,
  cancel_reason     TEXT,
  deadline_at       INTEGER,
  created_at        INTEGER NOT NULL,
  updated_at        INTEGER NOT NULL,
  started_at        INTEGER,
  finished_at       INTEGER, open_if_failed INTEGER, allow_failure INTEGER DEFAULT 0, depth INTEGER DEFAULT 0, join_kind TEXT, wake_seq INTEGER DEFAULT 0, calls INTEGER DEFAULT 0, cost INTEGER DEFAULT 0, idle_attempts INTEGER DEFAULT 0, job_limits INTEGER DEFAULT 0, rerun_of BLOB, values_dropped INTEGER DEFAULT 0, undo_open INTEGER DEFAULT 0, undo_no INTEGER DEFAULT 0, undo TEXT, lane_group TEXT,
  PRIMARY KEY (namespace, task_id),
  CHECK ((lease_id IS NOT NULL) = (state = 'running'))
) WITHOUT ROWID;

CREATE UNIQUE INDEX weaver_tasks_by_idempotency_key ON weaver_tasks (namespace, task_type, idempotency_key) WHERE idempotency_key IS NOT NULL;

CREATE INDEX weaver_tasks_by_job ON weaver_tasks (namespace, job_id, task_id) WHERE job_id IS NOT NULL;

CREATE INDEX weaver_tasks_by_end ON weaver_tasks (namespace, state, task_id) WHERE state = 'failed' OR state = 'blocked' OR state = 'cancelled';

CREATE TABLE weaver_payloads (
  namespace TEXT NOT NULL,
  task_id   BLOB NOT NULL,
  kind      TEXT NOT NULL,   -- input, output, unblock_input
  data      TEXT NOT NULL,
  PRIMARY KEY (namespace, task_id, kind)
) WITHOUT ROWID;

CREATE TABLE weaver_task_dependencies (
  namespace          TEXT NOT NULL,
  task_id            BLOB NOT NULL,
  depends_on_task_id BLOB NOT NULL,
  kind               TEXT NOT NULL,
  done               INTEGER NOT NULL DEFAULT 0, awaited INTEGER NOT NULL DEFAULT 0, ended_state TEXT, step TEXT, ended_kind TEXT, ended_code TEXT, ended_message TEXT, opened_epoch INTEGER,
  PRIMARY KEY (namespace, task_id, depends_on_task_id)
) WITHOUT ROWID;

CREATE INDEX weaver_task_dependencies_by_need ON weaver_task_dependencies (namespace, depends_on_task_id, task_id);

CREATE INDEX weaver_task_dependencies_open ON weaver_task_dependencies (namespace, task_id) WHERE done = 0;

CREATE TABLE weaver_attempts (
  namespace    TEXT NOT NULL,
  task_id      BLOB NOT NULL,
  attempt_no   INTEGER NOT NULL,
  lease_epoch  INTEGER NOT NULL,
  lease_id     BLOB NOT NULL,
  worker       TEXT,
  code_version INTEGER NOT NULL,
  started_at   INTEGER NOT NULL,
  finished_at  INTEGER NOT NULL,   -- the running attempt is on the task's row
  outcome_kind TEXT NOT NULL,
  error_kind   TEXT,
  error_json   TEXT,
  outcome_json TEXT,               -- {"action":{"steps":[…]}}
  outcome_hash TEXT, handler TEXT,
  PRIMARY KEY (namespace, task_id, attempt_no)
) WITHOUT ROWID;

CREATE TABLE weaver_decisions (
  namespace      TEXT NOT NULL,
  task_id        BLOB NOT NULL,
  attempt_no     INTEGER NOT NULL,
  decided_at     INTEGER NOT NULL,
  decision_kind  TEXT NOT NULL,
  next_ready_at  INTEGER,
  child_task_ids TEXT,
  reason_json    TEXT NOT NULL,
  PRIMARY KEY (namespace, task_id, attempt_no)
) WITHOUT ROWID;

CREATE TABLE weaver_steps (
  namespace    TEXT NOT NULL,
  task_id      BLOB NOT NULL,
  name         TEXT NOT NULL,
  attempt_no   INTEGER NOT NULL,
  try          INTEGER NOT NULL,
  by_attempt   INTEGER NOT NULL,
  by_try       INTEGER NOT NULL,
  step_index   INTEGER NOT NULL,
  kind         TEXT NOT NULL,
  state        TEXT NOT NULL,
  value        TEXT,
  error_json   TEXT,
  wake_at      INTEGER,
  started_at   INTEGER NOT NULL,
  completed_at INTEGER NOT NULL, awaits TEXT, children INTEGER, children_left INTEGER, children_stored INTEGER, cost INTEGER, redact TEXT, undo INTEGER DEFAULT 0, undo_no INTEGER DEFAULT 0, round INTEGER DEFAULT 0,
  PRIMARY KEY (namespace, task_id, name, attempt_no, try)
) WITHOUT ROWID;

CREATE TABLE weaver_outbox_events (
  namespace       TEXT NOT NULL,
  task_id         BLOB NOT NULL,
  queue           TEXT NOT NULL,
  task_type       TEXT NOT NULL,
  priority        INTEGER NOT NULL,
  available_at    INTEGER NOT NULL,
  concurrency_key TEXT, sent_until INTEGER, attempts INTEGER DEFAULT 0, last_error TEXT, lane_group TEXT NOT NULL DEFAULT '',
  PRIMARY KEY (namespace, task_id)
) WITHOUT ROWID;

CREATE TABLE weaver_claims (
  namespace TEXT NOT NULL,
  lease_id  BLOB NOT NULL,
  worker_id TEXT NOT NULL,
  check_at  INTEGER NOT NULL,   -- none of its leases ends earlier
  task_ids  BLOB NOT NULL,
  PRIMARY KEY (namespace, lease_id)
) WITHOUT ROWID;

CREATE INDEX weaver_claims_by_check ON weaver_claims (namespace, check_at, worker_id);

CREATE TABLE weaver_timers (
  namespace TEXT NOT NULL,
  due_at    INTEGER NOT NULL,
  task_id   BLOB NOT NULL,
  PRIMARY KEY (namespace, due_at, task_id)
) WITHOUT ROWID;

CREATE TABLE weaver_task_labels (
  namespace TEXT NOT NULL,
  key       TEXT NOT NULL,
  value     TEXT NOT NULL,
  task_id   BLOB NOT NULL,
  PRIMARY KEY (namespace, key, value, task_id)
) WITHOUT ROWID;

CREATE TABLE weaver_conc_keys (
  namespace TEXT NOT NULL,
  key       TEXT NOT NULL,
  held      INTEGER NOT NULL,
  cap       INTEGER NOT NULL,
  PRIMARY KEY (namespace, key)
) WITHOUT ROWID;

CREATE TABLE weaver_conc_waiters (
  namespace TEXT NOT NULL,
  key       TEXT NOT NULL,
  due_at    INTEGER NOT NULL,
  task_id   BLOB NOT NULL, queue TEXT NOT NULL DEFAULT '', task_type TEXT NOT NULL DEFAULT '', lane_group TEXT NOT NULL DEFAULT '',
  PRIMARY KEY (namespace, key, due_at, task_id)
) WITHOUT ROWID;

CREATE INDEX weaver_conc_waiters_by_task ON weaver_conc_waiters (namespace, task_id);

CREATE TABLE weaver_workers (
  namespace        TEXT NOT NULL,
  worker_id        TEXT NOT NULL,
  name             TEXT NOT NULL,
  ttl              INTEGER NOT NULL,
  last_seen        INTEGER NOT NULL,
  heartbeats_since INTEGER NOT NULL, types TEXT, announced TEXT,   -- the worker missed no heartbeat since then
  PRIMARY KEY (namespace, worker_id)
) WITHOUT ROWID;

CREATE TABLE weaver_paused_queues (
  namespace TEXT NOT NULL,
  queue     TEXT NOT NULL,
  at        INTEGER NOT NULL,
  actor     TEXT NOT NULL,
  reason    TEXT NOT NULL,
  PRIMARY KEY (namespace, queue)
) WITHOUT ROWID;

CREATE TABLE weaver_audit (
  namespace TEXT NOT NULL,
  audit_id  INTEGER NOT NULL,
  at        INTEGER NOT NULL,
  actor     TEXT NOT NULL,
  verb      TEXT NOT NULL,
  target    TEXT NOT NULL,
  reason    TEXT NOT NULL,
  PRIMARY KEY (namespace, audit_id)
) WITHOUT ROWID;

CREATE INDEX weaver_audit_by_target ON weaver_audit (namespace, target, audit_id);

CREATE TABLE weaver_chores (
  namespace TEXT NOT NULL,
  kind      TEXT NOT NULL,   -- cancel_job, edges, pause, revive, wake_key
  subject   NOT NULL,        -- a 16-byte id, a key, or the name of a queue
  position  BLOB NOT NULL,   -- the last row that was looked at; empty at the beginning
  root      BLOB,            -- revive: the task that was retried, and its epoch
  epoch     INTEGER,
  actor     TEXT,            -- cancel_job: who asked for it, and why
  reason    TEXT,
  PRIMARY KEY (namespace, kind, subject)
) WITHOUT ROWID;

CREATE UNIQUE INDEX weaver_jobs_by_idempotency_key ON weaver_jobs (namespace, name, idempotency_key) WHERE idempotency_key IS NOT NULL;

CREATE INDEX weaver_steps_waiting ON weaver_steps (namespace, task_id, awaits, step_index) WHERE state = 'waiting';

CREATE TABLE weaver_signals (
  namespace TEXT NOT NULL,
  task_id   BLOB NOT NULL,
  seq       INTEGER NOT NULL,   -- 1, 2, … of its task
  name      TEXT NOT NULL,
  key       TEXT NOT NULL,
  payload   TEXT NOT NULL,
  sent_at   INTEGER NOT NULL,
  actor     TEXT NOT NULL,
  step      TEXT,
  PRIMARY KEY (namespace, task_id, seq)
) WITHOUT ROWID;

CREATE UNIQUE INDEX weaver_signals_by_key ON weaver_signals (namespace, task_id, name, key);

CREATE INDEX weaver_signals_open ON weaver_signals (namespace, task_id, name, seq) WHERE step IS NULL;

CREATE TABLE weaver_paused_types (
  namespace TEXT NOT NULL,
  task_type TEXT NOT NULL,
  at        INTEGER NOT NULL,
  actor     TEXT NOT NULL,
  reason    TEXT NOT NULL,
  PRIMARY KEY (namespace, task_type)
) WITHOUT ROWID;

CREATE TABLE weaver_paused_tasks (
  namespace TEXT NOT NULL,
  task_id   BLOB NOT NULL,
  at        INTEGER NOT NULL,
  actor     TEXT NOT NULL,
  reason    TEXT NOT NULL,
  due_at    INTEGER,
  PRIMARY KEY (namespace, task_id)
) WITHOUT ROWID;

CREATE TABLE weaver_drafts (
  namespace TEXT NOT NULL,
  task_id   BLOB NOT NULL,
  first     INTEGER NOT NULL,
  children  INTEGER NOT NULL,
  awaited   INTEGER NOT NULL,
  drafts    TEXT NOT NULL,
  PRIMARY KEY (namespace, task_id, first)
) WITHOUT ROWID;

CREATE TABLE weaver_blobs (
  namespace  TEXT NOT NULL,
  blob_id    BLOB NOT NULL,
  sha256     TEXT NOT NULL,
  size_bytes INTEGER NOT NULL,
  state      TEXT NOT NULL,
  touched_at INTEGER NOT NULL, task_id BLOB,
  PRIMARY KEY (namespace, blob_id)
) WITHOUT ROWID;

CREATE UNIQUE INDEX weaver_blobs_by_content ON weaver_blobs (namespace, sha256, size_bytes) WHERE state <> 'deleting';

CREATE INDEX weaver_blobs_unused ON weaver_blobs (namespace, touched_at, blob_id) WHERE state <> 'live';

CREATE TABLE weaver_artifacts (
  namespace    TEXT NOT NULL,
  task_id      BLOB NOT NULL,
  kind         TEXT NOT NULL,
  artifact_id  BLOB NOT NULL,
  blob_id      BLOB NOT NULL,
  step         TEXT,
  attempt_no   INTEGER,
  name         TEXT,
  content_type TEXT,
  created_at   INTEGER NOT NULL,
  expires_at   INTEGER,
  collect_at   INTEGER, link TEXT,
  PRIMARY KEY (namespace, task_id, kind, artifact_id)
) WITHOUT ROWID;

CREATE INDEX weaver_artifacts_by_blob ON weaver_artifacts (namespace, blob_id);

CREATE INDEX weaver_artifacts_expiring ON weaver_artifacts (namespace, collect_at, task_id, artifact_id) WHERE collect_at IS NOT NULL;

CREATE TABLE weaver_checkpoints (
  namespace  TEXT NOT NULL,
  task_id    BLOB NOT NULL,
  name       TEXT NOT NULL,
  value      TEXT NOT NULL,
  attempt_no INTEGER NOT NULL,
  saved_at   INTEGER NOT NULL,
  PRIMARY KEY (namespace, task_id, name)
) WITHOUT ROWID;

CREATE TABLE weaver_events (
  namespace TEXT NOT NULL,
  task_id   BLOB NOT NULL,
  seq       INTEGER NOT NULL,
  type      TEXT NOT NULL,
  at        INTEGER NOT NULL,
  body      TEXT NOT NULL,
  PRIMARY KEY (namespace, task_id, seq)
) WITHOUT ROWID;

CREATE TABLE weaver_logs (
  namespace TEXT NOT NULL,
  task_id   BLOB NOT NULL,
  seq       INTEGER NOT NULL,
  type      TEXT NOT NULL,
  at        INTEGER NOT NULL,
  body      TEXT NOT NULL,
  PRIMARY KEY (namespace, task_id, seq)
) WITHOUT ROWID;

CREATE TABLE weaver_expiries (
  namespace TEXT NOT NULL,
  task_id   BLOB NOT NULL,
  set_at    INTEGER NOT NULL,
  look_at   INTEGER NOT NULL,
  PRIMARY KEY (namespace, task_id)
) WITHOUT ROWID;

CREATE INDEX weaver_expiries_due ON weaver_expiries (namespace, look_at, task_id);

CREATE TABLE weaver_types (
  namespace      TEXT NOT NULL,
  task_type      TEXT NOT NULL,
  schema_version INTEGER NOT NULL,
  code_version   INTEGER NOT NULL,
  digest         TEXT NOT NULL,
  announced_at   INTEGER NOT NULL,
  announced_by   TEXT NOT NULL,
  body           TEXT NOT NULL,
  PRIMARY KEY (namespace, task_type)
);

CREATE INDEX weaver_tasks_by_lane ON weaver_tasks (namespace, task_type, queue, task_id);

CREATE INDEX weaver_tasks_by_parent ON weaver_tasks (namespace, parent_task_id, task_id) WHERE parent_task_id IS NOT NULL;

CREATE TABLE weaver_stats (
  namespace  TEXT NOT NULL,
  width      INTEGER NOT NULL,
  slot       INTEGER NOT NULL,
  worker     TEXT NOT NULL,
  task_type  TEXT NOT NULL,
  queue      TEXT NOT NULL,
  outcome    TEXT NOT NULL,
  error_kind TEXT NOT NULL,
  attempts   INTEGER NOT NULL,
  run_times  BLOB NOT NULL,
  wait_times BLOB NOT NULL,
  PRIMARY KEY (namespace, width, slot, worker, task_type, queue, outcome, error_kind)
) WITHOUT ROWID;

CREATE TABLE weaver_feeds (
  namespace TEXT NOT NULL,
  keep      INTEGER NOT NULL,
  pruned    INTEGER NOT NULL,
  PRIMARY KEY (namespace)
) WITHOUT ROWID;

CREATE TABLE weaver_feed (
  namespace  TEXT NOT NULL,
  pos        INTEGER NOT NULL,
  kind       TEXT NOT NULL,
  at         INTEGER NOT NULL,
  size       INTEGER NOT NULL DEFAULT 0,  -- bytes of what it quotes
  task_id    BLOB,
  job_id     BLOB,
  task_type  TEXT,
  queue      TEXT,
  attempt_no INTEGER,
  epoch      INTEGER,                     -- of the lease
  seq        INTEGER,                     -- of a row of weaver_events or weaver_logs
  state      TEXT,
  waiting    TEXT,
  name       TEXT,                        -- outcome of an attempt, type of an event
  PRIMARY KEY (namespace, pos)
) WITHOUT ROWID;

CREATE INDEX weaver_artifacts_by_id ON weaver_artifacts (namespace, artifact_id) WHERE name IS NOT NULL;

CREATE INDEX weaver_blobs_of_task ON weaver_blobs (namespace, task_id, blob_id) WHERE state = 'pending';

CREATE INDEX weaver_tasks_undoing ON weaver_tasks (namespace, concurrency_key, task_id) WHERE undo IS NOT NULL AND concurrency_key IS NOT NULL;

CREATE TABLE weaver_job_bases (
  namespace TEXT NOT NULL,
  base      TEXT NOT NULL,
  job_id    BLOB NOT NULL,
  PRIMARY KEY (namespace, base, job_id)
) WITHOUT ROWID;

CREATE TABLE weaver_idempo_ledger (
  namespace             TEXT NOT NULL,
  idempotency_key       TEXT NOT NULL,
  request_digest        TEXT NOT NULL,
  result_digest         TEXT,
  status                TEXT NOT NULL,     -- accepted, succeeded, failed
  http_status           INTEGER NOT NULL,  -- 0: not settled
  response_payload_json TEXT,
  order_id              TEXT,
  trace_id              TEXT,
  unknown               INTEGER NOT NULL,  -- failed, and the partner may have executed it
  first_seen_at         INTEGER NOT NULL,
  last_seen_at          INTEGER NOT NULL,
  expires_at            INTEGER,
  PRIMARY KEY (namespace, idempotency_key)
);

CREATE TABLE weaver_outbox_orders (
  id                 INTEGER NOT NULL,
  namespace          TEXT NOT NULL,
  idempotency_key    TEXT NOT NULL,
  profile            TEXT NOT NULL,
  order_request_json TEXT NOT NULL,
  request_digest     TEXT NOT NULL,
  order_id           TEXT,
  trace_id           TEXT,
  timeout            INTEGER NOT NULL,     -- of one send
  max_age            INTEGER NOT NULL,     -- 0: none
  created_at         INTEGER NOT NULL,
  task_id            BLOB,                 -- that waits for the result
  step               TEXT,
  status             TEXT NOT NULL,        -- pending, sending, succeeded, failed, aborted
  attempts           INTEGER NOT NULL,
  last_error_code    TEXT,
  last_error_msg     TEXT,
  locked_by          TEXT,
  locked_at          INTEGER,
  lease_until        INTEGER,
  token              INTEGER NOT NULL,     -- raised by each claim
  send_no            INTEGER NOT NULL,
  send_started_at    INTEGER,
  send_ends_at       INTEGER,
  send_open          INTEGER NOT NULL,     -- a send began and has no answer on record
  unknown            INTEGER NOT NULL,     -- a send that is over may have reached the partner
  held               INTEGER NOT NULL,     -- by a restore, until an operator releases it
  stale_at           INTEGER,              -- from then on it is not sent any more
  next_run_at        INTEGER,              -- of pending and failed rows
  updated_at         INTEGER NOT NULL,
  expires_at         INTEGER,              -- of succeeded and aborted rows
  signalled          INTEGER NOT NULL,     -- no task waits for the result any more
  PRIMARY KEY (id)
);

CREATE UNIQUE INDEX weaver_outbox_orders_key ON weaver_outbox_orders (namespace, idempotency_key);

CREATE INDEX weaver_outbox_orders_page ON weaver_outbox_orders (namespace, id);

CREATE INDEX weaver_outbox_orders_due ON weaver_outbox_orders (namespace, status, next_run_at, id);

CREATE INDEX weaver_outbox_orders_open ON weaver_outbox_orders (namespace, id) WHERE expires_at IS NULL;

CREATE INDEX weaver_outbox_orders_settled ON weaver_outbox_orders (namespace, status, expires_at) WHERE expires_at IS NOT NULL;

CREATE INDEX weaver_outbox_orders_held ON weaver_outbox_orders (namespace, id) WHERE held = 1;

CREATE INDEX weaver_outbox_orders_unknown ON weaver_outbox_orders (namespace, status) WHERE unknown = 1;

CREATE INDEX weaver_outbox_orders_task ON weaver_outbox_orders (namespace, task_id, id) WHERE task_id IS NOT NULL;

CREATE INDEX weaver_outbox_orders_unsignalled ON weaver_outbox_orders (namespace, id) WHERE signalled = 0;

CREATE TABLE weaver_schedules (
  namespace  TEXT NOT NULL,
  name       TEXT NOT NULL,
  revision   INTEGER NOT NULL,  -- raised by each write
  look_at    INTEGER,           -- when an engine must look at it
  rule       TEXT NOT NULL,     -- when it fires
  work       TEXT NOT NULL,     -- what a fire enqueues; sealed by a codec
  state      TEXT NOT NULL,     -- its next fire, its last run, its pause
  created_at INTEGER NOT NULL,
  updated_at INTEGER NOT NULL,
  PRIMARY KEY (namespace, name)
) WITHOUT ROWID;

CREATE INDEX weaver_schedules_by_look ON weaver_schedules (namespace, look_at, name) WHERE look_at IS NOT NULL;

CREATE TABLE weaver_schedule_fires (
  namespace   TEXT NOT NULL,
  schedule    TEXT NOT NULL,
  at          INTEGER NOT NULL,  -- the scheduled time, or the first of several
  until_at    INTEGER NOT NULL,  -- the last of several
  times       INTEGER NOT NULL,  -- how many
  kind        TEXT NOT NULL,     -- fired, skipped, queued
  reason      TEXT,
  actor       TEXT,              -- who asked for it, if not the schedule
  run_task    BLOB,
  run_job     BLOB,
  recorded_at INTEGER NOT NULL,
  PRIMARY KEY (namespace, schedule, at)
) WITHOUT ROWID;

CREATE INDEX weaver_outbox_events_by_lane ON weaver_outbox_events (namespace, queue, task_type, lane_group, priority, available_at, task_id, concurrency_key);

CREATE INDEX weaver_outbox_events_by_key ON weaver_outbox_events (namespace, concurrency_key, queue, task_type, lane_group, available_at) WHERE concurrency_key IS NOT NULL;

CREATE INDEX weaver_conc_waiters_by_lane ON weaver_conc_waiters (namespace, key, queue, task_type, lane_group, due_at, task_id);

CREATE TABLE weaver_limits (
  namespace  TEXT NOT NULL,
  name       TEXT NOT NULL,  -- queue:NAME, type:NAME, label:KEY=VALUE, rate:KEY
  spec       TEXT NOT NULL,
  revision   INTEGER NOT NULL,
  updated_at INTEGER NOT NULL,
  actor      TEXT,
  reason     TEXT,
  PRIMARY KEY (namespace, name)
) WITHOUT ROWID;

CREATE TABLE weaver_limit_changes (
  namespace TEXT NOT NULL,
  revision  INTEGER NOT NULL,  -- raised by each change of a limit
  PRIMARY KEY (namespace)
) WITHOUT ROWID;

CREATE TABLE weaver_rates (
  namespace  TEXT NOT NULL,
  name       TEXT NOT NULL,  -- of a limit, or rate:KEY
  arrival    INTEGER NOT NULL,  -- theoretical arrival time of the next start (GCRA)
  rest_until INTEGER NOT NULL,  -- no start before
  idle_at    INTEGER NOT NULL,  -- from when on the row says nothing: the later of both
  PRIMARY KEY (namespace, name)
) WITHOUT ROWID;

CREATE INDEX weaver_rates_by_idle ON weaver_rates (namespace, idle_at);

INSERT INTO weaver_store_meta (namespace, key, value) VALUES ('', 'generation', lower(hex(randomblob(16))));
