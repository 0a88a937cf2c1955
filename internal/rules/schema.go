package rules

import (
	"math"

	"github.com/goweaver/weaver/store"
)

// NewestSchema is the newest schema version of a task type's inputs that a claim
// may hand out: the worker has no code for a newer one.
func NewestSchema(req *store.ClaimRequest, taskType string) int {
	if newest, ok := req.Schemas[taskType]; ok {
		return newest
	}
	return math.MaxInt
}
