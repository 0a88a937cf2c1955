// Package orphan makes a handler, and no program imports it.
package orphan

import (
	"context"

	"github.com/goweaver/weaver"
	"github.com/goweaver/weaver/internal/vet/testdata/tasks"
)

// Handler handles tasks.Orphan.
func Handler() weaver.Handler {
	return tasks.Orphan.Handler(func(_ context.Context, n int) (int, error) { return n, nil })
}
