-- additive
-- Hints of dispatch rows (docs/leases.md, W4). No index has these columns.
ALTER TABLE weaver_outbox_events ADD COLUMN sent_until INTEGER;          -- until then no publisher sends the hint again
ALTER TABLE weaver_outbox_events ADD COLUMN attempts INTEGER DEFAULT 0;  -- pushes of the hint
ALTER TABLE weaver_outbox_events ADD COLUMN last_error TEXT;             -- of the last push
