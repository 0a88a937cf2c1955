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

// Validate checks an input, which the store must take. Its errors are those of a Schema,
// weaver.ErrTooLarge, and the context's.
//
// A check cannot be ended before it has gone through the whole input: the validator takes
// no context and looks at all elements of an array, also when it is only asked whether the
// input is right. So what it costs is bounded by how many there are at a time.
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

// checkTurns says which inputs are checked now. Large ones, which take seconds, wait for
// each other and not for small ones.
type checkTurns struct {
	client       *weaver.Client
	small, large chan struct{}
}

func newCheckTurns(c *weaver.Client) *checkTurns {
	n := runtime.GOMAXPROCS(0)
	return &checkTurns{client: c, small: make(chan struct{}, n), large: make(chan struct{}, max(1, n/2))}
}

// take waits until an input of so many bytes may be checked; done must be called behind
// that.
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
