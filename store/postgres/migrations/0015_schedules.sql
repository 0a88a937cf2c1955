-- additive
-- Schedules (docs/schedules.md). Times are microseconds.
CREATE TABLE weaver_schedules (
  namespace text COLLATE "C" NOT NULL,
  name text COLLATE "C" NOT NULL,
  revision bigint NOT NULL,  -- raised by each write
  look_at bigint,  -- when an engine must look at it
  rule text COLLATE "C" NOT NULL,  -- when it fires
  work text COLLATE "C" NOT NULL,  -- what a fire enqueues; sealed by a codec
  state text COLLATE "C" NOT NULL,  -- its next fire, its last run, its pause
  created_at bigint NOT NULL,
  updated_at bigint NOT NULL,
  PRIMARY KEY (namespace, name)
);
CREATE INDEX weaver_schedules_by_look ON weaver_schedules (namespace, look_at, name) WHERE look_at IS NOT NULL;
CREATE TABLE weaver_schedule_fires (
  namespace text COLLATE "C" NOT NULL,
  schedule text COLLATE "C" NOT NULL,
  at bigint NOT NULL,  -- the scheduled time, or the first of several
  until_at bigint NOT NULL,  -- the last of several
  times bigint NOT NULL,  -- how many
  kind text COLLATE "C" NOT NULL,  -- fired, skipped, queued
  reason text COLLATE "C",
  actor text COLLATE "C",  -- who asked for it, if not the schedule
  run_task bytea,
  run_job bytea,
  recorded_at bigint NOT NULL,
  PRIMARY KEY (namespace, schedule, at)
);
