package fleet_test

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"time"

	"github.com/goweaver/weaver"
)

var (
	steps = weaver.Define[int, int]("acme.fleet.steps.v1", weaver.MaxAttempts(10_000), weaver.Backoff(50*time.Millisecond), weaver.BackoffMax(time.Second))
	pack  = weaver.Define[int, weaver.ArtifactRef]("acme.fleet.pack.v1", weaver.MaxAttempts(10_000), weaver.Backoff(50*time.Millisecond), weaver.BackoffMax(time.Second))
)

// worker runs the tasks, and writes a line into the ledger for each execution of a step's function. A line is one write
// to a file opened for appending: a kill does not tear it, and processes do not mix lines.
type worker struct{ ledger *os.File }

func (w *worker) count(ctx context.Context, step string) error {
	c := weaver.Current(ctx)
	_, err := fmt.Fprintf(w.ledger, "%s %s %d\n", c.TaskID, step, c.AttemptNo)
	return err
}

func (w *worker) steps(ctx context.Context, n int) (sum int, err error) {
	for i, name := range []string{"one", "two", "three"} {
		v, err := weaver.Step(ctx, name, func(ctx context.Context) (int, error) { return n + i, w.count(ctx, name) })
		if err != nil {
			return 0, err
		}
		sum += v
	}
	return sum, nil
}

func (w *worker) pack(ctx context.Context, n int) (weaver.ArtifactRef, error) {
	return weaver.Step(ctx, "pack", func(ctx context.Context) (weaver.ArtifactRef, error) {
		if err := w.count(ctx, "pack"); err != nil {
			return weaver.ArtifactRef{}, err
		}
		return weaver.PutArtifact(ctx, "packed", bytes.NewReader(packed(n)))
	})
}

// packed is the artifact of node n: every hundredth one is uploaded in parts.
func packed(n int) []byte {
	size := 20_000
	if n%100 == 1 {
		size = 6 << 20
	}
	return bytes.Repeat(fmt.Appendf(nil, "%08d", n), size/8)
}
