package weaver

import (
	"context"
	"fmt"

	"github.com/goweaver/weaver/store"
)

// GetMany reads at most 1,000 tasks by ID (else ErrInvalidOption), in no particular order; unknown IDs
// are left out. Unlike Get it does not read inputs and outputs from the bucket: their references stay
// (a JSON object with the key "$weaver").
func (c *Client) GetMany(ctx context.Context, ids ...TaskID) ([]TaskInfo, error) {
	if len(ids) > store.MaxLimit {
		return nil, fmt.Errorf("%w: get %d tasks: want %d at most: ask for them in parts", ErrInvalidOption, len(ids), store.MaxLimit)
	}
	list, err := c.store.Tasks(ctx, c.ns, ids...)
	if err != nil {
		return nil, fmt.Errorf("get %d tasks: %w", len(ids), err)
	}
	return list, nil
}
