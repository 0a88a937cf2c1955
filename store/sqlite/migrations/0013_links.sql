-- Artifacts whose bytes are elsewhere: the column has the link, which may be sealed, and
-- blob_id is the artifact's own ID, which no blob has. An older program would show them as
-- damage, repeat them without their link, and leave them sealed with an old key.
ALTER TABLE weaver_artifacts ADD COLUMN link TEXT;
