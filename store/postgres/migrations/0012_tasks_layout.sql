-- weaver_tasks is laid out by how often a column changes. The log of an update leaves out
-- what the old and the new version of a row have in common before the first byte that
-- changes: so what a claim and a good end write comes last, behind the texts that never
-- change. Columns of fixed width that are never NULL come first: a reader computes their
-- places once.
--
-- end_state is written by the statements that write the state, and the table checks
-- nothing: either was computed for each version of a row. Older programs do not write
-- end_state.
LOCK TABLE weaver_tasks IN ACCESS EXCLUSIVE MODE;

CREATE TABLE weaver_tasks_new (
  priority          bigint NOT NULL,
  created_at        bigint NOT NULL,
  schema_version    bigint,
  max_attempts      bigint,
  max_repairs       bigint,
  depth             bigint DEFAULT 0,     -- how far a child is below a task that is none
  job_limits        bigint DEFAULT 0,     -- the limits of its job's budget that it counts for
  remaining_deps    bigint DEFAULT 0,
  step_count        bigint DEFAULT 0,
  crash_count       bigint DEFAULT 0,
  quarantine_losses bigint DEFAULT 0,
  internal_count    bigint DEFAULT 0,
  repair_count      bigint DEFAULT 0,
  wake_seq          bigint DEFAULT 0,     -- waits that others completed: a suspension that does not know of all leaves the task claimable
  calls             bigint DEFAULT 0,     -- it has children of a call, which are cancelled when it ends before them
  cost              bigint DEFAULT 0,     -- micro-units
  idle_attempts     bigint DEFAULT 0,     -- in a row, without anything new
  undo_open         bigint DEFAULT 0,     -- steps with an undo that are to be undone
  undo_no           bigint DEFAULT 0,     -- of the last beginning of such a step
  plain             smallint DEFAULT 0,   -- no job, parent, node, need, dependent, deadline, key, label, metadata or long input; never changes
  needed            smallint DEFAULT 0,   -- another task depends on it
  isolated          smallint DEFAULT 0,   -- quarantined, and claimed as the only quarantined task of its worker
  has_payloads      smallint DEFAULT 0,   -- weaver_payloads may have rows of it
  cancel_requested  smallint DEFAULT 0,
  allow_failure     smallint DEFAULT 0,   -- its failure does not count against its job
  values_dropped    smallint DEFAULT 0,   -- a rule of retention dropped its input, output and progress, and values of its steps and signals
  deadline_at       bigint,
  ready_at          bigint,               -- the task does not start earlier; its outbox event has the time at which it is due
  open_if_failed    bigint,               -- needs that are open and of which one has to fail; NULL if there are none or one went wrong
  namespace         text COLLATE "C" NOT NULL,
  task_id           bytea NOT NULL,
  task_type         text COLLATE "C" NOT NULL,
  queue             text COLLATE "C" NOT NULL,
  options_json      text COLLATE "C",     -- backoff, backoff_max, timeout, concurrency_limit, node, labels, metadata
  input             text COLLATE "C",
  job_id            bytea,
  parent_task_id    bytea,
  rerun_of          bytea,                -- the task that a rerun repeats
  idempotency_key   text COLLATE "C",
  concurrency_key   text COLLATE "C",
  lease_epoch       bigint DEFAULT 0,
  attempt_no        bigint DEFAULT 0,
  attempt_count     bigint DEFAULT 0,
  started_version   bigint DEFAULT 0,
  updated_at        bigint NOT NULL,
  started_at        bigint,
  lease_expires_at  bigint,
  finished_at       bigint,
  state             text COLLATE "C" NOT NULL,
  lease_id          bytea,                -- of a running task, else NULL
  leased_by         text COLLATE "C",     -- the worker's name; it outlives the lease
  waiting_reason    text COLLATE "C",
  output            text COLLATE "C",
  join_kind         text COLLATE "C",     -- what it waits for by edges: rerun, complete, dependency, outside, repair
  last_error_kind   text COLLATE "C",
  last_error_json   text COLLATE "C",
  progress          text COLLATE "C",
  cancel_kind       text COLLATE "C",
  cancel_by         text COLLATE "C",
  cancel_reason     text COLLATE "C",
  undo              text COLLATE "C",     -- the undo phase, as JSON; stays when that was given up
  end_state         text COLLATE "C"      -- the state of a task that ended without success, else NULL: it changes with no claim and no good end
) WITH (fillfactor = 45, autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 10000, autovacuum_analyze_scale_factor = 0.05);

