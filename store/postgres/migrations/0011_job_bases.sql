-- additive
-- Jobs that a later job is based on: they are not removed before it. base is the ID as text.
ALTER TABLE weaver_jobs ADD COLUMN based_on text COLLATE "C";  -- the IDs, as a JSON array
CREATE TABLE weaver_job_bases (
  namespace text COLLATE "C" NOT NULL,
  base text COLLATE "C" NOT NULL,
  job_id bytea NOT NULL,
  PRIMARY KEY (namespace, base, job_id)
);

-- Updates of pipelines named the job before in their metadata.
UPDATE weaver_jobs SET based_on = CAST(json_build_array(CAST(meta AS json) ->> 'weaver.updates') AS text)
WHERE meta LIKE '%"weaver.updates"%' AND length(CAST(meta AS json) ->> 'weaver.updates') = 26;
INSERT INTO weaver_job_bases (namespace, base, job_id) SELECT namespace, CAST(based_on AS json) ->> 0, job_id FROM weaver_jobs WHERE based_on IS NOT NULL;
