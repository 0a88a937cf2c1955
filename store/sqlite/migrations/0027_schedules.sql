-- additive
-- Schedules (docs/schedules.md). Times are microseconds.
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
