package httpapi

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/goweaver/weaver"
	"github.com/goweaver/weaver/internal/faults/storehook"
	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/task"
)

var watched = weaver.Define[map[string]string, weaver.None]("acme.watch.row.v1")

// counted is a store that counts its calls and can be made unavailable.
type counted struct {
	store.Store
	mu    sync.Mutex
	calls map[string][]time.Time // reads, by method
	away  bool
	panic bool
}

func countCalls(below store.Store) *counted {
	c := &counted{calls: map[string][]time.Time{}}
	c.Store = storehook.New(below, &storehook.Hooks{Around: func(ctx context.Context, call *storehook.Call, next func(context.Context) error) error {
		c.mu.Lock()
		away := c.away
		if slices.Contains([]string{"Tasks", "List", "Jobs", "Overview", "History"}, call.Method) {
			c.calls[call.Method] = append(c.calls[call.Method], time.Now())
			if c.panic {
				c.mu.Unlock()
				panic("oh")
			}
		}
		c.mu.Unlock()
		if away {
			return fmt.Errorf("dial: %w", store.ErrUnavailable)
		}
		return next(ctx)
	}})
	return c
}

func (c *counted) set(away, panics bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.away, c.panic = away, panics
}

// take returns the calls since the last take.
func (c *counted) take() map[string][]time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	calls := c.calls
	c.calls = map[string][]time.Time{}
	return calls
}

// watching is a client of /v1/watch that applies the frames.
type watching struct {
	*testing.T
	stream *sseReader
	shown  map[string]map[string]json.RawMessage // rows by topic and id
	cut    map[string]bool                       // ids of cut rows
}

func watch(t *testing.T, c *http.Client, topics ...string) *watching {
	t.Helper()
	w := &watching{T: t, shown: map[string]map[string]json.RawMessage{}, cut: map[string]bool{}}
	w.stream = connect(t, c, watchPath(topics...))
	w.stream.next() // retry
	return w
}

func watchPath(topics ...string) string {
	return "/v1/watch?" + url.Values{"topic": topics}.Encode()
}

// gotUpdate is a TopicUpdate with encoded rows.
type gotUpdate struct {
	TopicUpdate
	Rows []struct {
		ID  string          `json:"id"`
		Row json.RawMessage `json:"row"`
		Cut bool            `json:"cut"`
	} `json:"rows"`
}

// next reads and applies the next frame.
func (w *watching) next() (event string, updates map[string]gotUpdate) {
	w.Helper()
	for comments := 0; ; comments++ {
		f, ok := w.stream.next()
		if !ok {
			return "", nil
		}
		if comments > 4 {
			w.Fatalf("a minute went by without a frame; shown is %s", w.shown)
		}
		if f.Comment {
			continue
		}
		if len(f.Data) > maxFrame-50 {
			w.Errorf("a frame has %d bytes", len(f.Data))
		}
		var got struct {
			At     int64
			Topics []gotUpdate
		}
		if err := json.Unmarshal([]byte(f.Data), &got); err != nil {
			w.Fatalf("%v: %s", err, f.Data)
		}
		if now := time.Now().UnixMilli(); got.At > now || got.At < now-20_000 {
			w.Errorf("the frame says that it is %d, and it is %d", got.At, now)
		}
		updates = map[string]gotUpdate{}
		for _, u := range got.Topics {
			updates[u.Topic] = u
			if u.Problem != nil {
				continue
			}
			rows := w.shown[u.Topic]
			if u.Snapshot {
				rows = map[string]json.RawMessage{}
				w.shown[u.Topic] = rows
			} else if rows == nil {
				w.Errorf("%s begins without a snapshot: %s", u.Topic, f.Data)
			}
			for _, id := range u.Removed {
				if rows[id] == nil {
					w.Errorf("%s has no row %s to remove", u.Topic, id)
				}
				delete(rows, id)
			}
			for _, r := range u.Rows {
				rows[r.ID], w.cut[r.ID] = r.Row, r.Cut
			}
		}
		return f.Event, updates
	}
}

// until reads frames until a row contains want.
func (w *watching) until(topic, id, want string) {
	w.Helper()
	for frames := 0; !strings.Contains(string(w.shown[topic][id]), want); frames++ {
		if event, _ := w.next(); event == "" || frames > 1000 {
			w.Fatalf("the row %s of %s is %s, want %s", id, topic, w.shown[topic][id], want)
		}
	}
}

func enqueueWatched(t *testing.T, a *API, inputs ...map[string]string) (ids []string) {
	t.Helper()
	for _, in := range inputs {
		h, err := watched.Enqueue(t.Context(), a.client, in)
		if err != nil {
			t.Fatal(err)
		}
		ids = append(ids, h.ID().String())
	}
	return ids
}

func cancel(t *testing.T, a *API, id string) {
	t.Helper()
	parsed, err := task.ParseID(id)
	if err == nil {
		err = a.client.Cancel(t.Context(), parsed)
	}
	if err != nil {
		t.Fatal(err)
	}
}
