-- additive
-- The feed of what happens in a namespace, for those that keep one: keep is for how long,
-- in microseconds, 0: not any more; rows up to pruned are gone. The rows are written by
-- triggers, which are made when the first feed begins (feed.sql), so whoever changes a
-- task or job writes them.
CREATE TABLE weaver_feeds (
  keep      bigint NOT NULL,
  pruned    bigint NOT NULL,
  namespace text COLLATE "C" NOT NULL,
  PRIMARY KEY (namespace)
);

-- A row says what happened; values and errors stay where they are. Positions are drawn
-- while the row of the task is locked, so those of a task have the order in which it
-- happened.
CREATE SEQUENCE weaver_feed_pos;

-- The functions run as the owner of the tables, so that those who only work need no
-- right to the sequence; and in this schema, whatever the search_path of the session is.
CREATE FUNCTION weaver_feed_last() RETURNS bigint LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT AS $$
BEGIN
  RETURN (SELECT CASE WHEN is_called THEN last_value ELSE 0 END FROM weaver_feed_pos);
END $$;

CREATE FUNCTION weaver_feed_skip() RETURNS bigint LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT AS $$
BEGIN
  RETURN nextval('weaver_feed_pos');
END $$;

CREATE TABLE weaver_feed (
  pos        bigint NOT NULL,
  at         bigint NOT NULL,
  size       bigint NOT NULL DEFAULT 0,
  attempt_no bigint,
  epoch      bigint,
  seq        bigint,
  namespace  text COLLATE "C" NOT NULL,
  kind       text COLLATE "C" NOT NULL,
  task_id    bytea,
  job_id     bytea,
  task_type  text COLLATE "C",
  queue      text COLLATE "C",
  state      text COLLATE "C",
  waiting    text COLLATE "C",
  name       text COLLATE "C",
  PRIMARY KEY (namespace, pos)
);

CREATE FUNCTION weaver_feed_enqueued() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT AS $$
BEGIN
  INSERT INTO weaver_feed (namespace, pos, kind, at, task_id, job_id, task_type, queue, attempt_no, epoch, state, waiting)
  SELECT n.namespace, nextval('weaver_feed_pos'), 'enqueued', n.updated_at, n.task_id, n.job_id, n.task_type, n.queue, n.attempt_no, n.lease_epoch, n.state, n.waiting_reason
  FROM (SELECT * FROM added ORDER BY task_id) n
  JOIN weaver_feeds f ON f.namespace = n.namespace
  WHERE f.keep > 0;
  INSERT INTO weaver_feed (namespace, pos, kind, at, task_id, job_id, task_type, queue, attempt_no, epoch, state, waiting)
  SELECT n.namespace, nextval('weaver_feed_pos'), 'over', n.updated_at, n.task_id, n.job_id, n.task_type, n.queue, n.attempt_no, n.lease_epoch, n.state, n.waiting_reason
  FROM (SELECT * FROM added ORDER BY task_id) n
  JOIN weaver_feeds f ON f.namespace = n.namespace
  WHERE f.keep > 0 AND n.state IN ('succeeded', 'failed', 'cancelled', 'blocked');
  RETURN NULL;
END $$;

CREATE FUNCTION weaver_feed_state() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT AS $$
BEGIN
  INSERT INTO weaver_feed (namespace, pos, kind, at, task_id, job_id, task_type, queue, attempt_no, epoch, state, waiting)
  SELECT NEW.namespace, nextval('weaver_feed_pos'), CASE NEW.state WHEN 'running' THEN 'started' WHEN 'pending' THEN 'reopened' WHEN 'ready' THEN 'reopened' ELSE 'over' END,
    NEW.updated_at, NEW.task_id, NEW.job_id, NEW.task_type, NEW.queue, NEW.attempt_no, NEW.lease_epoch, NEW.state, NEW.waiting_reason
  FROM weaver_feeds f WHERE f.namespace = NEW.namespace AND f.keep > 0;
  RETURN NULL;
END $$;

