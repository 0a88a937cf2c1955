-- additive
-- Hints of dispatch rows (docs/leases.md, W4). No index has these columns: marking a row changes no index.
ALTER TABLE weaver_outbox_events ADD COLUMN sent_until bigint;          -- until then no publisher sends the hint again
ALTER TABLE weaver_outbox_events ADD COLUMN attempts bigint DEFAULT 0;  -- pushes of the hint
ALTER TABLE weaver_outbox_events ADD COLUMN last_error text COLLATE "C";  -- of the last push
