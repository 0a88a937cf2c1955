-- additive
-- The feed of what happens in a namespace, for those that keep one: keep is for how long,
-- in microseconds, 0: not any more; rows up to pruned are gone. The rows are written by
-- triggers, which are made when the first feed begins (feed.sql), so whoever changes a
-- task or job writes them.
CREATE TABLE weaver_feeds (
  namespace TEXT NOT NULL,
  keep      INTEGER NOT NULL,
  pruned    INTEGER NOT NULL,
  PRIMARY KEY (namespace)
) WITHOUT ROWID;

-- A row says what happened; values and errors stay where they are. One transaction writes
-- at a time, so the order of positions is that of commits.
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