CREATE FUNCTION weaver_feed_attempt() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT AS $$
BEGIN
  INSERT INTO weaver_feed (namespace, pos, kind, at, task_id, job_id, task_type, queue, attempt_no, epoch, state, waiting, name, size)
  SELECT n.namespace, nextval('weaver_feed_pos'), 'ended', n.finished_at, n.task_id, t.job_id, t.task_type, t.queue, n.attempt_no, n.lease_epoch, t.state, t.waiting_reason, n.outcome_kind, coalesce(octet_length(n.error_json), 0)
  FROM added n
  JOIN weaver_tasks t ON t.namespace = n.namespace AND t.task_id = n.task_id
  JOIN weaver_feeds f ON f.namespace = n.namespace
  WHERE f.keep > 0;
  INSERT INTO weaver_feed (namespace, pos, kind, at, task_id, job_id, task_type, queue, attempt_no, epoch, state, waiting)
  SELECT n.namespace, nextval('weaver_feed_pos'), 'over', n.finished_at, n.task_id, t.job_id, t.task_type, t.queue, n.attempt_no, t.lease_epoch, t.state, t.waiting_reason
  FROM added n
  JOIN weaver_tasks t ON t.namespace = n.namespace AND t.task_id = n.task_id
  JOIN weaver_feeds f ON f.namespace = n.namespace
  WHERE f.keep > 0 AND n.outcome_kind IN ('lease_lost', 'released') AND t.state IN ('succeeded', 'failed', 'cancelled', 'blocked');
  RETURN NULL;
END $$;

CREATE FUNCTION weaver_feed_event() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT AS $$
BEGIN
  INSERT INTO weaver_feed (namespace, pos, kind, at, task_id, job_id, task_type, queue, attempt_no, epoch, state, seq, name, size)
  SELECT n.namespace, nextval('weaver_feed_pos'), 'event', n.at, n.task_id, t.job_id, t.task_type, t.queue, t.attempt_no, t.lease_epoch, t.state, n.seq, n.type, octet_length(n.body)
  FROM (SELECT * FROM added ORDER BY task_id, seq) n
  JOIN weaver_tasks t ON t.namespace = n.namespace AND t.task_id = n.task_id
  JOIN weaver_feeds f ON f.namespace = n.namespace
  WHERE f.keep > 0;
  RETURN NULL;
END $$;

CREATE FUNCTION weaver_feed_log() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT AS $$
BEGIN
  INSERT INTO weaver_feed (namespace, pos, kind, at, task_id, job_id, task_type, queue, attempt_no, epoch, state, seq, name, size)
  SELECT n.namespace, nextval('weaver_feed_pos'), 'log', n.at, n.task_id, t.job_id, t.task_type, t.queue, t.attempt_no, t.lease_epoch, t.state, n.seq, n.type, octet_length(n.body)
  FROM (SELECT * FROM added ORDER BY task_id, seq) n
  JOIN weaver_tasks t ON t.namespace = n.namespace AND t.task_id = n.task_id
  JOIN weaver_feeds f ON f.namespace = n.namespace
  WHERE f.keep > 0;
  RETURN NULL;
END $$;

CREATE FUNCTION weaver_feed_settled() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT AS $$
BEGIN
  INSERT INTO weaver_feed (namespace, pos, kind, at, job_id, state)
  SELECT NEW.namespace, nextval('weaver_feed_pos'), 'settled', NEW.updated_at, NEW.job_id, NEW.state
  FROM weaver_feeds f WHERE f.namespace = NEW.namespace AND f.keep > 0;
  RETURN NULL;
END $$;

-- Nobody else makes triggers of these; the other two are for all who may use the schema.
REVOKE EXECUTE ON FUNCTION weaver_feed_enqueued(), weaver_feed_state(), weaver_feed_attempt(), weaver_feed_event(), weaver_feed_log(), weaver_feed_settled() FROM PUBLIC;
GRANT EXECUTE ON FUNCTION weaver_feed_last(), weaver_feed_skip() TO PUBLIC;
