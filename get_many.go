package weaver

import (
	"context"
	"fmt"
)

// GetMany reads tasks by ID, at most 1,000, in no particular order; those that do not
// exist are left out. Unlike Get it reads no inputs and outputs from the bucket: what
// stands for them stays (a JSON object with the key "$weaver").
func (c *Client) GetMany(ctx context.Context, ids ...TaskID) ([]TaskInfo, error) {
	list, err := c.store.Tasks(ctx, c.ns, ids...)
	if err != nil {
		return nil, fmt.Errorf("get %d tasks: %w", len(ids), err)
	}
	return list, nil
}
