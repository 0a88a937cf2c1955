-- additive
-- An artifact whose task is not known. Large inputs, outputs and step values, which have no name, are not in it.
CREATE INDEX weaver_artifacts_by_id ON weaver_artifacts (namespace, artifact_id) WHERE name IS NOT NULL;
