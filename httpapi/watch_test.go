package httpapi

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/goweaver/weaver"
	"github.com/goweaver/weaver/internal/storehook"
	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/store/memstore"
	"github.com/goweaver/weaver/task"
)

var watched = weaver.Define[map[string]string, weaver.None]("acme.watch.row.v1")

// counted is a store that counts its calls and can be away.
type counted struct {
	weaver.Store
	mu    sync.Mutex
	calls map[string][]time.Time // reads, by method
	away  bool
	panic bool
}

func countCalls(below weaver.Store) *counted {
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

// watching is a client of /v1/watch that keeps what the frames say.
type watching struct {
	*testing.T
	stream *sseReader
	shown  map[string]map[string]json.RawMessage // rows, by topic and id
	cut    map[string]bool                       // ids of rows that were
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

// gotUpdate is a TopicUpdate whose rows are not decoded.
type gotUpdate struct {
	TopicUpdate
	Rows []struct {
		ID  string          `json:"id"`
		Row json.RawMessage `json:"row"`
		Cut bool            `json:"cut"`
	} `json:"rows"`
}

// next returns the next frame, and applies it.
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

// until reads frames until a row says something.
func (w *watching) until(topic, id, want string) {
	w.Helper()
	for limit := time.Now().Add(time.Minute); !strings.Contains(string(w.shown[topic][id]), want); {
		if event, _ := w.next(); event == "" || time.Now().After(limit) {
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

func TestWatchSnapshotThenChanges(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := testAPI(t, nil, nil)
		c := servePipes(t, a).client(t)
		ids := enqueueWatched(t, a, map[string]string{"n": "1"}, map[string]string{"n": "2"})
		one, ready := "task:"+ids[0], "tasks:state:ready"
		w := watch(t, c, one, ready, "counts", "inbox")
		w.until(one, ids[0], `"state":"ready"`)
		w.until(ready, ids[1], `"state":"ready"`)
		w.until("counts", "state:ready", `{"n":2}`)
		for w.shown["inbox"] == nil {
			w.next()
		}
		if row := string(w.shown[ready][ids[0]]); strings.Contains(row, `"input"`) {
			t.Errorf("a row of a page has its input: %s", row)
		}

		cancel(t, a, ids[0])
		before := time.Now()
		_, got := w.next()
		if u, ok := got[one]; !ok || u.Snapshot || len(u.Rows) != 1 || time.Since(before) > rowEvery {
			t.Errorf("after %s the cancel is told with %+v", time.Since(before), got)
		}
		w.until(one, ids[0], `"state":"cancelled"`)
		w.until("counts", "state:ready", `{"n":1}`)
		for len(w.shown[ready]) != 1 || w.shown[ready][ids[1]] == nil {
			w.next()
		}

		// A claim is told, too: nothing waits for it but who watches.
		e, err := weaver.New(a.client.Store(), weaver.Config{Logger: slog.New(slog.DiscardHandler), Handlers: []weaver.Handler{
			watched.Handler(func(ctx context.Context, _ map[string]string) (weaver.None, error) {
				select {
				case <-time.After(time.Minute):
				case <-ctx.Done():
				}
				return weaver.None{}, weaver.Blocked("look at it")
			}),
		}})
		if err != nil {
			t.Fatal(err)
		}
		ended := make(chan error, 1)
		go func() { ended <- e.RunUntilIdle(t.Context()) }()
		before = time.Now()
		w.until("counts", "state:running", `{"n":1}`)
		if d := time.Since(before); d > 2*time.Second {
			t.Errorf("the claim was told after %s", d)
		}
		w.until("inbox", ids[1], "look at it")
		if err := <-ended; err != nil {
			t.Error(err)
		}

		again := watch(t, c, one, "inbox")
		again.until(one, ids[0], `"state":"cancelled"`)
		again.until("inbox", ids[1], `"state":"blocked"`)
		before = time.Now()
		a.Stop()
		for event := "update"; event != ""; {
			event, _ = w.next()
		}
		if d := time.Since(before); d != 0 {
			t.Errorf("the stream ended %s after Stop", d)
		}
		synctest.Wait()
		if a.hub.group != nil || len(a.hub.topics) != 0 {
			t.Error("the hub runs without watchers")
		}
	})
}

// TestWatchCoalesces: under 10,000 changes a second a stream gets four frames a second,
// of which the last one has the newest state.
func TestWatchCoalesces(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := testAPI(t, nil, nil)
		w := watch(t, servePipes(t, a).client(t), "tasks:", "counts")
		done := make(chan string)
		go func() {
			var last string
			for range 30_000 {
				last = enqueueWatched(t, a, map[string]string{})[0]
				time.Sleep(100 * time.Microsecond)
			}
			done <- last
		}()
		begin := time.Now()
		frames := 0
		for time.Since(begin) < 3*time.Second {
			before := len(w.shown["tasks:"])
			event, got := w.next()
			if event != "update" {
				t.Fatalf("frame %d is %s %v", frames, event, got)
			}
			frames++
			for topic, u := range got {
				if topic == "tasks:" && before == 50 && !u.Snapshot {
					t.Error("all rows of the page are other ones, and it is told as a change")
				}
			}
		}
		if frames > 13 || frames < 3 {
			t.Errorf("%d frames came in 3 s, want 4 a second at most", frames)
		}
		w.until("tasks:", <-done, `"state":"ready"`)
		if n := len(w.shown["tasks:"]); n != 50 {
			t.Errorf("the page has %d rows", n)
		}
	})
}

func TestWatchFrameSizes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := testAPI(t, nil, func(cfg *Config) {
			c, err := weaver.NewClient(cfg.Client.Store(), weaver.ClientConfig{InlineLimit: 4 << 20})
			if err != nil {
				t.Fatal(err)
			}
			cfg.Client = c
		})
		var topics []string
		large := enqueueWatched(t, a, map[string]string{"text": strings.Repeat("<é>", 100<<10)})[0]
		topics = append(topics, "task:"+large)
		var want []string
		for range 19 {
			id := enqueueWatched(t, a, map[string]string{"text": strings.Repeat("x", 100<<10)})[0]
			topics, want = append(topics, "task:"+id), append(want, id)
		}
		w := watch(t, servePipes(t, a).client(t), topics...)
		begin, frames := time.Now(), 0
		for len(w.shown) < 20 {
			if event, got := w.next(); event != "update" {
				t.Fatalf("%s %v", event, got)
			}
			frames++
		}
		if least := time.Duration(frames-1) * framePause; time.Since(begin) < least {
			t.Errorf("%d frames came in %s", frames, time.Since(begin))
		}
		for _, id := range want {
			if row := w.shown["task:"+id][id]; len(row) < 100<<10 || w.cut[id] {
				t.Errorf("the task %s has a row of %d bytes", id, len(row))
			}
		}
		if row := w.shown["task:"+large][large]; !w.cut[large] || len(row) == 0 || len(row) > 10<<10 {
			t.Errorf("the large task is shown with %d bytes, cut: %v", len(row), w.cut[large])
		}
	})
}

