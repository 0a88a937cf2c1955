package sqlstore

import (
	"context"
	"fmt"

	"github.com/goweaver/weaver/internal/sqlstmt"
	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/task"
)

// Counts of the references of a blob, by index. They are cheap: only a value that many tasks share
// has many references.
const (
	blobRefs = `
(SELECT COUNT(*) FROM weaver_artifacts a INDEXED BY weaver_artifacts_by_blob WHERE a.namespace = b.namespace AND a.blob_id = b.blob_id)`
	blobExpired = `
(SELECT COUNT(*) FROM weaver_artifacts a INDEXED BY weaver_artifacts_by_blob
 CROSS JOIN weaver_tasks t ON t.namespace = a.namespace AND t.task_id = a.task_id
 WHERE a.namespace = b.namespace AND a.blob_id = b.blob_id AND a.expires_at <= ?3 AND t.finished_at IS NOT NULL
 AND NOT EXISTS (SELECT 1 FROM weaver_jobs j WHERE j.namespace = t.namespace AND j.job_id = t.job_id AND j.finished_at IS NULL)
 AND NOT EXISTS (SELECT 1 FROM weaver_task_dependencies d INDEXED BY weaver_task_dependencies_by_need
  CROSS JOIN weaver_tasks u ON u.namespace = d.namespace AND u.task_id = d.task_id
  WHERE d.namespace = a.namespace AND d.depends_on_task_id = a.task_id AND u.finished_at IS NULL))`
	blobUse = `
SELECT b.blob_id, b.sha256, b.size_bytes, b.state, b.touched_at,` + blobRefs + `,` + blobExpired + ` FROM weaver_blobs b `

	sqlBlobUses = blobUse + `WHERE b.namespace = ?1 AND b.blob_id > ?2 ORDER BY b.blob_id LIMIT ?4`
	sqlBlobUse  = blobUse + `WHERE b.namespace = ?1 AND b.blob_id = ?2`
)

var sqlArtifactByID = `
SELECT ` + artifactColumns.List() + ` FROM weaver_artifacts a INDEXED BY weaver_artifacts_by_id
LEFT JOIN weaver_blobs b ON b.namespace = a.namespace AND b.blob_id = a.blob_id
WHERE a.namespace = ?1 AND a.artifact_id = ?2 AND a.name IS NOT NULL AND a.kind = 'artifact' ORDER BY a.task_id LIMIT 1`

// Blobs implements store.Data.
func (s *Store) Blobs(ctx context.Context, ns string, f store.BlobFilter) (uses []store.BlobUse, err error) {
	err = s.read(ctx, ns, func(v *View) (err error) {
		var st *sqlstmt.Stmt
		if f.ID.IsZero() {
			st = v.stmt(sqlBlobUses).Text(1, v.ns).ID(2, &f.After).Time(3, v.now()).Int(4, int64(max(f.Limit, 0)))
		} else {
			st = v.stmt(sqlBlobUse).Text(1, v.ns).ID(2, &f.ID).Time(3, v.now())
		}
		uses, err = v.blobUses(st)
		return err
	})
	return uses, err
}

func (v *View) blobUses(st *sqlstmt.Stmt) (uses []store.BlobUse, err error) {
	now := v.now()
	for st.Next() {
		var u store.BlobUse
		blobColumns.Scan(st.Row(), 0, &u.BlobRow)
		at, touched := st.ColTime(4), st.ColInt(4)
		u.Refs, u.Expired = int(st.ColInt(5)), int(st.ColInt(6))
		switch {
		case u.State != task.BlobPending:
		case touched == 0:
			u.Unused = store.UsedBefore
		default:
			u.Unused = now.Sub(at)
		}
		uses = append(uses, u)
	}
	return uses, st.Done()
}

// Artifact implements store.Data.
func (s *Store) Artifact(ctx context.Context, ns string, id task.ID) (task.Artifact, error) {
	var a *task.Artifact
	err := s.read(ctx, ns, func(v *View) (err error) {
		a, err = artifactColumns.One(v.stmt(sqlArtifactByID).Text(1, v.ns).ID(2, &id))
		return err
	})
	switch {
	case err != nil:
		return task.Artifact{}, err
	case a == nil:
		return task.Artifact{}, fmt.Errorf("artifact %s: %w", id, store.ErrNotFound)
	}
	return *a, nil
}
