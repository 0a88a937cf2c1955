package sqlstore

import (
	"encoding/json"

	"github.com/goweaver/weaver/internal/rules"
	"github.com/goweaver/weaver/internal/sqlstmt"
	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/task"
)

// Kinds of references in weaver_artifacts: artifacts and step values, in addition to kindInput
// and kindOutput.
const (
	kindArtifact  = "artifact"
	kindStepValue = "step"
	kindDraft     = "draft" // inputs of unstored children; the reference belongs to their parent
)

const (
	sqlKnownBlob = `
SELECT blob_id, state FROM weaver_blobs INDEXED BY weaver_blobs_by_content
WHERE namespace = ?1 AND sha256 = ?2 AND size_bytes = ?3 AND state <> 'deleting' LIMIT 1 /*lock*/`
	sqlTouchBlob  = `UPDATE weaver_blobs SET touched_at = ?3, task_id = ?4 WHERE namespace = ?1 AND blob_id = ?2`
	sqlInsertBlob = `INSERT INTO weaver_blobs (namespace, blob_id, sha256, size_bytes, state, touched_at, task_id) VALUES (?1, ?2, ?3, ?4, 'pending', ?5, ?6)`

	sqlBlobState = `SELECT state FROM weaver_blobs WHERE namespace = ?1 AND blob_id = ?2 /*lock*/`
	sqlUseBlob   = `UPDATE weaver_blobs SET state = 'live' WHERE namespace = ?1 AND blob_id = ?2 AND state = 'pending'`
	sqlRefer     = `
INSERT INTO weaver_artifacts (namespace, task_id, kind, artifact_id, blob_id, step, attempt_no, created_at, name, content_type, expires_at, collect_at, link)
VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?11, ?12)
ON CONFLICT DO NOTHING`
)

func (t *Tx) upload(u *store.Upload) (got store.Uploaded, err error) {
	got.Blob = task.Blob{ID: u.ID, SHA256: u.SHA256, Size: u.Size}
	st := t.stmt(sqlKnownBlob).Text(1, t.ns).Text(2, u.SHA256).Int(3, u.Size)
	known := st.One()
	if known {
		got.Blob.ID, got.Stored = st.ColID(0), task.BlobState(st.ColName(1)) == task.BlobLive
	}
	if err := st.Done(); err != nil {
		return got, err
	}
	if known {
		return got, t.stmt(sqlTouchBlob).Text(1, t.ns).ID(2, &got.Blob.ID).Int(3, t.mic).IDOrNull(4, &u.Task).Run()
	}
	return got, t.stmt(sqlInsertBlob).Text(1, t.ns).ID(2, &u.ID).Text(3, u.SHA256).Int(4, u.Size).Int(5, t.mic).IDOrNull(6, &u.Task).Run()
}

// usable returns, as gone, the error for the first blob that new rows must not refer to.
// Usable blobs stay usable until the end of the transaction.
func (t *Tx) usable(blobs []task.Blob) (gone, err error) {
	for _, b := range blobs {
		state, err := t.blobState(&b.ID)
		if err != nil {
			return nil, err
		}
		if !rules.Usable(state) {
			return rules.BlobGone(b), nil
		}
	}
	return nil, nil
}

func (t *Tx) blobState(id *task.ID) (state task.BlobState, err error) {
	st := t.stmt(sqlBlobState).Text(1, t.ns).ID(2, id)
	if st.One() {
		state = task.BlobState(st.ColName(0))
	}
	return state, st.Done()
}

// refer records the blob that a value of a task names, if any.
func (t *Tx) refer(id *task.ID, kind, step string, value json.RawMessage) error {
	b, ok := task.BlobOf(value)
	if !ok {
		return nil
	}
	err := t.stmt(sqlRefer).Text(1, t.ns).ID(2, id).Text(3, kind).ID(4, &b.ID).ID(5, &b.ID).OrNull(6, step).Null(7).Int(8, t.mic).
		Null(9).Null(10).Null(11).Null(12).Run()
	if err != nil {
		return err
	}
	return t.stmt(sqlUseBlob).Text(1, t.ns).ID(2, &b.ID).Run()
}

