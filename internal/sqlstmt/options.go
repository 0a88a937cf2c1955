package sqlstmt

import (
	"bytes"
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/goweaver/weaver/task"
)

// taskOptions is the content of weaver_tasks.options_json: values that are fixed at the
// enqueue and that no statement selects by. Durations are in microseconds. Most tasks of one
// type have the same options, so both directions are cached.
type taskOptions struct {
	commonOptions
	Node     string            `json:"node,omitempty"`
	Labels   map[string]string `json:"labels,omitempty"`
	Metadata map[string]string `json:"metadata,omitempty"`
	Redact   []string          `json:"redact,omitempty"`
	Expire   []task.Expiry     `json:"expire,omitempty"`
	UndoOf   task.ID           `json:"undo_of,omitzero"`
}

// commonOptions are the options that many tasks share: all comparable ones except the node.
// They are the key of the cache.
type commonOptions struct {
	Backoff    int64 `json:"backoff,omitempty"`
	BackoffMax int64 `json:"backoff_max,omitempty"`
	Timeout    int64 `json:"timeout,omitempty"`
	Limit      int   `json:"concurrency_limit,omitempty"`
	task.Options
	MaxCost int64 `json:"max_cost,omitempty"`
	MaxIdle int   `json:"max_no_progress,omitempty"`
}

// usualOptions are stored as NULL. They are today's defaults, spelled out here because rows
// outlive defaults.
var usualOptions = commonOptions{Backoff: 2_000_000, BackoffMax: 3_600_000_000}

// PackOptions returns the options_json of a new task, or "" for the usual options.
func (c *Cache) PackOptions(n *task.New) (string, error) {
	key := commonOptions{
		Backoff: n.Backoff.Microseconds(), BackoffMax: n.BackoffMax.Microseconds(), Timeout: n.Timeout.Microseconds(),
		Limit: n.ConcurrencyLimit, Options: n.Options, MaxCost: n.MaxCost, MaxIdle: n.MaxNoProgress,
	}
	common := n.Node == "" && len(n.Labels) == 0 && len(n.Metadata) == 0 && len(n.Redact) == 0 && len(n.Expire) == 0 && n.UndoOf.IsZero()
	if common && key == usualOptions {
		return "", nil
	}
	if common {
		if s, ok := c.packed[key]; ok {
			return s, nil
		}
	}
	b, err := json.Marshal(taskOptions{key, n.Node, n.Labels, n.Metadata, n.Redact, n.Expire, n.UndoOf})
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

// maxShared is the maximum length in bytes of cached options.
const maxShared = 512

// unpackOptions sets the fields of t from raw.
func (c *Cache) unpackOptions(raw []byte, t *task.Task) error {
	if len(raw) == 0 {
		t.Backoff, t.BackoffMax = micros(usualOptions.Backoff), micros(usualOptions.BackoffMax)
		return nil
	}
	shared, node := cutNode(raw)
	o, ok := c.unpacked[string(shared)]
	if !ok {
		if err := json.Unmarshal(shared, &o); err != nil {
			return err
		}
		if len(c.unpacked) >= maxRemembered {
			clear(c.unpacked)
		}
		if len(shared) <= maxShared {
			c.unpacked[string(shared)] = o
		}
	}
	o.Labels, o.Metadata = maps.Clone(o.Labels), maps.Clone(o.Metadata) // the caller's own
	if node != "" {
		o.Node = node
	}
	t.Backoff, t.BackoffMax, t.Timeout = micros(o.Backoff), micros(o.BackoffMax), micros(o.Timeout)
	t.ConcurrencyLimit, t.Options = o.Limit, o.Options
	t.MaxCost, t.MaxNoProgress = o.MaxCost, o.MaxIdle
	t.Node, t.Labels, t.Metadata, t.Redact = o.Node, o.Labels, o.Metadata, slices.Clone(o.Redact)
	t.Expire, t.UndoOf = slices.Clone(o.Expire), o.UndoOf
	return nil
}

// cutNode returns raw without the node, which no two tasks of a job share, and the node. It
// returns raw unchanged and "" if there is no node, or if the node has escapes.
func cutNode(raw []byte) (rest []byte, node string) {
	const key = `"node":"`
	at := bytes.Index(raw, []byte(key))
	if at < 0 || bytes.IndexByte(raw[1:at], '{') >= 0 { // a label or metadata with that key
		return raw, ""
	}
	node, _, found := strings.Cut(string(raw[at+len(key):]), `"`)
	if !found || strings.Contains(node, `\`) {
		return raw, ""
	}
	before, after := raw[:at], raw[at+len(key)+len(node)+1:]
	if rest, more := bytes.CutPrefix(after, []byte(",")); more {
		after = rest
	} else {
		before = bytes.TrimSuffix(before, []byte(","))
	}
	return slices.Concat(before, after), node
}

func micros(n int64) time.Duration { return time.Duration(n) * time.Microsecond }
