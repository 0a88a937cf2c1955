-- Why a task that was awaited did not succeed, as ended_state says how it ended: a
-- replay reads it here, whatever became of that task since. The message is cut.
ALTER TABLE weaver_task_dependencies ADD COLUMN ended_kind TEXT;
ALTER TABLE weaver_task_dependencies ADD COLUMN ended_code TEXT;
ALTER TABLE weaver_task_dependencies ADD COLUMN ended_message TEXT;

-- The lease epoch of a task when the edge to a child of its call was last opened: a
-- chore that brings such children back leaves those alone that were opened since.
ALTER TABLE weaver_task_dependencies ADD COLUMN opened_epoch INTEGER;

-- Children of a task that decomposed which are not stored yet, a bite of a chore in
-- each row: the number of the first among those of its decompositions, how many they
-- are, and the attempt that waits for them. Its remaining_deps, and the counters of
-- its job, have them already.
CREATE TABLE weaver_drafts (
  namespace TEXT NOT NULL,
  task_id   BLOB NOT NULL,
  first     INTEGER NOT NULL,
  children  INTEGER NOT NULL,
  awaited   INTEGER NOT NULL,
  drafts    TEXT NOT NULL,
  PRIMARY KEY (namespace, task_id, first)
) WITHOUT ROWID;
