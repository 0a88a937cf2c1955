-- additive
-- Orders: requests to the outside (docs/orders.md). The ledger says what is known of a key, the
-- outbox what is still to be sent. Times are microseconds.
CREATE TABLE weaver_idempo_ledger (
  namespace             TEXT NOT NULL,
  idempotency_key       TEXT NOT NULL,
  request_digest        TEXT NOT NULL,
  result_digest         TEXT,
  status                TEXT NOT NULL,     -- accepted, succeeded, failed
  http_status           INTEGER NOT NULL,  -- 0: not settled
  response_payload_json TEXT,
  order_id              TEXT,
  trace_id              TEXT,
  unknown               INTEGER NOT NULL,  -- failed, and the partner may have executed it
  first_seen_at         INTEGER NOT NULL,
  last_seen_at          INTEGER NOT NULL,
  expires_at            INTEGER,
  PRIMARY KEY (namespace, idempotency_key)
);
CREATE TABLE weaver_outbox_orders (
  id                 INTEGER NOT NULL,
  namespace          TEXT NOT NULL,
  idempotency_key    TEXT NOT NULL,
  profile            TEXT NOT NULL,
  order_request_json TEXT NOT NULL,
  request_digest     TEXT NOT NULL,
  order_id           TEXT,
  trace_id           TEXT,
  timeout            INTEGER NOT NULL,     -- of one send
  max_age            INTEGER NOT NULL,     -- 0: none
  created_at         INTEGER NOT NULL,
  task_id            BLOB,                 -- that waits for the result
  step               TEXT,
  status             TEXT NOT NULL,        -- pending, sending, succeeded, failed, aborted
  attempts           INTEGER NOT NULL,
  last_error_code    TEXT,
  last_error_msg     TEXT,
  locked_by          TEXT,
  locked_at          INTEGER,
  lease_until        INTEGER,
  token              INTEGER NOT NULL,     -- raised by each claim
  send_no            INTEGER NOT NULL,
  send_started_at    INTEGER,
  send_ends_at       INTEGER,
  send_open          INTEGER NOT NULL,     -- a send began and has no answer on record
  unknown            INTEGER NOT NULL,     -- a send that is over may have reached the partner
  held               INTEGER NOT NULL,     -- by a restore, until an operator releases it
  stale_at           INTEGER,              -- from then on it is not sent any more
  next_run_at        INTEGER,              -- of pending and failed rows
  updated_at         INTEGER NOT NULL,
  expires_at         INTEGER,              -- of succeeded and aborted rows
  signalled          INTEGER NOT NULL,     -- no task waits for the result any more
  PRIMARY KEY (id)
);
CREATE UNIQUE INDEX weaver_outbox_orders_key ON weaver_outbox_orders (namespace, idempotency_key);
CREATE INDEX weaver_outbox_orders_page ON weaver_outbox_orders (namespace, id);
CREATE INDEX weaver_outbox_orders_due ON weaver_outbox_orders (namespace, status, next_run_at, id);
CREATE INDEX weaver_outbox_orders_open ON weaver_outbox_orders (namespace, id) WHERE expires_at IS NULL;
CREATE INDEX weaver_outbox_orders_settled ON weaver_outbox_orders (namespace, status, expires_at) WHERE expires_at IS NOT NULL;
CREATE INDEX weaver_outbox_orders_held ON weaver_outbox_orders (namespace, id) WHERE held = 1;
CREATE INDEX weaver_outbox_orders_unknown ON weaver_outbox_orders (namespace, status) WHERE unknown = 1;
CREATE INDEX weaver_outbox_orders_task ON weaver_outbox_orders (namespace, task_id, id) WHERE task_id IS NOT NULL;
CREATE INDEX weaver_outbox_orders_unsignalled ON weaver_outbox_orders (namespace, id) WHERE signalled = 0;
