package rules

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/task"
)

// ValueCursor is the last row of a page of a walk over values.
type ValueCursor struct {
	Stage   int // index of a table, defined by the store
	ID      task.ID
	No, Try int64
	Name    string
}

// String returns the cursor in the callers' form.
func (c ValueCursor) String() string {
	return fmt.Sprintf("%d:%s:%d:%d:%s", c.Stage, c.ID, c.No, c.Try, c.Name)
}

// ParseValueCursor parses a cursor of a store with this number of stages; "" is the beginning.
// Error: [store.ErrBadCursor].
func ParseValueCursor(s string, stages int) (c ValueCursor, err error) {
	if s == "" {
		return c, nil
	}
	parts := strings.SplitN(s, ":", 5)
	if len(parts) == 5 {
		c.Name = parts[4]
		if c.Stage, err = strconv.Atoi(parts[0]); err == nil {
			err = c.ID.UnmarshalText([]byte(parts[1]))
		}
		if err == nil {
			c.No, err = strconv.ParseInt(parts[2], 10, 64)
		}
		if err == nil {
			c.Try, err = strconv.ParseInt(parts[3], 10, 64)
		}
	}
	if len(parts) != 5 || err != nil || c.Stage < 0 || c.Stage >= stages {
		return c, fmt.Errorf("%w: %q did not come from a walk over values", store.ErrBadCursor, s)
	}
	return c, nil
}
