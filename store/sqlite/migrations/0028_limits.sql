-- additive
-- Limits, rates and fairness (docs/limits.md). Times are microseconds.
-- A lane is a queue, a type, a group and a priority. The group holds what a task shares a limit or a turn with.
ALTER TABLE weaver_tasks ADD COLUMN lane_group TEXT;
ALTER TABLE weaver_outbox_events ADD COLUMN lane_group TEXT NOT NULL DEFAULT '';
DROP INDEX weaver_outbox_events_by_lane;
CREATE INDEX weaver_outbox_events_by_lane ON weaver_outbox_events (namespace, queue, task_type, lane_group, priority, available_at, task_id, concurrency_key);
ALTER TABLE weaver_conc_waiters ADD COLUMN lane_group TEXT NOT NULL DEFAULT '';
DROP INDEX weaver_outbox_events_by_key;
CREATE INDEX weaver_outbox_events_by_key ON weaver_outbox_events (namespace, concurrency_key, queue, task_type, lane_group, available_at) WHERE concurrency_key IS NOT NULL;
DROP INDEX weaver_conc_waiters_by_lane;
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
