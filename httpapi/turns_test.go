package httpapi

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/goweaver/weaver/internal/faults/storehook"
	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/store/memstore"
	"github.com/goweaver/weaver/task"
)

// slowLists is a store with slow lists.
type slowLists struct {
	store.Store
	mu      sync.Mutex
	running int
	most    int            // the maximum of concurrent calls
	calls   map[string]int // by queue
}

func makeListsSlow(d time.Duration) *slowLists {
	s := &slowLists{calls: map[string]int{}}
	s.Store = storehook.New(memstore.New(), &storehook.Hooks{List: func(ctx context.Context, f store.Filter, next func() (storehook.Page[task.Task], error)) (storehook.Page[task.Task], error) {
		s.mu.Lock()
		s.running++
		s.most = max(s.most, s.running)
		s.calls[f.Queue]++
		s.mu.Unlock()
		select {
		case <-time.After(d):
		case <-ctx.Done():
		}
		s.mu.Lock()
		s.running--
		s.mu.Unlock()
		return next()
	}})
	return s
}

// byHeader takes a principal's name and access from the request.
func byHeader(cfg *Config) {
	cfg.Authorize = func(r *http.Request) (Principal, error) {
		access, err := ParseAccess(r.Header.Get("Access"))
		return Principal{Name: r.Header.Get("Name"), Access: access}, err
	}
}

// as returns a client that sends a principal's name and access.
func as(t *testing.T, a *API, name string, access Access) *http.Client {
	return servePipes(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		r.Header.Set("Name", name)
		r.Header.Set("Access", access.String())
		a.ServeHTTP(w, r)
	})).client(t)
}

// TestWatchSlowTopics: topics that are slow to read delay no others, and take turns.
func TestWatchSlowTopics(t *testing.T) {
	for name, c := range map[string]struct {
		topic  string // %d is its number
		places int    // slots for them
		most   int    // maximum of concurrent lists
	}{
		"searches": {`tasks:queue:q%d "zzz"`, hubSearches, hubSearches + 1},
		"pages":    {"tasks:queue:q%d", hubPages, hubPages},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				const took = 500 * time.Millisecond
				s := makeListsSlow(took)
				a := testAPI(t, s.Store, byHeader)
				for n := range 5 {
					topics := make([]string, 20)
					for i := range topics {
						topics[i] = fmt.Sprintf(c.topic, 20*n+i)
					}
					slow := watch(t, as(t, a, fmt.Sprint("p", n), Read), topics...)
					go func() { _, _ = io.Copy(io.Discard, slow.stream.Body) }()
				}
				begun := time.Now()
				for n := range 10 {
					id := enqueueWatched(t, a, map[string]string{})[0]
					w := watch(t, as(t, a, "ann", Read), "task:"+id)
					for _, do := range []func(){func() {}, func() { cancel(t, a, id) }} {
						do()
						before := time.Now()
						w.next()
						if d := time.Since(before); d > rowEvery+2*hubPause {
							t.Errorf("a frame of a task came after %s", d)
						}
					}
					if n == 0 && name == "searches" { // a slot is reserved for pages, too
						other := watch(t, as(t, a, "ann", Read), "tasks:queue:other")
						before := time.Now()
						if other.next(); time.Since(before) > took+2*hubPause {
							t.Errorf("a page came after %s", time.Since(before))
						}
						_ = other.stream.Body.Close()
					}
					_ = w.stream.Body.Close()
				}
				time.Sleep(100*(took+hubPause)/time.Duration(c.places) + time.Second - time.Since(begun))
				s.mu.Lock()
				defer s.mu.Unlock()
				for i := range 100 {
					if s.calls[fmt.Sprint("q", i)] == 0 {
						t.Errorf("the topic %d has not been read, while others were %v times", i, s.calls)
						break
					}
				}
				if s.most != c.most {
					t.Errorf("%d lists ran at a time, want %d", s.most, c.most)
				}
			})
		})
	}
}

// TestWatchRelativeTimes: rows that leave a relative time range are removed, also without another
// change. A snapshot without rows has an empty list.
func TestWatchRelativeTimes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := countCalls(memstore.New())
		a := testAPI(t, s.Store, nil)
		id := enqueueWatched(t, a, map[string]string{})[0]
		c := servePipes(t, a).client(t)
		begun := time.Now()
		topic := "tasks:created>-1m"
		w := watch(t, c, topic)
		w.until(topic, id, "ready")
		for len(w.shown[topic]) > 0 {
			w.next()
		}
		if d := time.Since(begun); d < time.Minute || d > time.Minute+hubPoll+pageEvery {
			t.Errorf("the row went after %s", d)
		}
		_ = w.stream.Body.Close()
		empty := connect(t, c, watchPath("inbox", "tasks:created>2000-01-02"))
		empty.next() // retry
		for texts := ""; ; {
			f, _ := empty.next()
			if f.Comment {
				t.Fatalf("the snapshots are %s", texts)
			}
			if texts += f.Data; strings.Count(texts, `"snapshot":true,"rows":[]}`) == 2 {
				break
			}
		}
		s.take()
		go func() { _, _ = io.Copy(io.Discard, empty.Body) }()
		time.Sleep(time.Minute)
		if calls := s.take(); len(calls) > 0 {
			t.Errorf("without a time ago there were reads: %v", calls)
		}
	})
}

// TestWatchSearchLimit: the number of different searches of a principal is limited over all its
// streams.
func TestWatchSearchLimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := testAPI(t, nil, func(cfg *Config) {
			byHeader(cfg)
			cfg.MaxSearchesPerPrincipal = 3
		})
		ann, bob := as(t, a, "ann", Read), as(t, a, "bob", Read)
		refused := func(topics ...string) {
			t.Helper()
			r := tryConnect(t, ann, watchPath(topics...))
			body, _ := io.ReadAll(r.Body)
			if r.StatusCode != http.StatusTooManyRequests || !strings.Contains(string(body), "too-many-searches") || !strings.Contains(string(body), `\"ann\" would watch 4 searches, and may watch 3`) {
				t.Errorf("%q are answered with %s: %s", topics, r.Status, body)
			}
		}
		refused("tasks:a", "tasks:b", "tasks:c", "tasks:d")
		first := connect(t, ann, watchPath("tasks:a", "tasks:b", "tasks:state:failed", "counts"))
		second := connect(t, ann, watchPath("tasks:b", "tasks:c", "tasks:b"))
		refused("tasks:d")
		connect(t, ann, watchPath("tasks:a", "tasks:state:ready", "tasks:queue:x created>-1h"))
		connect(t, bob, watchPath("tasks:d"))
		_ = first.Body.Close()
		synctest.Wait()
		refused("tasks:d") // a and b are still watched
		_ = second.Body.Close()
		synctest.Wait()
		connect(t, ann, watchPath("tasks:d"))
		a.Stop()
		synctest.Wait()
		if len(a.searching.byName) != 0 {
			t.Errorf("searches are counted: %v", a.searching.byName)
		}
	})
}
