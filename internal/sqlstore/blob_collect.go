package sqlstore

import (
	"cmp"
	"context"

	"github.com/goweaver/weaver/internal/rules"
	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/task"
)

const (
	sqlBlobDeleted = `DELETE FROM weaver_blobs WHERE namespace = ?1 AND blob_id = ?2 AND state = 'deleting'`

	sqlExpiring = `
SELECT a.task_id, a.artifact_id, t.finished_at IS NOT NULL, t.job_id FROM weaver_artifacts a INDEXED BY weaver_artifacts_expiring
LEFT JOIN weaver_tasks t ON t.namespace = a.namespace AND t.task_id = a.task_id
WHERE a.namespace = ?1 AND a.collect_at <= ?2 ORDER BY a.collect_at, a.task_id, a.artifact_id LIMIT ?3`
	sqlExpire = `
DELETE FROM weaver_artifacts WHERE namespace = ?1 AND task_id = ?2 AND kind = 'artifact' AND artifact_id = ?3 RETURNING blob_id`
	sqlExpireLater = `
UPDATE weaver_artifacts SET collect_at = ?4 WHERE namespace = ?1 AND task_id = ?2 AND kind = 'artifact' AND artifact_id = ?3`

	// Blobs that are being deleted have a touched_at of 0.
	sqlUnusedBlobs = `
SELECT blob_id, sha256, size_bytes, state FROM weaver_blobs INDEXED BY weaver_blobs_unused
WHERE namespace = ?1 AND state <> 'live' AND touched_at <= ?2 ORDER BY touched_at, blob_id LIMIT ?3`
	sqlClaimBlob = `
UPDATE weaver_blobs SET state = 'deleting', touched_at = 0 WHERE namespace = ?1 AND blob_id = ?2 AND state = 'pending'`
)

// collectBlobs is Collect for blobs. Crash after the commit: the next call returns the same
// blobs again.
func (s *Store) collectBlobs(ctx context.Context, ns string, req *store.CollectBlobs) (store.CollectResult, error) {
	var got store.CollectResult
	var other error
	err := s.write(ctx, ns, store.BlobBite, func(t *Tx) (err error) {
		if _, other, err = t.checkBucket(req.Bucket); other != nil || err != nil {
			return err
		}
		got.Blobs, err = t.collectBlobs(req)
		return err
	})
	return got, cmp.Or(err, other)
}

func (t *Tx) collectBlobs(req *store.CollectBlobs) (got store.CollectedBlobs, err error) {
	for i := range req.Deleted {
		if err := t.stmt(sqlBlobDeleted).Text(1, t.ns).ID(2, &req.Deleted[i]).Run(); err != nil {
			return got, err
		}
	}
	looked, err := t.expireArtifacts(&got)
	if err != nil {
		return got, err
	}
	before := t.at.Add(-rules.PendingFor(req)).UnixMicro()
	rows, err := blobColumns.All(t.stmt(sqlUnusedBlobs).Text(1, t.ns).Int(2, before).Int(3, store.BlobBite))
	if err != nil {
		return got, err
	}
	for i := range rows {
		if rows[i].State == task.BlobPending {
			n, err := t.stmt(sqlClaimBlob).Text(1, t.ns).ID(2, &rows[i].ID).Exec()
			if err != nil {
				return got, err
			}
			if n == 0 {
				continue // a transaction committed meanwhile uses it
			}
		}
		got.Delete = append(got.Delete, rows[i].Blob)
	}
	got.More = looked == store.BlobBite || len(rows) == store.BlobBite
	return got, nil
}

// expireArtifacts removes expired artifacts whose task has ended and that no unfinished task
// may read. It checks the others again later.
func (t *Tx) expireArtifacts(got *store.CollectedBlobs) (looked int, err error) {
	type expiring struct {
		task, id, job task.ID
		ended         bool
	}
	var list []expiring
	st := t.stmt(sqlExpiring).Text(1, t.ns).Int(2, t.mic).Int(3, store.BlobBite)
	for st.Next() {
		list = append(list, expiring{task: st.ColID(0), id: st.ColID(1), ended: st.ColBool(2), job: st.ColID(3)})
	}
	if err := st.Done(); err != nil {
		return 0, err
	}
	for _, a := range list {
		read := false
		if a.ended {
			if read, err = t.mayRead(&a.task, &a.job); err != nil {
				return 0, err
			}
		}
		if a.ended && !read {
			got.Expired++
			err = t.forget(t.stmt(sqlExpire).Text(1, t.ns).ID(2, &a.task).ID(3, &a.id))
		} else {
			err = t.stmt(sqlExpireLater).Text(1, t.ns).ID(2, &a.task).ID(3, &a.id).Int(4, t.at.Add(rules.ExpiryLook).UnixMicro()).Run()
		}
		if err != nil {
			return 0, err
		}
	}
	return len(list), nil
}
