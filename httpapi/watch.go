package httpapi

import (
	"context"
	"slices"
	"strconv"
	"time"
)

// framePause is the minimum interval between two frames of a stream.
const framePause = 250 * time.Millisecond

// Frame is one frame of /v1/watch: the changes of some topics.
type Frame struct {
	At     int64         `json:"at"` // the server's time, in milliseconds since 1970
	Topics []TopicUpdate `json:"topics"`
}

// TopicUpdate holds the changes of one topic. After it the client has the topic's content, unless
// there is More.
type TopicUpdate struct {
	Topic    string   `json:"topic"`              // as in the request
	Snapshot bool     `json:"snapshot,omitempty"` // discard the topic's earlier rows
	Removed  []string `json:"removed,omitempty"`  // ids of removed rows
	Rows     []Row    `json:"rows,omitempty"`     // new or changed rows; in a snapshot all rows, [] if it is empty. Lists of tasks are sorted by id, newest first, others by id
	More     bool     `json:"more,omitempty"`     // the next frames contain the rest
	LeftOut  int      `json:"left_out,omitempty"` // number of rows after the first 1,000, which are not shown
	Next     string   `json:"next,omitempty"`     // of a page of tasks: the cursor of the next page; left out at the end

	// Problem is set in an error frame: the reason for which the topic cannot be read. A snapshot
	// follows when it can be read again.
	Problem *Problem `json:"problem,omitempty"`
}

// Row is one row of a topic: a task, a job, a queue, a worker, a count, or statistics, in the form
// of the other operations.
type Row struct {
	ID  string `json:"id"` // unique in the topic
	Row any    `json:"row,omitempty"`
	Cut bool   `json:"cut,omitempty"` // too large for a frame: it has no values, or only its ID
}

// watch sends a stream of the changes of topics, or, with ?once=true, their present content.
func (c *call) watch() error {
	topics, err := c.topicsOf()
	if err != nil {
		return err
	}
	once, err := c.is("once")
	if err != nil {
		return err
	}
	release, err := c.api.searching.take(&c.api.cfg, c.who.Name, topics)
	if err != nil {
		return err
	}
	defer release()
	class := shownPlain
	if c.who.Access.Has(Payloads) {
		class = shownFull
	}
	return c.stream(func(s *stream) error {
		w := c.api.hub.watch(topics, class)
		defer w.close()
		pause := time.NewTimer(0)
		defer pause.Stop()
		for {
			f, err := w.frame()
			if err != nil {
				return err
			}
			next := w.wake
			if f != nil {
				if err := s.send(f); err != nil {
					return nil // the client has disconnected
				}
				if once {
					continue // the pauses are for changes
				}
				next = nil
				pause.Reset(framePause)
			}
			if once && w.told() {
				return nil
			}
			if err := await(s.ctx, next, pause); err != nil {
				return nil // the client has disconnected, or the server stops
			}
		}
	})
}

// await waits for wake, or for the timer if wake is nil.
func await(ctx context.Context, wake <-chan struct{}, timer *time.Timer) error {
	var at <-chan time.Time
	if wake == nil {
		at = timer.C
	}
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-wake:
	case <-at:
	}
	return nil
}

// watcher is one stream that watches topics.
type watcher struct {
	hub     *hub
	class   int           // the form of rows
	wake    chan struct{} // a topic has a new state
	cursors []*cursor
	turn    int // the first cursor of the next frame
}

// told reports whether frames had the whole content of each topic, or its problem.
func (w *watcher) told() bool {
	return !slices.ContainsFunc(w.cursors, func(c *cursor) bool { return c.done == nil && c.failed == nil })
}

// frame returns the next frame, or nil if there are no changes. Problems have frames of their own.
func (w *watcher) frame() ([]byte, error) {
	at := time.Now().UnixMilli()
	failing := Frame{At: at}
	for _, c := range w.cursors {
		if p := c.problem(); p != nil {
			failing.Topics = append(failing.Topics, TopicUpdate{Topic: c.topic.text, Problem: p})
		}
	}
	if failing.Topics != nil {
		return frame("error", "", failing)
	}
	const head = 100 // the event's size without the data
	b := strconv.AppendInt([]byte(`{"at":`), at, 10)
	b = append(b, `,"topics":[`...)
	begin := len(b)
	for k, first := 0, w.turn; k < len(w.cursors); k++ {
		i := (first + k) % len(w.cursors)
		comma := ""
		if len(b) > begin {
			comma = ","
		}
		longer, full := w.cursors[i].append(append(b, comma...), w.class, maxFrame-head)
		if len(longer) > len(b)+len(comma) {
			b = longer
		}
		if full {
			w.turn = i
			break
		}
	}
	if len(b) == begin {
		return nil, nil
	}
	return appendFrame(nil, "update", "", append(b, "]}"...)), nil
}