// TestWatchLargePage: a page that does not fit in a frame comes in several, also while
// all of its rows change.
func TestWatchLargePage(t *testing.T) {
	rows := make([]viewRow, 900)
	rev := 0
	fill := func() *view {
		rev++
		for i := range rows {
			rows[i] = viewRow{id: fmt.Sprintf("row-%04d", i), plain: fmt.Sprintf("%d %s", rev, strings.Repeat("x", 1000))}
		}
		return &view{rows: slices.Clone(rows), next: "n"}
	}
	h := &hub{}
	c := &cursor{topic: &topic{topicName: topicName{text: "tasks:"}}}
	w := &watcher{cursors: []*cursor{c}}
	has := map[string]bool{}
	for n := range 20 {
		c.topic.state.Store(h.shown(fill(), c.topic.state.Load()))
		f, err := w.frame(shownPlain)
		if err != nil || len(f) > maxFrame {
			t.Fatalf("frame %d has %d bytes (%v)", n, len(f), err)
		}
		for i := range rows {
			if strings.Contains(string(f), rows[i].id) {
				has[rows[i].id] = true
			}
		}
		if strings.Contains(string(f), `"snapshot":true`) != (n == 0) {
			t.Errorf("frame %d begins again", n)
		}
	}
	if len(has) != len(rows) {
		t.Errorf("%d of %d rows were ever told", len(has), len(rows))
	}
	for n := 0; c.done == nil; n++ {
		if _, err := w.frame(shownPlain); err != nil || n > 5 {
			t.Fatal("what does not change any more is not told in a few frames")
		}
	}
	if f, err := w.frame(shownPlain); f != nil || err != nil {
		t.Errorf("there is more to tell: %s (%v)", f, err)
	}
}

