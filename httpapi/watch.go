package httpapi

import (
	"context"
	"strconv"
	"time"
)

// framePause is the least time between two frames of a stream.
const framePause = 250 * time.Millisecond

// Frame is what one frame of /v1/watch says: what changed of some topics.
type Frame struct {
	At     int64         `json:"at"` // the server's clock, in milliseconds since 1970
	Topics []TopicUpdate `json:"topics"`
}

// TopicUpdate is what changed of one topic. After it the client has what the topic
// shows, unless there is More.
type TopicUpdate struct {
	Topic    string   `json:"topic"`              // as it was asked for
	Snapshot bool     `json:"snapshot,omitempty"` // what the client has of the topic is to be forgotten
	Removed  []string `json:"removed,omitempty"`  // ids of rows that are gone
	Rows     []Row    `json:"rows,omitempty"`     // that are new or changed. Lists of tasks are sorted by id, the newest first, others by id
	More     bool     `json:"more,omitempty"`     // not all fit: the next frames have the rest
	LeftOut  int      `json:"left_out,omitempty"` // so many rows beyond the first 1,000 are not shown
	Next     string   `json:"next,omitempty"`     // of a page of tasks: the cursor behind it; left out at the end

	// Problem says, in a frame that is an error, why the topic cannot be read. When it can
	// be again a snapshot follows.
	Problem *Problem `json:"problem,omitempty"`
}

// Row is one row of a topic: a task, a job, a queue, a worker, a count, or statistics, as
// the other operations show them.
type Row struct {
	ID  string `json:"id"` // unique in the topic
	Row any    `json:"row,omitempty"`
	Cut bool   `json:"cut,omitempty"` // it is too large for a frame: it has no values, or nothing but its ID
}

// watch answers with a stream of what topics show.
func (c *call) watch() error {
	topics, err := c.topicsOf()
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
					return nil // the client has gone
				}
				next = nil
				pause.Reset(framePause)
			}
			if err := await(s.ctx, next, pause); err != nil {
				return nil // it has gone, or the server stops
			}
		}
	})
}

// await waits for what wakes, or, if that is nil, for the timer.
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
	class   int           // which form of rows it gets
	wake    chan struct{} // a topic has a new state
	cursors []*cursor
	turn    int // the cursor that comes first in the next frame
}

// frame makes the next frame, nil if there is nothing to say. Problems have frames of
// their own.
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
	const head = 100 // of the event, around the data
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
