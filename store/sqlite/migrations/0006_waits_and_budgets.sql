-- Waits inside a handler. A step that waits is a row in the state waiting: for a
-- signal (awaits is its name, wake_at the end of the wait) or for the children of a
-- call (left are those that have not ended or are not stored yet, stored those that
-- are). It is updated once, to completed; until then its completed_at is 0. An edge
-- to such a child has the step's name.
ALTER TABLE weaver_steps ADD COLUMN awaits TEXT;
ALTER TABLE weaver_steps ADD COLUMN children INTEGER;
ALTER TABLE weaver_steps ADD COLUMN children_left INTEGER;
ALTER TABLE weaver_steps ADD COLUMN children_stored INTEGER;
ALTER TABLE weaver_task_dependencies ADD COLUMN step TEXT;

CREATE INDEX weaver_steps_waiting ON weaver_steps (namespace, task_id, awaits, step_index) WHERE state = 'waiting';

-- How many waits of a task were completed by others: a suspension that does not
-- know of all of them leaves the task claimable.
ALTER TABLE weaver_tasks ADD COLUMN wake_seq INTEGER DEFAULT 0;

-- It has children of a call, which are cancelled when it ends before them.
ALTER TABLE weaver_tasks ADD COLUMN calls INTEGER DEFAULT 0;

-- One row per signal, oldest first; step is the name of the wait that took it.
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

-- What tasks and jobs have used of their budgets: micro-units of cost, attempts in a
-- row without anything new, counted attempts. job_limits says which limits of its
-- job's budget a task counts for.
ALTER TABLE weaver_steps ADD COLUMN cost INTEGER;
ALTER TABLE weaver_tasks ADD COLUMN cost INTEGER DEFAULT 0;
ALTER TABLE weaver_tasks ADD COLUMN idle_attempts INTEGER DEFAULT 0;
ALTER TABLE weaver_tasks ADD COLUMN job_limits INTEGER DEFAULT 0;
ALTER TABLE weaver_jobs ADD COLUMN attempts_used INTEGER NOT NULL DEFAULT 0;
ALTER TABLE weaver_jobs ADD COLUMN cost INTEGER NOT NULL DEFAULT 0;
ALTER TABLE weaver_jobs ADD COLUMN exhausted_at INTEGER;

-- The handler that a router chose, by name, and why.
ALTER TABLE weaver_attempts ADD COLUMN handler TEXT;

-- The task that a rerun repeats.
ALTER TABLE weaver_tasks ADD COLUMN rerun_of BLOB;
