package httpapi

import (
	"context"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/goweaver/weaver"
	"github.com/goweaver/weaver/internal/faults/storehook"
	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/store/memstore"
	"github.com/goweaver/weaver/task"
)

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
		"none":            {"read", nil, 400, []string{"missing: use one or more of", "task:ID, job:ID, tasks:QUERY, counts, queues, workers, inbox, stats"}},
		"too many":        {"read", many, 400, []string{"there are 21", "at most 20"}},
		"unknown":         {"read", []string{"counts", "task"}, 400, []string{"it is written task:ID"}},
		"mistyped":        {"read", []string{"cuonts"}, 400, []string{"did you mean counts?", "workers"}},
		"too much":        {"read", []string{"queues:a"}, 400, []string{"it is written queues"}},
		"no id":           {"read", []string{"job:7"}, 400, []string{"is not an id"}},
		"a bad query":     {"read", []string{"tasks:stat:failed"}, 400, []string{`"column":7`, `"meant":"state:"`, "invalid-query"}},
		"a long query":    {"read", []string{"tasks:" + strings.Repeat("x", 3<<10)}, 400, []string{"3072 bytes"}},
		"hidden values":   {"read", []string{"tasks:input.n=1"}, 403, []string{"payloads"}},
		"another access":  {"submit", []string{"counts"}, 403, []string{"needs the access read"}},
		"another control": {"read", []string{"\x01" + strings.Repeat("é", 200)}, 400, []string{"…"}},
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

// recorder is an http.ResponseWriter that records.
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

// TestWatchStoreGone: while the store is unavailable the client gets one error, and afterwards the
// present content.
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
		time.Sleep(10 * time.Second) // only comments are sent
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

// TestWatchReads: a watched topic is read after a change, at most at its interval, and once for all
// its watchers. An unwatched topic is not read.
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
		time.Sleep(time.Minute) // no change, in a store with complete notices
		if got := s.take(); len(got) > 0 {
			t.Errorf("there were reads while nothing changed: %v", got)
		}
		leave()
		synctest.Wait()
		quiet("after all went")
	})
}

// TestWatchPolls: a store with incomplete notices is polled, and so are topics that change as time
// passes.
func TestWatchPolls(t *testing.T) {
	for name, c := range map[string]struct {
		hide   store.Capabilities
		notify func(func(store.Notice), func(func(store.Notice)) (func(), bool)) (func(), bool)
		topic  string
		every  time.Duration
	}{
		"no notices": {store.CanNotify, nil, "counts", hubPollBlind},
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

// TestWatchRests: a topic that is slow to read is read less often.
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
		for begin := time.Now(); time.Since(begin) < 41*time.Second; time.Sleep(10 * time.Millisecond) {
			enqueueWatched(t, a, map[string]string{})
		}
		a.Stop()
		time.Sleep(time.Second) // until the read that ignores its context returns
		synctest.Wait()
		for i := 1; i < len(calls); i++ {
			if d := calls[i].Sub(calls[i-1]); d < 8200*time.Millisecond || d > 8300*time.Millisecond {
				t.Errorf("the page was read again after %s", d)
			}
		}
		if len(calls) < 5 {
			t.Errorf("the page was read %d times", len(calls))
		}
	})
}

// TestWatchPrivacy: values are sent only to principals that may read them, masked as the task says,
// whoever else watches.
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
		}{"Eve", "4111-22"})
		if err != nil {
			t.Fatal(err)
		}
		id := h.ID().String()
		var opened []*watching
		for _, access := range []Access{Read, Read | Payloads, Read, Full} {
			w := open(access, "task:"+id)
			opened = append(opened, w)
			w.until("task:"+id, id, `"state":"ready"`)
			row := string(w.shown["task:"+id][id])
			if strings.Contains(row, "4111-22") {
				t.Errorf("%s sees what is redacted: %s", access, row)
			}
			if strings.Contains(row, "Eve") != access.Has(Payloads) || strings.Contains(row, `"payloads_hidden":true`) == access.Has(Payloads) {
				t.Errorf("%s sees %s", access, row)
			}
		}
		// For other principals the values are not even encoded.
		topic := "task:" + id
		has := func() bool {
			st := a.hub.topics[topic].state.Load()
			return strings.Contains(fmt.Sprintf("%s", st.rows[0].shown), "Eve")
		}
		leave := func(w *watching) {
			_ = w.stream.Body.Close()
			time.Sleep(time.Second)
		}
		time.Sleep(time.Second)
		synctest.Wait()
		if !has() {
			t.Error("a topic that is watched with the access payloads has no values")
		}
		for _, w := range opened[1:] {
			leave(w)
		}
		if has() {
			t.Error("a topic has values that nobody may see")
		}
		var frames atomic.Int32
		go func() {
			for event, _ := opened[0].next(); event != ""; event, _ = opened[0].next() {
				frames.Add(1)
			}
		}()
		again := open(Full, topic)
		begun := time.Now()
		again.until(topic, id, "Eve")
		if d := time.Since(begun); d > rowEvery+2*hubPause {
			t.Errorf("values came after %s", d)
		}
		leave(again)
		if n := frames.Load(); n > 0 || has() {
			t.Errorf("who may not see values got %d frames while they came and went", n)
		}
		cancel(t, a, id)
		time.Sleep(time.Second)
		if n := frames.Load(); n != 1 || has() {
			t.Errorf("then a change came in %d frames", n)
		}
		w := open(Full, "tasks:")
		w.until("tasks:", id, `"state":"cancelled"`)
		if row := string(w.shown["tasks:"][id]); strings.Contains(row, "4111-22") || strings.Contains(row, "Eve") {
			t.Errorf("a page shows %s", row)
		}
	})
}
