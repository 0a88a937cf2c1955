-- additive
-- What workers said of task types: the JSON Schemas of inputs and outputs, and the
-- options that tasks have by default. digest is that of body.
CREATE TABLE weaver_types (
  namespace      TEXT NOT NULL,
  task_type      TEXT NOT NULL,
  schema_version INTEGER NOT NULL,
  code_version   INTEGER NOT NULL,
  digest         TEXT NOT NULL,
  announced_at   INTEGER NOT NULL,
  announced_by   TEXT NOT NULL,
  body           TEXT NOT NULL,
  PRIMARY KEY (namespace, task_type)
);
