-- The triggers that write a feed, each behind a line of three dashes. They are made
-- when the first feed begins, and cost nothing before.
---
CREATE TRIGGER IF NOT EXISTS weaver_feed_enqueued AFTER INSERT ON weaver_tasks BEGIN
  INSERT INTO weaver_feed (namespace, pos, kind, at, task_id, job_id, task_type, queue, attempt_no, epoch, state, waiting)
  SELECT NEW.namespace, max(f.pruned, coalesce((SELECT pos FROM weaver_feed WHERE namespace = NEW.namespace ORDER BY pos DESC LIMIT 1), 0)) + 1, 'enqueued', NEW.updated_at, NEW.task_id, NEW.job_id, NEW.task_type, NEW.queue, NEW.attempt_no, NEW.lease_epoch, NEW.state, NEW.waiting_reason
  FROM weaver_feeds f
  WHERE f.namespace = NEW.namespace AND f.keep > 0;
  INSERT INTO weaver_feed (namespace, pos, kind, at, task_id, job_id, task_type, queue, attempt_no, epoch, state, waiting)
  SELECT NEW.namespace, max(f.pruned, coalesce((SELECT pos FROM weaver_feed WHERE namespace = NEW.namespace ORDER BY pos DESC LIMIT 1), 0)) + 1, 'over', NEW.updated_at, NEW.task_id, NEW.job_id, NEW.task_type, NEW.queue, NEW.attempt_no, NEW.lease_epoch, NEW.state, NEW.waiting_reason
  FROM weaver_feeds f
  WHERE f.namespace = NEW.namespace AND f.keep > 0
    AND NEW.state IN ('succeeded', 'failed', 'cancelled', 'blocked');
END
---
CREATE TRIGGER IF NOT EXISTS weaver_feed_state AFTER UPDATE OF state ON weaver_tasks
WHEN OLD.state <> NEW.state AND (NEW.state = 'running' OR OLD.state <> 'running' AND NEW.state IN ('succeeded', 'failed', 'cancelled', 'blocked')
  OR OLD.state IN ('succeeded', 'failed', 'cancelled', 'blocked') AND NEW.state IN ('pending', 'ready')) BEGIN
  INSERT INTO weaver_feed (namespace, pos, kind, at, task_id, job_id, task_type, queue, attempt_no, epoch, state, waiting)
  SELECT NEW.namespace, max(f.pruned, coalesce((SELECT pos FROM weaver_feed WHERE namespace = NEW.namespace ORDER BY pos DESC LIMIT 1), 0)) + 1, CASE NEW.state WHEN 'running' THEN 'started' WHEN 'pending' THEN 'reopened' WHEN 'ready' THEN 'reopened' ELSE 'over' END, NEW.updated_at, NEW.task_id, NEW.job_id, NEW.task_type, NEW.queue, NEW.attempt_no, NEW.lease_epoch, NEW.state, NEW.waiting_reason
  FROM weaver_feeds f
  WHERE f.namespace = NEW.namespace AND f.keep > 0;
END
---
CREATE TRIGGER IF NOT EXISTS weaver_feed_attempt AFTER INSERT ON weaver_attempts BEGIN
  INSERT INTO weaver_feed (namespace, pos, kind, at, task_id, job_id, task_type, queue, attempt_no, epoch, state, waiting, name, size)
  SELECT NEW.namespace, max(f.pruned, coalesce((SELECT pos FROM weaver_feed WHERE namespace = NEW.namespace ORDER BY pos DESC LIMIT 1), 0)) + 1, 'ended', NEW.finished_at, NEW.task_id, t.job_id, t.task_type, t.queue, NEW.attempt_no, NEW.lease_epoch, t.state, t.waiting_reason, NEW.outcome_kind, coalesce(length(CAST(NEW.error_json AS BLOB)), 0)
  FROM weaver_feeds f
  JOIN weaver_tasks t ON t.namespace = NEW.namespace AND t.task_id = NEW.task_id
  WHERE f.namespace = NEW.namespace AND f.keep > 0;
  INSERT INTO weaver_feed (namespace, pos, kind, at, task_id, job_id, task_type, queue, attempt_no, epoch, state, waiting)
  SELECT NEW.namespace, max(f.pruned, coalesce((SELECT pos FROM weaver_feed WHERE namespace = NEW.namespace ORDER BY pos DESC LIMIT 1), 0)) + 1, 'over', NEW.finished_at, NEW.task_id, t.job_id, t.task_type, t.queue, NEW.attempt_no, t.lease_epoch, t.state, t.waiting_reason
  FROM weaver_feeds f
  JOIN weaver_tasks t ON t.namespace = NEW.namespace AND t.task_id = NEW.task_id
  WHERE f.namespace = NEW.namespace AND f.keep > 0
    AND NEW.outcome_kind IN ('lease_lost', 'released') AND t.state IN ('succeeded', 'failed', 'cancelled', 'blocked');
END
---
CREATE TRIGGER IF NOT EXISTS weaver_feed_event AFTER INSERT ON weaver_events BEGIN
  INSERT INTO weaver_feed (namespace, pos, kind, at, task_id, job_id, task_type, queue, attempt_no, epoch, state, seq, name, size)
  SELECT NEW.namespace, max(f.pruned, coalesce((SELECT pos FROM weaver_feed WHERE namespace = NEW.namespace ORDER BY pos DESC LIMIT 1), 0)) + 1, 'event', NEW.at, NEW.task_id, t.job_id, t.task_type, t.queue, t.attempt_no, t.lease_epoch, t.state, NEW.seq, NEW.type, length(CAST(NEW.body AS BLOB))
  FROM weaver_feeds f
  JOIN weaver_tasks t ON t.namespace = NEW.namespace AND t.task_id = NEW.task_id
  WHERE f.namespace = NEW.namespace AND f.keep > 0;
END
---
CREATE TRIGGER IF NOT EXISTS weaver_feed_log AFTER INSERT ON weaver_logs BEGIN
  INSERT INTO weaver_feed (namespace, pos, kind, at, task_id, job_id, task_type, queue, attempt_no, epoch, state, seq, name, size)
  SELECT NEW.namespace, max(f.pruned, coalesce((SELECT pos FROM weaver_feed WHERE namespace = NEW.namespace ORDER BY pos DESC LIMIT 1), 0)) + 1, 'log', NEW.at, NEW.task_id, t.job_id, t.task_type, t.queue, t.attempt_no, t.lease_epoch, t.state, NEW.seq, NEW.type, length(CAST(NEW.body AS BLOB))
  FROM weaver_feeds f
  JOIN weaver_tasks t ON t.namespace = NEW.namespace AND t.task_id = NEW.task_id
  WHERE f.namespace = NEW.namespace AND f.keep > 0;
END
---
CREATE TRIGGER IF NOT EXISTS weaver_feed_settled AFTER UPDATE OF state ON weaver_jobs
WHEN OLD.state <> NEW.state AND NEW.state IN ('succeeded', 'failed', 'cancelled') BEGIN
  INSERT INTO weaver_feed (namespace, pos, kind, at, job_id, state)
  SELECT NEW.namespace, max(f.pruned, coalesce((SELECT pos FROM weaver_feed WHERE namespace = NEW.namespace ORDER BY pos DESC LIMIT 1), 0)) + 1, 'settled', NEW.updated_at, NEW.job_id, NEW.state
  FROM weaver_feeds f
  WHERE f.namespace = NEW.namespace AND f.keep > 0;
END
