package sqlstore

import (
	"encoding/json"
	"fmt"

	"github.com/goweaver/weaver/internal/rules"
	"github.com/goweaver/weaver/store"
)

const (
	sqlBucket    = `SELECT value FROM weaver_store_meta WHERE namespace = ?1 AND key = 'bucket'`
	sqlSetBucket = `
INSERT INTO weaver_store_meta (namespace, key, value) VALUES (?1, 'bucket', ?2) ON CONFLICT (namespace, key) DO UPDATE SET value = excluded.value`
)

// bucket returns the bucket of the namespace's blobs; zero: unknown.
func (t *Tx) bucket() (b store.Bucket, err error) {
	st := t.stmt(sqlBucket).Text(1, t.ns)
	var raw []byte
	if st.One() {
		raw = st.ColBytes(0)
	}
	if err := st.Done(); err != nil || len(raw) == 0 {
		return b, err
	}
	if err := json.Unmarshal(raw, &b); err != nil {
		return b, fmt.Errorf("read the bucket of the blobs: %w", err)
	}
	return b, nil
}

// checkBucket refuses, as other, a bucket that does not hold the namespace's blobs.
func (t *Tx) checkBucket(given store.Bucket) (known store.Bucket, other, err error) {
	if given == (store.Bucket{}) {
		return given, nil, nil
	}
	if known, err = t.bucket(); err != nil {
		return known, nil, err
	}
	return known, rules.CheckBucket(known, given), nil
}

// useBucket is checkBucket before a put. It remembers the first bucket.
func (t *Tx) useBucket(given store.Bucket) (other, err error) {
	known, other, err := t.checkBucket(given)
	if other != nil || err != nil || known.ID != "" || given.ID == "" {
		return other, err
	}
	return nil, t.setBucket(given)
}

func (t *Tx) setBucket(b store.Bucket) error {
	return t.stmt(sqlSetBucket).Text(1, t.ns).JSON(2, b).Run()
}

// acceptBucket records the new bucket of the blobs.
func (o *operation) acceptBucket(cmd store.AcceptBucket, got *store.CommandResult) (err error) {
	if cmd.Check {
		_, got.Err, err = o.tx.checkBucket(cmd.Bucket)
		return err
	}
	if err := o.note(cmd.Audit, rules.BucketVerb, ""); err != nil {
		return err
	}
	return o.tx.setBucket(cmd.Bucket)
}
