-- additive
-- Statistics of attempts, by slots of 10 seconds, a minute and an hour (width, in
-- microseconds as slot is). Programs that do not know them write none.
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
