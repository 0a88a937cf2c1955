-- Tasks of whose inputs fields expire: when the input was stored, and when to look next.
-- An older program would store such inputs for ever.
CREATE TABLE weaver_expiries (
  namespace TEXT NOT NULL,
  task_id   BLOB NOT NULL,
  set_at    INTEGER NOT NULL,
  look_at   INTEGER NOT NULL,
  PRIMARY KEY (namespace, task_id)
) WITHOUT ROWID;

CREATE INDEX weaver_expiries_due ON weaver_expiries (namespace, look_at, task_id);