// TestWatchSlowReader: a client that does not read is cut, and slows nobody.
func TestWatchSlowReader(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := testAPI(t, nil, nil)
		srv := servePipes(t, a)
		slow := watch(t, srv.client(t), "tasks:")
		w := watch(t, srv.client(t), "tasks:")
		w.next()
		stop := make(chan bool)
		go func() {
			for {
				select {
				case <-stop:
					return
				case <-time.After(10 * time.Millisecond):
					enqueueWatched(t, a, map[string]string{"a": "b"})
				}
			}
		}()
		begin := time.Now()
		for last := begin; time.Since(begin) < 12*time.Second; last = time.Now() {
			if w.next(); time.Since(last) > pageEvery+framePause {
				t.Errorf("a frame came after %s", time.Since(last))
			}
		}
		close(stop)
		a.streams.mu.Lock()
		open := a.streams.all
		a.streams.mu.Unlock()
		if open != 1 {
			t.Errorf("%d streams are open, want the one that is read", open)
		}
		if _, err := io.ReadAll(slow.stream.Body); err == nil {
			t.Error("the slow stream ended well")
		}
	})
}

func TestWatchRefuses(t *testing.T) {
	a := testAPI(t, nil, func(cfg *Config) {
		cfg.Authorize = func(r *http.Request) (Principal, error) {
			access, err := ParseAccess(r.Header.Get("Access"))
			return Principal{Name: "ann", Access: access}, err
		}
	})
	many := make([]string, 21)
	for i := range many {
		many[i] = "counts"
	}
	for name, c := range map[string]struct {
		access string
		topics []string
		status int
		says   []string
	}{
		"none":            {"read", nil, 400, []string{"none is given", "task:ID, job:ID, tasks:QUERY, counts, queues, workers, inbox, stats"}},
		"too many":        {"read", many, 400, []string{"there are 21", "at most 20"}},
		"unknown":         {"read", []string{"counts", "task"}, 400, []string{"it is written task:ID"}},
		"mistyped":        {"read", []string{"cuonts"}, 400, []string{"did you mean counts?", "workers"}},
		"too much":        {"read", []string{"queues:a"}, 400, []string{"it is written queues"}},
		"no id":           {"read", []string{"job:7"}, 400, []string{"is not an id"}},
		"a bad query":     {"read", []string{"tasks:stat:failed"}, 400, []string{`"column":7`, `"meant":"state:"`, "invalid-query"}},
		"a long query":    {"read", []string{"tasks:" + strings.Repeat("x", 3<<10)}, 400, []string{"3072 bytes"}},
		"hidden values":   {"read", []string{"tasks:input.n=1"}, 403, []string{"payloads"}},
		"another access":  {"submit", []string{"counts"}, 403, []string{"needs the access read"}},
		"another control": {"read", []string{"\x00" + strings.Repeat("é", 200)}, 400, []string{"…"}},
	} {
		t.Run(name, func(t *testing.T) {
			w := &recorder{header: http.Header{}}
			r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, watchPath(c.topics...), http.NoBody)
			if err != nil {
				t.Fatal(err)
			}
			r.Header.Set("Access", c.access)
			a.ServeHTTP(w, r)
			for _, s := range c.says {
				if w.status != c.status || !strings.Contains(w.body.String(), s) {
					t.Errorf("%d, want %d: %s, want %q", w.status, c.status, &w.body, s)
				}
			}
		})
	}
}

