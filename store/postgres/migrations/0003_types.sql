-- additive
-- What workers said of task types: the JSON Schemas of inputs and outputs, and the
-- options that tasks have by default. digest is that of body.
CREATE TABLE weaver_types (
  schema_version bigint NOT NULL,
  code_version   bigint NOT NULL,
  announced_at   bigint NOT NULL,
  namespace      text COLLATE "C" NOT NULL,
  task_type      text COLLATE "C" NOT NULL,
  digest         text COLLATE "C" NOT NULL,
  announced_by   text COLLATE "C" NOT NULL,
  body           text COLLATE "C" NOT NULL,
  PRIMARY KEY (namespace, task_type)
);
