-- additive
-- Limits, rates and fairness (docs/limits.md). Times are microseconds.
-- A lane is a queue, a type, a group and a priority. The group holds what a task shares a limit or a turn with.
ALTER TABLE weaver_tasks ADD COLUMN lane_group text COLLATE "C";
ALTER TABLE weaver_outbox_events ADD COLUMN lane_group text COLLATE "C" NOT NULL DEFAULT '';
DROP INDEX weaver_outbox_events_by_lane;
CREATE INDEX weaver_outbox_events_by_lane ON weaver_outbox_events (namespace, queue, task_type, lane_group, priority, available_at, task_id, concurrency_key);
ALTER TABLE weaver_conc_waiters ADD COLUMN lane_group text COLLATE "C" NOT NULL DEFAULT '';
DROP INDEX weaver_outbox_events_by_key;
CREATE INDEX weaver_outbox_events_by_key ON weaver_outbox_events (namespace, concurrency_key, queue, task_type, lane_group, available_at) WHERE concurrency_key IS NOT NULL;
DROP INDEX weaver_conc_waiters_by_lane;
CREATE INDEX weaver_conc_waiters_by_lane ON weaver_conc_waiters (namespace, key, queue, task_type, lane_group, due_at, task_id);
CREATE TABLE weaver_limits (
  namespace text COLLATE "C" NOT NULL,
  name text COLLATE "C" NOT NULL,  -- queue:NAME, type:NAME, label:KEY=VALUE, rate:KEY
  spec text COLLATE "C" NOT NULL,
  revision bigint NOT NULL,
  updated_at bigint NOT NULL,
  actor text COLLATE "C",
  reason text COLLATE "C",
  PRIMARY KEY (namespace, name)
);
CREATE TABLE weaver_limit_changes (
  namespace text COLLATE "C" NOT NULL,
  revision bigint NOT NULL,  -- raised by each change of a limit
  PRIMARY KEY (namespace)
);
CREATE TABLE weaver_rates (
  namespace text COLLATE "C" NOT NULL,
  name text COLLATE "C" NOT NULL,  -- of a limit, or rate:KEY
  arrival bigint NOT NULL,  -- theoretical arrival time of the next start (GCRA)
  rest_until bigint NOT NULL,  -- no start before
  idle_at bigint NOT NULL,  -- from when on the row says nothing: the later of both
  PRIMARY KEY (namespace, name)
);
CREATE INDEX weaver_rates_by_idle ON weaver_rates (namespace, idle_at);