// recorder is an http.ResponseWriter.
type recorder struct {
	header http.Header
	status int
	body   strings.Builder
}

func (r *recorder) Header() http.Header         { return r.header }
func (r *recorder) WriteHeader(status int)      { r.status = status }
func (r *recorder) Write(b []byte) (int, error) { return r.body.Write(b) }

func TestWatchStreamLimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := testAPI(t, nil, func(cfg *Config) {
			cfg.Authorize = func(r *http.Request) (Principal, error) {
				return Principal{Name: r.Header.Get("Name"), Access: Read}, nil
			}
		})
		c := servePipes(t, a).client(t)
		get := func(n int) *http.Response {
			r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://localhost"+watchPath("counts"), http.NoBody)
			if err != nil {
				t.Fatal(err)
			}
			r.Header.Set("Name", fmt.Sprint("p", n/200))
			res, err := c.Do(r)
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = res.Body.Close() })
			return res
		}
		for n := range 1000 {
			if res := get(n); res.StatusCode != http.StatusOK {
				t.Fatalf("stream %d is answered with %s", n, res.Status)
			}
		}
		if res := get(1000); res.StatusCode != http.StatusTooManyRequests {
			t.Errorf("stream 1,001 is answered with %s", res.Status)
		}
	})
}

// TestWatchStoreGone: while the store is away the client is told so, once, and then what
// there is.
func TestWatchStoreGone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := countCalls(memstore.New())
		a := testAPI(t, s.Store, nil)
		id := enqueueWatched(t, a, map[string]string{"n": "1"})[0]
		topics := []string{"task:" + id, "queues"}
		w := watch(t, servePipes(t, a).client(t), topics...)
		w.until(topics[0], id, `"state":"ready"`)
		for w.shown["queues"] == nil {
			w.next()
		}
		s.set(true, false)
		told := map[string]bool{}
		a.hub.notice(store.Notice{})
		for len(told) < 2 {
			event, got := w.next()
			for topic, u := range got {
				if event != "error" || u.Problem == nil || u.Problem.Status != http.StatusServiceUnavailable || told[topic] {
					t.Fatalf("%s %+v, want an error of each topic, once", event, got)
				}
				told[topic] = true
			}
		}
		s.take()
		time.Sleep(10 * time.Second) // and nothing is told, but a comment
		for method, calls := range s.take() {
			if len(calls) > 11 {
				t.Errorf("%d reads of %s in 10 s of a store that is away", len(calls), method)
			}
		}
		s.set(false, false)
		back := map[string]bool{}
		for len(back) < 2 {
			event, got := w.next()
			for topic, u := range got {
				if event != "update" || !u.Snapshot || len(u.Rows) != 1 {
					t.Fatalf("%s %+v, want a snapshot of each topic", event, got)
				}
				back[topic] = true
			}
		}
		cancel(t, a, id)
		w.until(topics[0], id, `"state":"cancelled"`)

		s.set(false, true)
		a.hub.notice(store.Notice{})
		if event, got := w.next(); event != "error" || got[topics[0]].Problem == nil || got[topics[0]].Problem.Status != http.StatusInternalServerError {
			t.Errorf("a read that panics is told with %s %+v", event, got)
		}
		s.set(false, false)
		for event := "error"; event == "error"; {
			event, _ = w.next()
		}
		w.until(topics[0], id, `"state":"cancelled"`)
	})
}

