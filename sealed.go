package weaver

import (
	"context"
	"fmt"

	"github.com/goweaver/weaver/internal/seal"
	"github.com/goweaver/weaver/ops"
)

// stillSealed returns the error for a value that could not be opened.
func stillSealed(what string, id TaskID, value []byte) error {
	if err := seal.Failure(value); err != nil {
		return fmt.Errorf("the %s of task %s cannot be read: %w", what, id, err)
	}
	return nil
}

// Rewrap reseals up to limit stored rows with the newest key of the Codec (0: 50, at most 1,000),
// including values stored before the Codec was configured, while engines run. after is Next of the
// previous call, "" at the beginning. Restart an interrupted rewrap: values sealed with the newest key
// are skipped. Retire an old key when every program seals with the new key and a whole rewrap then
// changed nothing and had no failures. Earlier copies stay in unused parts of the store's file until
// it is rewritten: call Scrub of the store. Errors: errors.ErrUnsupported if the client has no Codec
// or its store cannot replace values; ErrBadCursor.
func (c *Client) Rewrap(ctx context.Context, after string, limit int) (ops.Rewrapped, error) {
	res, err := c.values.Rewrap(ctx, c.given, after, limit)
	if err != nil {
		err = fmt.Errorf("seal what is stored with the newest key: %w", err)
	}
	return ops.Rewrapped(res), err
}
