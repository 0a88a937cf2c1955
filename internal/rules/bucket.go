package rules

import (
	"fmt"

	"github.com/goweaver/weaver/store"
)

// BucketVerb is the audit verb of AcceptBucket.
const BucketVerb = "accept_bucket"

// CheckBucket refuses a bucket that differs from the bucket known to hold a namespace's blobs.
// A zero known or given bucket passes.
func CheckBucket(known, given store.Bucket) error {
	if known.ID == "" || known.ID == given.ID || given == (store.Bucket{}) {
		return nil
	}
	is := "is the bucket " + given.ID
	if given.ID == "" {
		is = "has no ID"
	}
	return fmt.Errorf("%w: the blobs of this namespace are in the bucket %s, which was at %s, and %s %s: use that one; if its blobs are here now, accept it (weaver artifact accept-bucket, Client.AcceptBucket)",
		store.ErrOtherBucket, known.ID, known.Place, given.Place, is)
}
