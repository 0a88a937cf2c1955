-- additive
-- Statistics of attempts, by slots of 10 seconds, a minute and an hour (width, in
-- microseconds as slot is). Programs that do not know them write none.
CREATE TABLE weaver_stats (
  width      bigint NOT NULL,
  slot       bigint NOT NULL,
  attempts   bigint NOT NULL,
  namespace  text COLLATE "C" NOT NULL,
  worker     text COLLATE "C" NOT NULL,
  task_type  text COLLATE "C" NOT NULL,
  queue      text COLLATE "C" NOT NULL,
  outcome    text COLLATE "C" NOT NULL,
  error_kind text COLLATE "C" NOT NULL,
  run_times  bytea NOT NULL,
  wait_times bytea NOT NULL,
  PRIMARY KEY (namespace, width, slot, worker, task_type, queue, outcome, error_kind)
);
