-- Work that follows from a committed transaction and was too much for it. Any
-- reaper works it off, a bounded number of rows at a time.
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
