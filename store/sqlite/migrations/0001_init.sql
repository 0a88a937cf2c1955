-- Ids are 16-byte blobs (ULIDs sort by creation), instants and durations are
-- integers of microseconds, maps and errors are JSON text. Tables are clustered
-- by their key, namespace first. Nothing that a claim or a finish changes is in
-- an index, but for the small one over tasks that need a person's eye.

CREATE TABLE store_meta (
  namespace TEXT NOT NULL,   -- '' for what holds for all
  key       TEXT NOT NULL,
  value     TEXT NOT NULL,
  PRIMARY KEY (namespace, key)
) WITHOUT ROWID;

INSERT INTO store_meta (namespace, key, value) VALUES ('', 'generation', lower(hex(randomblob(16))));

CREATE TABLE jobs (
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
  finished_at      INTEGER,
  PRIMARY KEY (namespace, job_id)
) WITHOUT ROWID;

-- The row that every move rewrites, so it has few columns: what is fixed and
-- nobody selects by is in options_json, what is long is in payloads. Counters
-- have no NOT NULL, which SQLite would test at every insert.
CREATE TABLE tasks (
  namespace        TEXT NOT NULL,
  task_id          BLOB NOT NULL,
  task_type        TEXT NOT NULL,
  queue            TEXT NOT NULL,
  priority         INTEGER NOT NULL,
  state            TEXT NOT NULL,
  waiting_reason   TEXT,
  ready_at         INTEGER,            -- not before; the dispatch row says when it is due
  remaining_deps   INTEGER DEFAULT 0,
  flags            INTEGER NOT NULL,   -- 1 plain, 2 needed, 4 claimed as the only suspect; in payloads: 8 input, 16 output, 32 unblock_input
  lease_epoch      INTEGER DEFAULT 0,
  lease_id         BLOB,
  leased_by        TEXT,               -- who holds or last held the lease
  lease_expires_at INTEGER,
  attempt_no       INTEGER DEFAULT 0,
  attempt_count    INTEGER DEFAULT 0,
  step_count       INTEGER DEFAULT 0,
  crash_count      INTEGER DEFAULT 0,
  suspect_losses   INTEGER DEFAULT 0,
  internal_count   INTEGER DEFAULT 0,
  repair_count     INTEGER DEFAULT 0,
  started_version  INTEGER DEFAULT 0,
  input            TEXT,
  schema_version   INTEGER,
  output           TEXT,
  last_error_kind  TEXT,
  last_error_json  TEXT,
  progress         TEXT,
  max_attempts     INTEGER,
  max_repairs      INTEGER,
  options_json     TEXT,               -- backoff, backoff_max, timeout, concurrency_limit, node, labels, metadata
  job_id           BLOB,
  parent_task_id   BLOB,
  idempotency_key  TEXT,
  concurrency_key  TEXT,
  cancel_requested INTEGER DEFAULT 0,
  cancel_kind      TEXT,
  cancel_by        TEXT,
  cancel_reason    TEXT,
  deadline_at      INTEGER,
  created_at       INTEGER NOT NULL,
  updated_at       INTEGER NOT NULL,
  started_at       INTEGER,
  finished_at      INTEGER,
  PRIMARY KEY (namespace, task_id),
  CHECK ((lease_id IS NOT NULL) = (state = 'running'))
) WITHOUT ROWID;

CREATE UNIQUE INDEX tasks_by_idempotency_key ON tasks (namespace, task_type, idempotency_key) WHERE idempotency_key IS NOT NULL;
CREATE INDEX tasks_by_job ON tasks (namespace, job_id, task_id) WHERE job_id IS NOT NULL;
-- Not IN (…): for a list SQLite builds a temporary table at every insert and update.
CREATE INDEX tasks_by_end ON tasks (namespace, state, task_id) WHERE state = 'failed' OR state = 'blocked' OR state = 'cancelled';

-- What is too long to be rewritten with every move of its task.
CREATE TABLE payloads (
  namespace TEXT NOT NULL,
  task_id   BLOB NOT NULL,
  kind      TEXT NOT NULL,   -- input, output, unblock_input
  data      TEXT NOT NULL,
  PRIMARY KEY (namespace, task_id, kind)
) WITHOUT ROWID;

CREATE TABLE task_dependencies (
  namespace          TEXT NOT NULL,
  task_id            BLOB NOT NULL,
  depends_on_task_id BLOB NOT NULL,
  kind               TEXT NOT NULL,
  done               INTEGER NOT NULL DEFAULT 0,
  PRIMARY KEY (namespace, task_id, depends_on_task_id)
) WITHOUT ROWID;

