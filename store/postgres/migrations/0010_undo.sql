-- Steps can be undone: a task ends without success after an undo phase, in which it
-- waits with the reason 'undo'. An older program would end it before that.
ALTER TABLE weaver_tasks ADD COLUMN undo_open bigint DEFAULT 0;  -- steps with an undo that are to be undone
ALTER TABLE weaver_tasks ADD COLUMN undo_no bigint DEFAULT 0;    -- of the last beginning of such a step
ALTER TABLE weaver_tasks ADD COLUMN undo text COLLATE "C";                -- the undo phase, as JSON; stays when that was given up
ALTER TABLE weaver_steps ADD COLUMN undo smallint DEFAULT 0;       -- 0 none, 1 open, 2 undone, 3 skipped, 4 kept: a point of no return came after it
ALTER TABLE weaver_steps ADD COLUMN undo_no bigint DEFAULT 0;    -- the undo_no of its task when it began
ALTER TABLE weaver_steps ADD COLUMN round bigint DEFAULT 0;      -- how often a step of this name was undone or skipped before

-- Tasks that may hold their keys while they are undone.
CREATE INDEX weaver_tasks_undoing ON weaver_tasks (namespace, concurrency_key, task_id) WHERE undo IS NOT NULL AND concurrency_key IS NOT NULL;

-- Tasks that were to run once more to clean up are in their undo phase. They were
-- cancelled, missed their deadlines, or used their budgets up.
UPDATE weaver_tasks SET state = 'pending', waiting_reason = 'undo', cancel_requested = 1, plain = 0, last_error_kind = e.kind, last_error_json = e.error,
  undo = CAST(json_build_object('ends_as', CASE WHEN cancel_kind = 'budget' THEN 'failed' ELSE 'cancelled' END, 'error', CAST(e.error AS json),
    'began', to_char(to_timestamp(updated_at / 1000000) AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS"Z"')) AS text)
FROM (
  SELECT namespace AS ns, task_id AS id, kind, CAST(json_build_object('kind', kind, 'message', message) AS text) AS error FROM (
    SELECT t.namespace, t.task_id,
      CASE t.cancel_kind WHEN 'deadline' THEN 'deadline' WHEN 'budget' THEN 'budget' WHEN 'job_budget' THEN 'budget' ELSE 'cancelled' END AS kind,
      CASE t.cancel_kind WHEN 'deadline' THEN 'its deadline passed at ' || to_char(to_timestamp(t.deadline_at / 1000000) AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS"Z"')
        WHEN 'budget' THEN 'the budget is used up: ' || coalesce(t.cancel_reason, '') WHEN 'job_budget' THEN 'the budget is used up: ' || coalesce(t.cancel_reason, '')
        ELSE 'cancelled' || coalesce(' by ' || t.cancel_by, '') || coalesce(': ' || t.cancel_reason, '') END AS message
    FROM (SELECT namespace, task_id FROM weaver_outbox_events UNION SELECT namespace, task_id FROM weaver_conc_waiters
      UNION SELECT namespace, task_id FROM weaver_paused_tasks) d
    JOIN weaver_tasks t ON t.namespace = d.namespace AND t.task_id = d.task_id
    WHERE t.state = 'ready' AND t.cancel_requested <> 0) c
) e WHERE namespace = e.ns AND task_id = e.id;
