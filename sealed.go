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

// Rewrap seals up to limit rows of what is stored with the newest key of the Codec (0:
// 50, at most 1,000), and values that were stored before there was a Codec, while
// engines go on. after is Next of the bite before, "" at the beginning. A rewrap that
// was killed is begun anew: what is sealed with the newest key is passed over. An old
// key can go once a whole rewrap found nothing to do and nothing that failed, when every
// program seals with the new key. What was sealed before, or was not, stays in unused
// parts of the store's file until that is written anew: Scrub of the store. Errors: errors.ErrUnsupported (the client has
// no Codec, or its store cannot replace values), store.ErrBadCursor.
func (c *Client) Rewrap(ctx context.Context, after string, limit int) (ops.Rewrapped, error) {
	res, err := c.values.Rewrap(ctx, c.given, after, limit)
	if err != nil {
		err = fmt.Errorf("seal what is stored with the newest key: %w", err)
	}
	return ops.Rewrapped(res), err
}
