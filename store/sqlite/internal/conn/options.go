package conn

import (
	"encoding/json"
	"time"

	"github.com/goweaver/weaver/task"
)

// taskOptions is what weaver_tasks.options_json holds: values that are fixed at the
// enqueue and that no statement selects by. Durations are microseconds. Most
// tasks of one type have the same options, so both directions are cached.
type taskOptions struct {
	Backoff    int64             `json:"backoff,omitempty"`
	BackoffMax int64             `json:"backoff_max,omitempty"`
	Timeout    int64             `json:"timeout,omitempty"`
	Limit      int               `json:"concurrency_limit,omitempty"`
	Cleanup    bool              `json:"cleanup_when_cancelled,omitempty"`
	Node       string            `json:"node,omitempty"`
	Labels     map[string]string `json:"labels,omitempty"`
	Metadata   map[string]string `json:"metadata,omitempty"`
}

// usualOptions are stored as NULL. They are the defaults of today, written
// down here because rows outlive defaults.
var usualOptions = commonOptions{backoff: 2_000_000, backoffMax: 3_600_000_000}

// commonOptions are those that many tasks share: without a node and maps.
type commonOptions struct {
	backoff, backoffMax, timeout int64
	limit                        int
	cleanup                      bool
}

// PackOptions returns what options_json holds of a new task, "" for the usual
// options.
func (c *Conn) PackOptions(n *task.New) (string, error) {
	key := commonOptions{n.Backoff.Microseconds(), n.BackoffMax.Microseconds(), n.Timeout.Microseconds(), n.ConcurrencyLimit, n.CleanupWhenCancelled}
	common := n.Node == "" && len(n.Labels) == 0 && len(n.Metadata) == 0
	if common && key == usualOptions {
		return "", nil
	}
	if common {
		if s, ok := c.packed[key]; ok {
			return s, nil
		}
	}
	b, err := json.Marshal(taskOptions{key.backoff, key.backoffMax, key.timeout, key.limit, key.cleanup, n.Node, n.Labels, n.Metadata})
	if err != nil {
		return "", err
	}
	s := string(b)
	if common {
		if len(c.packed) >= maxRemembered {
			clear(c.packed)
		}
		c.packed[key] = s
	}
	return s, nil
}

// unpackOptions sets the fields of t that raw holds.
func (c *Conn) unpackOptions(raw []byte, t *task.Task) error {
	if len(raw) == 0 {
		t.Backoff, t.BackoffMax = micros(usualOptions.backoff), micros(usualOptions.backoffMax)
		return nil
	}
	o, ok := c.unpacked[string(raw)]
	if !ok {
		if err := json.Unmarshal(raw, &o); err != nil {
			return err
		}
		if o.Node == "" && o.Labels == nil && o.Metadata == nil { // maps are the caller's own
			if len(c.unpacked) >= maxRemembered {
				clear(c.unpacked)
			}
			c.unpacked[string(raw)] = o
		}
	}
	t.Backoff, t.BackoffMax, t.Timeout = micros(o.Backoff), micros(o.BackoffMax), micros(o.Timeout)
	t.ConcurrencyLimit, t.CleanupWhenCancelled = o.Limit, o.Cleanup
	t.Node, t.Labels, t.Metadata = o.Node, o.Labels, o.Metadata
	return nil
}

func micros(n int64) time.Duration { return time.Duration(n) * time.Microsecond }
