-- Waiters of a concurrency key are woken by lane (queue and task type), so that
-- a due row that no worker takes holds up its own lane only.

ALTER TABLE weaver_conc_waiters ADD COLUMN queue TEXT NOT NULL DEFAULT '';
ALTER TABLE weaver_conc_waiters ADD COLUMN task_type TEXT NOT NULL DEFAULT '';

UPDATE weaver_conc_waiters SET queue = t.queue, task_type = t.task_type
FROM weaver_tasks t WHERE t.namespace = weaver_conc_waiters.namespace AND t.task_id = weaver_conc_waiters.task_id;

CREATE INDEX weaver_conc_waiters_by_lane ON weaver_conc_waiters (namespace, key, queue, task_type, due_at, task_id);

DROP INDEX weaver_outbox_events_by_key;
CREATE INDEX weaver_outbox_events_by_key ON weaver_outbox_events (namespace, concurrency_key, queue, task_type, available_at) WHERE concurrency_key IS NOT NULL;

-- Under a key with room each lane with waiters has a due row from now on. One
-- too many does no harm: the claim that meets it moves it back.
INSERT INTO weaver_outbox_events (namespace, task_id, queue, task_type, priority, available_at, concurrency_key)
SELECT w.namespace, w.task_id, w.queue, w.task_type, t.priority, w.due_at, w.key
FROM weaver_conc_keys k
JOIN weaver_conc_waiters w ON w.namespace = k.namespace AND w.key = k.key
JOIN weaver_tasks t ON t.namespace = w.namespace AND t.task_id = w.task_id
WHERE k.held < k.cap AND NOT EXISTS (
  SELECT 1 FROM weaver_conc_waiters o
  WHERE o.namespace = w.namespace AND o.key = w.key AND o.queue = w.queue AND o.task_type = w.task_type
    AND (o.due_at, o.task_id) < (w.due_at, w.task_id));

DELETE FROM weaver_conc_waiters WHERE EXISTS (
  SELECT 1 FROM weaver_outbox_events d WHERE d.namespace = weaver_conc_waiters.namespace AND d.task_id = weaver_conc_waiters.task_id);

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