-- What belongs to the old table is made for the new one: the rows, the owner, the rights
-- and the triggers of feeds.
DO $$
DECLARE
  old oid := 'weaver_tasks'::regclass;
  names text;
  owner oid;
  more text[];
  sql text;
BEGIN
  SELECT string_agg(quote_ident(attname), ', ') INTO names FROM pg_attribute WHERE attrelid = old AND attnum > 0 AND NOT attisdropped;
  EXECUTE format('INSERT INTO weaver_tasks_new (%s) SELECT %s FROM weaver_tasks', names, names);
  SELECT relowner INTO owner FROM pg_class WHERE oid = old;
  SELECT array_agg(text) INTO more FROM (
    SELECT format('GRANT %s ON weaver_tasks TO %s%s', a.privilege_type, CASE a.grantee WHEN 0 THEN 'PUBLIC' ELSE quote_ident(pg_get_userbyid(a.grantee)) END,
      CASE WHEN a.is_grantable THEN ' WITH GRANT OPTION' ELSE '' END) AS text
    FROM pg_class c, aclexplode(c.relacl) a WHERE c.oid = old AND a.grantee <> c.relowner
    UNION ALL
    SELECT format('GRANT %s (%I) ON weaver_tasks TO %s', a.privilege_type, c.attname, CASE a.grantee WHEN 0 THEN 'PUBLIC' ELSE quote_ident(pg_get_userbyid(a.grantee)) END)
    FROM pg_attribute c, aclexplode(c.attacl) a WHERE c.attrelid = old AND NOT c.attisdropped
    UNION ALL
    SELECT pg_get_triggerdef(oid) FROM pg_trigger WHERE tgrelid = old AND NOT tgisinternal) l;
  DROP TABLE weaver_tasks;
  ALTER TABLE weaver_tasks_new RENAME TO weaver_tasks;
  IF owner <> (SELECT relowner FROM pg_class WHERE oid = 'weaver_tasks'::regclass) THEN
    EXECUTE format('ALTER TABLE weaver_tasks OWNER TO %I', pg_get_userbyid(owner));
  END IF;
  FOREACH sql IN ARRAY coalesce(more, '{}') LOOP
    EXECUTE sql;
  END LOOP;
END $$;

ALTER TABLE weaver_tasks ADD PRIMARY KEY (namespace, task_id);

CREATE UNIQUE INDEX weaver_tasks_by_idempotency_key ON weaver_tasks (namespace, task_type, idempotency_key) WHERE idempotency_key IS NOT NULL;

CREATE INDEX weaver_tasks_by_job ON weaver_tasks (namespace, job_id, task_id) WHERE job_id IS NOT NULL;

CREATE INDEX weaver_tasks_by_end ON weaver_tasks (namespace, end_state, task_id) WHERE end_state IS NOT NULL;

CREATE INDEX weaver_tasks_by_lane ON weaver_tasks (namespace, task_type, queue, task_id);

CREATE INDEX weaver_tasks_by_parent ON weaver_tasks (namespace, parent_task_id, task_id) WHERE parent_task_id IS NOT NULL;

-- Tasks that may hold their keys while they are undone.
CREATE INDEX weaver_tasks_undoing ON weaver_tasks (namespace, concurrency_key, task_id) WHERE undo IS NOT NULL AND concurrency_key IS NOT NULL;

-- A server that knows nothing of a large table plans badly. That an empty table is empty it
-- shall not know: it would plan for that.
DO $$
BEGIN
  IF EXISTS (SELECT 1 FROM weaver_tasks) THEN
    ANALYZE weaver_tasks;
  END IF;
END $$;
