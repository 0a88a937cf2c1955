-- additive
-- Jobs that a later job is based on: they are not removed before it. base is the ID as text.
ALTER TABLE weaver_jobs ADD COLUMN based_on TEXT;  -- the IDs, as a JSON array
CREATE TABLE weaver_job_bases (
  namespace TEXT NOT NULL,
  base      TEXT NOT NULL,
  job_id    BLOB NOT NULL,
  PRIMARY KEY (namespace, base, job_id)
) WITHOUT ROWID;

-- Updates of pipelines named the job before in their metadata.
UPDATE weaver_jobs SET based_on = json_array(json_extract(meta, '$."weaver.updates"'))
WHERE json_valid(meta) AND length(json_extract(meta, '$."weaver.updates"')) = 26;
INSERT INTO weaver_job_bases (namespace, base, job_id) SELECT namespace, json_extract(based_on, '$[0]'), job_id FROM weaver_jobs WHERE based_on IS NOT NULL;
