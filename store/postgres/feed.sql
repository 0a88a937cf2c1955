-- The triggers that write a feed, each behind a line of three dashes. They are made
-- when the first feed begins, and cost nothing before.
---
CREATE TRIGGER weaver_feed_enqueued AFTER INSERT ON weaver_tasks REFERENCING NEW TABLE AS added FOR EACH STATEMENT EXECUTE FUNCTION weaver_feed_enqueued()
---
CREATE TRIGGER weaver_feed_attempt AFTER INSERT ON weaver_attempts REFERENCING NEW TABLE AS added FOR EACH STATEMENT EXECUTE FUNCTION weaver_feed_attempt()
---
CREATE TRIGGER weaver_feed_event AFTER INSERT ON weaver_events REFERENCING NEW TABLE AS added FOR EACH STATEMENT EXECUTE FUNCTION weaver_feed_event()
---
CREATE TRIGGER weaver_feed_log AFTER INSERT ON weaver_logs REFERENCING NEW TABLE AS added FOR EACH STATEMENT EXECUTE FUNCTION weaver_feed_log()
---
CREATE TRIGGER weaver_feed_state AFTER UPDATE OF state ON weaver_tasks FOR EACH ROW
WHEN (OLD.state <> NEW.state AND (NEW.state = 'running' OR OLD.state <> 'running' AND NEW.state IN ('succeeded', 'failed', 'cancelled', 'blocked')
  OR OLD.state IN ('succeeded', 'failed', 'cancelled', 'blocked') AND NEW.state IN ('pending', 'ready')))
EXECUTE FUNCTION weaver_feed_state()
---
CREATE TRIGGER weaver_feed_settled AFTER UPDATE OF state ON weaver_jobs FOR EACH ROW
WHEN (OLD.state <> NEW.state AND NEW.state IN ('succeeded', 'failed', 'cancelled'))
EXECUTE FUNCTION weaver_feed_settled()