func TestWatchTaskThatIsNot(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := testAPI(t, nil, nil)
		other, err := weaver.NewClient(a.client.Store(), weaver.ClientConfig{Namespace: "other"})
		if err != nil {
			t.Fatal(err)
		}
		h, err := watched.Enqueue(t.Context(), other, nil)
		if err != nil {
			t.Fatal(err)
		}
		topic := "task:" + h.ID().String()
		w := watch(t, servePipes(t, a).client(t), topic)
		if event, got := w.next(); event != "error" || got[topic].Problem == nil || got[topic].Problem.Status != http.StatusNotFound {
			t.Errorf("a task of another namespace is told with %s %+v", event, got)
		}
	})
}

// TestWatchReads: what is watched is read when something changed, so often at most, once
// for all who watch; and what is not watched is not read.
func TestWatchReads(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := countCalls(memstore.New())
		a := testAPI(t, s.Store, nil)
		c := servePipes(t, a).client(t)
		id := enqueueWatched(t, a, map[string]string{})[0]
		storm := func(d time.Duration) {
			for begin := time.Now(); time.Since(begin) < d; time.Sleep(time.Millisecond) {
				enqueueWatched(t, a, map[string]string{})
			}
		}
		quiet := func(when string) {
			t.Helper()
			s.take()
			for range 60 {
				enqueueWatched(t, a, map[string]string{})
				time.Sleep(time.Second)
			}
			if got := s.take(); len(got) > 0 {
				t.Errorf("%s there were reads: %v", when, slices.Collect(maps.Keys(got)))
			}
			if a.hub.group != nil {
				t.Errorf("%s the hub runs", when)
			}
		}
		quiet("before anything was watched")
		ctx, leave := context.WithCancel(t.Context())
		for range 20 {
			r, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://localhost"+watchPath("task:"+id, "tasks:", "counts"), http.NoBody)
			if err != nil {
				t.Fatal(err)
			}
			res, err := c.Do(r)
			if err != nil {
				t.Fatal(err)
			}
			go func() { _, _ = io.Copy(io.Discard, res.Body) }()
		}
		time.Sleep(time.Second)
		s.take()
		storm(10 * time.Second)
		got := s.take()
		for method, most := range map[string]time.Duration{"Tasks": rowEvery, "List": pageEvery, "Overview": pageEvery} {
			calls := got[method]
			if n := len(calls); n > int(10*time.Second/most)+1 || n < int(10*time.Second/most)*3/4 {
				t.Errorf("%s was called %d times in 10 s", method, n)
			}
			for i := 1; i < len(calls); i++ {
				if d := calls[i].Sub(calls[i-1]); d < most {
					t.Errorf("%s was called again after %s", method, d)
				}
			}
		}
		time.Sleep(10 * time.Second)
		s.take()
		time.Sleep(time.Minute) // nothing changes in a store that tells of everything
		if got := s.take(); len(got) > 0 {
			t.Errorf("there were reads while nothing changed: %v", got)
		}
		leave()
		synctest.Wait()
		quiet("after all went")
	})
}