const sqlStepValues = `SELECT name, value FROM weaver_steps WHERE namespace = ?1 AND task_id = ?2 AND value IS NOT NULL`

// referSteps records the blobs named by the steps that a task took over. It reads the steps,
// because equal values of several steps share one reference of the old task.
func (t *Tx) referSteps(id *task.ID) error {
	var steps []task.Step
	st := t.stmt(sqlStepValues).Text(1, t.ns).ID(2, id)
	for st.Next() {
		steps = append(steps, task.Step{Name: st.ColText(0), Value: st.ColBytes(1)})
	}
	err := st.Done()
	for i := 0; i < len(steps) && err == nil; i++ {
		err = t.refer(id, kindStepValue, steps[i].Name, steps[i].Value)
	}
	return err
}

// addArtifacts records artifacts with their step.
func (t *Tx) addArtifacts(list []store.NewArtifact, step *task.Step) error {
	for i := range list {
		a := rules.Artifact(&list[i], step, t.at)
		link := len(a.LinkValue) > 0
		blobID := a.Blob.ID
		if link {
			blobID = a.ID // no blob has this ID
		}
		err := t.stmt(sqlRefer).Text(1, t.ns).ID(2, &a.TaskID).Text(3, kindArtifact).ID(4, &a.ID).ID(5, &blobID).Text(6, a.Step).
			Int(7, int64(a.AttemptNo)).Time(8, a.CreatedAt).Text(9, a.Name).OrNull(10, a.ContentType).Time(11, a.ExpiresAt).Bytes(12, a.LinkValue).Run()
		if err != nil {
			return err
		}
		if link {
			continue
		}
		if err := t.stmt(sqlUseBlob).Text(1, t.ns).ID(2, &blobID).Run(); err != nil {
			return err
		}
	}
	return nil
}

const (
	sqlForgetKind = `DELETE FROM weaver_artifacts WHERE namespace = ?1 AND task_id = ?2 AND kind = ?3 RETURNING blob_id`
	sqlForgetAll  = `DELETE FROM weaver_artifacts WHERE namespace = ?1 AND task_id = ?2 RETURNING blob_id`

	sqlReleaseBlob = `
UPDATE weaver_blobs SET state = 'pending', touched_at = 0
WHERE namespace = ?1 AND blob_id = ?2 AND state = 'live'
  AND NOT EXISTS (SELECT 1 FROM weaver_artifacts a INDEXED BY weaver_artifacts_by_blob WHERE a.namespace = ?1 AND a.blob_id = ?2)`

	sqlTakeRefs = `
INSERT INTO weaver_artifacts (namespace, task_id, kind, artifact_id, blob_id, step, attempt_no, name, content_type, created_at, expires_at, collect_at, link)
SELECT namespace, ?4, kind, artifact_id, blob_id, step, CASE kind WHEN 'artifact' THEN 0 END, name, content_type, created_at, expires_at, collect_at, link
FROM weaver_artifacts WHERE namespace = ?1 AND task_id = ?2 AND kind = 'artifact' AND step IN (
  SELECT name FROM weaver_steps WHERE namespace = ?1 AND task_id = ?2 AND ` + takenOver + `)
ON CONFLICT DO NOTHING`
)

// forget removes the references that st deletes, and leaves unreferenced blobs to the
// collector.
func (t *Tx) forget(st *sqlstmt.Stmt) error {
	blobs, err := ids(st)
	if err != nil {
		return err
	}
	for i := range blobs {
		if _, err := t.blobState(&blobs[i]); err != nil { // locks the blob: another task may begin to refer to it
			return err
		}
		if err := t.stmt(sqlReleaseBlob).Text(1, t.ns).ID(2, &blobs[i]).Run(); err != nil {
			return err
		}
	}
	return nil
}

