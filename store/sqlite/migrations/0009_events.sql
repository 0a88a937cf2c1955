-- The latest value that a task keeps under a name.
CREATE TABLE weaver_checkpoints (
  namespace  TEXT NOT NULL,
  task_id    BLOB NOT NULL,
  name       TEXT NOT NULL,
  value      TEXT NOT NULL,
  attempt_no INTEGER NOT NULL,
  saved_at   INTEGER NOT NULL,
  PRIMARY KEY (namespace, task_id, name)
) WITHOUT ROWID;

-- Events of tasks, and the lines of their logs. seq orders the rows of a task in both
-- tables together; above the 24 low bits is the epoch of the lease. body is JSON
-- without what all events of the task have in common. Nothing is read from here to
-- decide.
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
