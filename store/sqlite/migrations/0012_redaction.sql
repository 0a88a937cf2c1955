-- Paths in a value of a step that readers do not show, as a JSON list.
ALTER TABLE weaver_steps ADD COLUMN redact TEXT;
