package archtest_test

import (
	"go/ast"
	"path"
	"slices"
	"strconv"
	"testing"
)

// pure lists the packages whose functions return the same result for the same input, so that a decision can be
// repeated and stores agree on the meaning of a transition.
var pure = []string{"task", "decide", "internal/rules", "internal/preview", "internal/explain", "internal/calendar", "internal/schedule"}

// impure maps forbidden imports of these packages to the reason.
var impure = map[string]string{
	"context": "waits", "crypto/rand": "differs", "database/sql": "reads", "io/fs": "reads", "log/slog": "writes", "math/rand": "differs", "math/rand/v2": "differs",
	"net": "reads", "net/http": "reads", "os": "reads", "os/exec": "reads", "syscall": "reads",
}

// mayBeImpure lists files that create new values and decide nothing.
var mayBeImpure = map[string]string{"task/id.go": "makes IDs from a clock and a source of randomness that can be given"}

// A Decider that reads a clock, or anything besides its input, could decide differently when asked again.
func TestDecisionsArePure(t *testing.T) {
	t.Parallel()
	for _, f := range goFiles(t) {
		if f.isTest() || !slices.Contains(pure, path.Dir(f.path)) || mayBeImpure[f.path] != "" {
			continue
		}
		for _, spec := range f.ast.Imports {
			if name, err := strconv.Unquote(spec.Path.Value); err == nil && impure[name] != "" {
				t.Errorf("%s imports %s, which %s what is not in the input: take the value as a parameter", f.at(spec), name, impure[name])
			}
		}
		ast.Inspect(f.ast, func(n ast.Node) bool {
			for _, name := range []string{"Now", "Since", "Until", "Sleep", "After", "NewTimer"} {
				if selects(n, "time", name) {
					t.Errorf("%s calls time.%s: take the instant as a parameter", f.at(n), name)
				}
			}
			return true
		})
	}
}
