package builtin_test

import (
	"testing"

	"github.com/goweaver/weaver/builtin"
)

// The kernel kills the leader of a command when its worker is killed, with or
// without a guard, whatever the state of the starting thread.
func TestRunLeaderEndsWithItsWorker(t *testing.T) {
	t.Parallel()
	for name, w := range map[string]work{
		"at its first command": {},
		"later":                {First: builtin.RunInput{Argv: []string{"true"}}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			witness := newWitness(t)
			w.Second, w.Falls = witness.shell(`trap '' HUP INT QUIT TERM; echo ready; exec sleep 1000`), true
			runWorker(t, w)
			witness.end()
		})
	}
}