CREATE INDEX task_dependencies_by_need ON task_dependencies (namespace, depends_on_task_id, task_id);
CREATE INDEX task_dependencies_open ON task_dependencies (namespace, task_id) WHERE done = 0;

CREATE TABLE attempts (
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
  outcome_hash TEXT,
  PRIMARY KEY (namespace, task_id, attempt_no)
) WITHOUT ROWID;

CREATE TABLE decisions (
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

-- A completed step has 0 and 0 for attempt_no and try, so that the key itself
-- allows one per name; by_attempt and by_try say which attempt it was.
CREATE TABLE steps (
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
  completed_at INTEGER NOT NULL,
  PRIMARY KEY (namespace, task_id, name, attempt_no, try)
) WITHOUT ROWID;

-- A row says: this task is claimable from available_at on. The claim deletes it.
CREATE TABLE outbox_events (
  namespace       TEXT NOT NULL,
  task_id         BLOB NOT NULL,
  queue           TEXT NOT NULL,
  task_type       TEXT NOT NULL,
  priority        INTEGER NOT NULL,
  available_at    INTEGER NOT NULL,
  concurrency_key TEXT,
  PRIMARY KEY (namespace, task_id)
) WITHOUT ROWID;

CREATE INDEX outbox_events_by_lane ON outbox_events (namespace, queue, task_type, priority, available_at, task_id, concurrency_key);
CREATE INDEX outbox_events_by_key ON outbox_events (namespace, concurrency_key, available_at) WHERE concurrency_key IS NOT NULL;

-- One row per claim call, for the reaper and for lists of running tasks.
-- task_ids are the 16-byte ids one after the other.
CREATE TABLE claims (
  namespace TEXT NOT NULL,
  lease_id  BLOB NOT NULL,
  worker_id TEXT NOT NULL,
  check_at  INTEGER NOT NULL,   -- no lease of it ends earlier
  task_ids  BLOB NOT NULL,
  PRIMARY KEY (namespace, lease_id)
) WITHOUT ROWID;

CREATE INDEX claims_by_check ON claims (namespace, check_at, worker_id);

CREATE TABLE timers (
  namespace TEXT NOT NULL,
  due_at    INTEGER NOT NULL,
  task_id   BLOB NOT NULL,
  PRIMARY KEY (namespace, due_at, task_id)
) WITHOUT ROWID;

CREATE TABLE task_labels (
  namespace TEXT NOT NULL,
  key       TEXT NOT NULL,
  value     TEXT NOT NULL,
  task_id   BLOB NOT NULL,
  PRIMARY KEY (namespace, key, value, task_id)
) WITHOUT ROWID;

CREATE TABLE conc_keys (
  namespace TEXT NOT NULL,
  key       TEXT NOT NULL,
  held      INTEGER NOT NULL,
  cap       INTEGER NOT NULL,
  PRIMARY KEY (namespace, key)
) WITHOUT ROWID;

CREATE TABLE conc_waiters (
  namespace TEXT NOT NULL,
  key       TEXT NOT NULL,
  due_at    INTEGER NOT NULL,
  task_id   BLOB NOT NULL,
  PRIMARY KEY (namespace, key, due_at, task_id)
) WITHOUT ROWID;

CREATE INDEX conc_waiters_by_task ON conc_waiters (namespace, task_id);

CREATE TABLE workers (
  namespace    TEXT NOT NULL,
  worker_id    TEXT NOT NULL,
  name         TEXT NOT NULL,
  ttl          INTEGER NOT NULL,
  last_seen    INTEGER NOT NULL,
  steady_since INTEGER NOT NULL,   -- 0: its heartbeats were never interrupted
  PRIMARY KEY (namespace, worker_id)
) WITHOUT ROWID;

CREATE TABLE paused_queues (
  namespace TEXT NOT NULL,
  queue     TEXT NOT NULL,
  at        INTEGER NOT NULL,
  actor     TEXT NOT NULL,
  reason    TEXT NOT NULL,
  PRIMARY KEY (namespace, queue)
) WITHOUT ROWID;

CREATE TABLE audit (
  namespace TEXT NOT NULL,
  audit_id  INTEGER NOT NULL,
  at        INTEGER NOT NULL,
  actor     TEXT NOT NULL,
  verb      TEXT NOT NULL,
  target    TEXT NOT NULL,
  reason    TEXT NOT NULL,
  PRIMARY KEY (namespace, audit_id)
) WITHOUT ROWID;

CREATE INDEX audit_by_target ON audit (namespace, target, audit_id);