// TestWatchPolls: a store whose notices do not say everything is looked at by itself, and
// so is what only time changes.
func TestWatchPolls(t *testing.T) {
	for name, c := range map[string]struct {
		hide   storehook.Optional
		notify func(func(store.Notice), func(func(store.Notice)) (func(), bool)) (func(), bool)
		topic  string
		every  time.Duration
	}{
		"no notices": {storehook.Notifier, nil, "counts", hubPollBlind},
		"incomplete notices": {0, func(func(store.Notice), func(func(store.Notice)) (func(), bool)) (func(), bool) {
			return func() {}, false
		}, "counts", hubPoll},
		"what time may change": {0, nil, "queues", hubPoll},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := countCalls(memstore.New())
				below := storehook.New(s.Store, &storehook.Hooks{Hide: c.hide, Notify: c.notify})
				a := testAPI(t, below, nil)
				w := watch(t, servePipes(t, a).client(t), c.topic)
				w.next()
				go func() { _, _ = io.Copy(io.Discard, w.stream.Body) }()
				s.take()
				time.Sleep(time.Minute + time.Second)
				want := int(time.Minute / c.every)
				if n := len(s.take()["Overview"]); n < want-1 || n > want+1 {
					t.Errorf("there were %d reads in a minute, want %d", n, want)
				}
			})
		})
	}
}

// TestWatchRests: what takes long to read is read less often.
func TestWatchRests(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var calls []time.Time
		below := storehook.New(memstore.New(), &storehook.Hooks{List: func(_ context.Context, _ store.Filter, next func() (storehook.Page[task.Task], error)) (storehook.Page[task.Task], error) {
			calls = append(calls, time.Now())
			time.Sleep(200 * time.Millisecond)
			return next()
		}})
		a := testAPI(t, below, nil)
		w := watch(t, servePipes(t, a).client(t), "tasks:")
		go func() { _, _ = io.Copy(io.Discard, w.stream.Body) }()
		for begin := time.Now(); time.Since(begin) < 21*time.Second; time.Sleep(10 * time.Millisecond) {
			enqueueWatched(t, a, map[string]string{})
		}
		a.Stop()
		time.Sleep(time.Second) // for the read that does not heed its context
		for i := 1; i < len(calls); i++ {
			if d := calls[i].Sub(calls[i-1]); d < 4200*time.Millisecond || d > 4300*time.Millisecond {
				t.Errorf("the page was read again after %s", d)
			}
		}
		if len(calls) < 5 {
			t.Errorf("the page was read %d times", len(calls))
		}
	})
}

// TestWatchPrivacy: values are shown to principals who may read them, masked as the task
// says, and to no others, whoever else watches.
func TestWatchPrivacy(t *testing.T) {
	secret := weaver.Define[struct {
		Name string `json:"name"`
		Card string `json:"card" weaver:"redact"`
	}, weaver.None]("acme.watch.secret.v1")
	synctest.Test(t, func(t *testing.T) {
		a := testAPI(t, nil, func(cfg *Config) {
			cfg.Authorize = func(r *http.Request) (Principal, error) {
				access, err := ParseAccess(r.Header.Get("Access"))
				return Principal{Name: "ann", Access: access}, err
			}
		})
		open := func(access Access, topic string) *watching {
			return watch(t, servePipes(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				r.Header.Set("Access", access.String())
				a.ServeHTTP(w, r)
			})).client(t), topic)
		}
		h, err := secret.Enqueue(t.Context(), a.client, struct {
			Name string `json:"name"`
			Card string `json:"card" weaver:"redact"`
		}{"Eve", "4111"})
		if err != nil {
			t.Fatal(err)
		}
		id := h.ID().String()
		for _, access := range []Access{Read, Read | Payloads, Read, Full} {
			w := open(access, "task:"+id)
			w.until("task:"+id, id, `"state":"ready"`)
			row := string(w.shown["task:"+id][id])
			if strings.Contains(row, "4111") {
				t.Errorf("%s sees what is redacted: %s", access, row)
			}
			if strings.Contains(row, "Eve") != access.Has(Payloads) || strings.Contains(row, `"payloads_hidden":true`) == access.Has(Payloads) {
				t.Errorf("%s sees %s", access, row)
			}
		}
		w := open(Full, "tasks:")
		w.until("tasks:", id, `"state":"ready"`)
		if row := string(w.shown["tasks:"][id]); strings.Contains(row, "4111") || strings.Contains(row, "Eve") {
			t.Errorf("a page shows %s", row)
		}
	})
}
