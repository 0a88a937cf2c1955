-- Artifacts whose bytes are elsewhere: the column has the link, which may be sealed, and
-- blob_id is the artifact's own ID, which no blob has.
ALTER TABLE weaver_artifacts ADD COLUMN link text COLLATE "C";

-- Tasks of whose inputs fields expire: when the input was stored, and when to look next.
CREATE TABLE weaver_expiries (
  set_at    bigint NOT NULL,
  look_at   bigint NOT NULL,
  namespace text COLLATE "C" NOT NULL,
  task_id   bytea NOT NULL,
  PRIMARY KEY (namespace, task_id)
);

CREATE INDEX weaver_expiries_due ON weaver_expiries (namespace, look_at, task_id);
