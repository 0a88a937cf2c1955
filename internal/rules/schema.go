package rules

import (
	"math"

	"github.com/goweaver/weaver/store"
)

// NewestSchema returns the newest schema version of a task type's inputs that a claim may
// return. The worker has no code for newer versions.
func NewestSchema(req *store.ClaimRequest, taskType string) int {
	if newest, ok := req.Schemas[taskType]; ok {
		return newest
	}
	return math.MaxInt
}
