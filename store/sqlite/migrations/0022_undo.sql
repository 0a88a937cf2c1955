-- Steps can be undone: a task ends without success after an undo phase, in which it
-- waits with the reason 'undo'. An older program would end it before that.
ALTER TABLE weaver_tasks ADD COLUMN undo_open INTEGER DEFAULT 0;  -- steps with an undo that are to be undone
ALTER TABLE weaver_tasks ADD COLUMN undo_no INTEGER DEFAULT 0;    -- of the last beginning of such a step
ALTER TABLE weaver_tasks ADD COLUMN undo TEXT;                -- the undo phase, as JSON; stays when that was given up
ALTER TABLE weaver_steps ADD COLUMN undo INTEGER DEFAULT 0;       -- 0 none, 1 open, 2 undone, 3 skipped, 4 kept: a point of no return came after it
ALTER TABLE weaver_steps ADD COLUMN undo_no INTEGER DEFAULT 0;    -- the undo_no of its task when it began
ALTER TABLE weaver_steps ADD COLUMN round INTEGER DEFAULT 0;      -- how often a step of this name was undone or skipped before
