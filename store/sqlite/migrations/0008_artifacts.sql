-- Bytes in the bucket. Nothing refers to a pending one yet, or any more (touched_at is
-- when it was announced; 0: it was referred to before); rows of weaver_artifacts
-- refer to a live one; a collector has claimed a deleting one.
CREATE TABLE weaver_blobs (
  namespace  TEXT NOT NULL,
  blob_id    BLOB NOT NULL,
  sha256     TEXT NOT NULL,
  size_bytes INTEGER NOT NULL,
  state      TEXT NOT NULL,
  touched_at INTEGER NOT NULL,
  PRIMARY KEY (namespace, blob_id)
) WITHOUT ROWID;

CREATE UNIQUE INDEX weaver_blobs_by_content ON weaver_blobs (namespace, sha256, size_bytes) WHERE state <> 'deleting';
CREATE INDEX weaver_blobs_unused ON weaver_blobs (namespace, touched_at, blob_id) WHERE state <> 'live';

-- What refers to blobs: artifacts, and inputs, outputs and values of steps, of which
-- artifact_id is the blob's. collect_at is when one that expires is looked at next.
CREATE TABLE weaver_artifacts (
  namespace    TEXT NOT NULL,
  task_id      BLOB NOT NULL,
  kind         TEXT NOT NULL,
  artifact_id  BLOB NOT NULL,
  blob_id      BLOB NOT NULL,
  step         TEXT,
  attempt_no   INTEGER,
  name         TEXT,
  content_type TEXT,
  created_at   INTEGER NOT NULL,
  expires_at   INTEGER,
  collect_at   INTEGER,
  PRIMARY KEY (namespace, task_id, kind, artifact_id)
) WITHOUT ROWID;

CREATE INDEX weaver_artifacts_by_blob ON weaver_artifacts (namespace, blob_id);
CREATE INDEX weaver_artifacts_expiring ON weaver_artifacts (namespace, collect_at, task_id, artifact_id) WHERE collect_at IS NOT NULL;
