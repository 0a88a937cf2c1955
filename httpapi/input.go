package httpapi

import (
	"context"
	"encoding/json"
	"runtime"

	"github.com/goweaver/weaver"
	"github.com/goweaver/weaver/schema"
)

// inputSchema is the schema of the inputs of a task type.
type inputSchema struct {
	*schema.Schema
	name  string // of the type
	turns *checkTurns
}

// Validate checks an input, which must also fit into the store. Its errors are those of a Schema,
// weaver.ErrTooLarge, and the context's.
//
// A check cannot be interrupted before it has visited the whole input: the validator takes no
// context, and reads all elements of an array even to decide only whether the input is valid. So
// the number of concurrent checks bounds their cost.
func (s *inputSchema) Validate(ctx context.Context, input json.RawMessage) error {
	if err := s.turns.client.CheckInputSize(s.name, len(input)); err != nil {
		return err
	}
	done, err := s.turns.take(ctx, len(input))
	if err != nil {
		return err
	}
	defer done()
	return s.Schema.Validate(input)
}

// checkTurns limits the concurrent checks of inputs. Large inputs, which take seconds, wait for
// each other and do not delay small ones.
type checkTurns struct {
	client       *weaver.Client
	small, large chan struct{}
}

func newCheckTurns(c *weaver.Client) *checkTurns {
	n := runtime.GOMAXPROCS(0)
	return &checkTurns{client: c, small: make(chan struct{}, n), large: make(chan struct{}, max(1, n/2))}
}

// take waits until an input of the given size may be checked. The caller must call done after the
// check.
func (t *checkTurns) take(ctx context.Context, size int) (done func(), err error) {
	turns := t.small
	if size > weaver.DefaultInlineLimit {
		turns = t.large
	}
	select {
	case turns <- struct{}{}:
		return func() { <-turns }, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}