// forgetKind removes a task's references of one kind, for example of its input.
func (t *Tx) forgetKind(id *task.ID, kind string) error {
	return t.forget(t.stmt(sqlForgetKind).Text(1, t.ns).ID(2, id).Text(3, kind))
}

// forgetBlobs removes all references of a task.
func (t *Tx) forgetBlobs(id *task.ID) error {
	return t.forget(t.stmt(sqlForgetAll).Text(1, t.ns).ID(2, id))
}

var artifactColumns = sqlstmt.Columns[task.Artifact]{
	sqlstmt.Col("a.artifact_id", func(a *task.Artifact, r *sqlstmt.Row, i int) { a.ID = r.ID(i) }),
	sqlstmt.Col("a.task_id", func(a *task.Artifact, r *sqlstmt.Row, i int) { a.TaskID = r.ID(i) }),
	sqlstmt.Col("a.step", func(a *task.Artifact, r *sqlstmt.Row, i int) { a.Step = r.Text(i) }),
	sqlstmt.Col("a.attempt_no", func(a *task.Artifact, r *sqlstmt.Row, i int) { a.AttemptNo = int(r.Int(i)) }),
	sqlstmt.Col("a.name", func(a *task.Artifact, r *sqlstmt.Row, i int) { a.Name = r.Text(i) }),
	sqlstmt.Col("a.content_type", func(a *task.Artifact, r *sqlstmt.Row, i int) { a.ContentType = r.Text(i) }),
	sqlstmt.Col("a.created_at", func(a *task.Artifact, r *sqlstmt.Row, i int) { a.CreatedAt = r.Time(i) }),
	sqlstmt.Col("a.expires_at", func(a *task.Artifact, r *sqlstmt.Row, i int) { a.ExpiresAt = r.Time(i) }),
	sqlstmt.Col("a.link", func(a *task.Artifact, r *sqlstmt.Row, i int) { a.LinkValue = r.Bytes(i) }),
	sqlstmt.Col("b.blob_id", func(a *task.Artifact, r *sqlstmt.Row, i int) { a.Blob.ID = r.ID(i) }),
	sqlstmt.Col("b.sha256", func(a *task.Artifact, r *sqlstmt.Row, i int) { a.Blob.SHA256 = r.Text(i) }),
	sqlstmt.Col("b.size_bytes", func(a *task.Artifact, r *sqlstmt.Row, i int) { a.Blob.Size = r.Int(i) }),
}

var blobColumns = sqlstmt.Columns[store.BlobRow]{
	sqlstmt.Col("blob_id", func(b *store.BlobRow, r *sqlstmt.Row, i int) { b.ID = r.ID(i) }),
	sqlstmt.Col("sha256", func(b *store.BlobRow, r *sqlstmt.Row, i int) { b.SHA256 = r.Text(i) }),
	sqlstmt.Col("size_bytes", func(b *store.BlobRow, r *sqlstmt.Row, i int) { b.Size = r.Int(i) }),
	sqlstmt.Col("state", func(b *store.BlobRow, r *sqlstmt.Row, i int) { b.State = task.BlobState(r.Name(i)) }),
}

var (
	sqlArtifacts = `
SELECT ` + artifactColumns.List() + ` FROM weaver_artifacts a
LEFT JOIN weaver_blobs b ON b.namespace = a.namespace AND b.blob_id = a.blob_id
WHERE a.namespace = ?1 AND a.task_id = ?2 AND a.kind = 'artifact' ORDER BY a.artifact_id`
	sqlSnapArtifacts = `
SELECT ` + artifactColumns.List() + ` FROM weaver_artifacts a
LEFT JOIN weaver_blobs b ON b.namespace = a.namespace AND b.blob_id = a.blob_id
WHERE a.namespace = ?1 AND a.kind = 'artifact' ORDER BY a.task_id, a.artifact_id`
	sqlSnapBlobs = `SELECT ` + blobColumns.List() + ` FROM weaver_blobs WHERE namespace = ?1 ORDER BY blob_id`
)
