package httpapi

import (
	"context"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/goweaver/weaver"
	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/store/memstore"
)

// eventsServer starts an API on pipes that keeps events.
func eventsServer(t *testing.T, s store.Store, change func(*Config)) (*API, *pipes, func(n int)) {
	t.Helper()
	a := testAPI(t, s, change)
	if err := a.client.KeepEvents(t.Context(), time.Hour); err != nil {
		t.Fatal(err)
	}
	typ := weaver.Define[int, int]("acme.feed.events.v1")
	return a, servePipes(t, a), func(n int) {
		t.Helper()
		drafts := make([]weaver.Draft, n)
		for i := range drafts {
			drafts[i] = typ.With(i)
		}
		if _, err := a.client.EnqueueTasks(t.Context(), drafts...); err != nil {
			t.Fatal(err)
		}
	}
}

// A client whose filter matches no event still receives its position.
func TestEventsTellWhereToGoOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, srv, enqueue := eventsServer(t, nil, nil)
		r := connect(t, srv.client(t), "/v1/events?queue=none")
		r.next() // retry
		if f, _ := r.next(); f != (sseFrame{ID: "0"}) {
			t.Errorf("the stream begins with %+v, want the id 0 alone", f)
		}
		enqueue(3)
		began := time.Now()
		f, _ := r.next()
		if f != (sseFrame{ID: "3"}) || time.Since(began) > heartbeat {
			t.Errorf("after %s comes %+v, want the id 3 alone", time.Since(began), f)
		}
		if f, _ := r.next(); f != (sseFrame{Comment: true}) {
			t.Errorf("then comes %+v, want a comment", f)
		}
		a.Stop()
		if f, more := r.next(); more || r.scan.Err() != nil {
			t.Errorf("after Stop comes %+v (%v)", f, r.scan.Err())
		}
	})
}

// A client that reads nothing is cut after 10 s, costs at most the memory of a page, and delays no
// other client.
func TestEventsOfSlowReaders(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const events, stuck = 20_000, 20
		a, srv, enqueue := eventsServer(t, nil, nil)
		for range events / 500 {
			enqueue(500)
		}
		c := srv.client(t)
		before := inUse()
		for range stuck {
			connect(t, c, "/v1/events?after=0").next() // and read nothing more
		}
		synctest.Wait()
		if cost := (inUse() - before) / stuck; cost > 1<<20 {
			t.Errorf("a stuck reader costs %d bytes", cost)
		}
		began, at := time.Now(), 0
		r := connect(t, c, "/v1/events?after=0")
		for at < events {
			f, more := r.next()
			if !more {
				t.Fatalf("the stream ended at %d: %v", at, r.scan.Err())
			}
			if f.Event == "message" {
				if at++; f.ID != strconv.Itoa(at) {
					t.Fatalf("the event %s comes as number %d", f.ID, at)
				}
			}
		}
		if d := time.Since(began); d > time.Second {
			t.Errorf("beside %d stuck readers it took %s", stuck, d)
		}
		go func() {
			for _, more := r.next(); more; _, more = r.next() {
			}
		}()
		time.Sleep(11 * time.Second)
		synctest.Wait()
		if n := openStreams(a); n != 1 {
			t.Errorf("%d streams are open after 11 s, want the one that reads", n)
		}
	})
}

func openStreams(a *API) int {
	a.streams.mu.Lock()
	defer a.streams.mu.Unlock()
	return a.streams.all
}

// inUse returns the bytes of the heap and the stacks.
func inUse() int64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapInuse + m.StackInuse)
}

// While the store is unavailable the stream stays open and has one error event. All events arrive
// when the store is back.
func TestEventsStoreGone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := countCalls(memstore.New())
		a, srv, enqueue := eventsServer(t, s.Store, nil)
		r := connect(t, srv.client(t), "/v1/events?after=0")
		r.next() // retry
		enqueue(1)
		if f, _ := r.next(); f.ID != "1" {
			t.Fatalf("the first event is %+v", f)
		}
		s.set(true, false)
		if f, _ := r.next(); f.Event != "error" || f.ID != "" || !strings.Contains(f.Data, `"status":503`) {
			t.Fatalf("without the store the stream says %+v", f)
		}
		for began := time.Now(); time.Since(began) < time.Minute; {
			if f, more := r.next(); f != (sseFrame{Comment: true}) {
				t.Fatalf("then comes %+v (%t), want comments", f, more)
			}
		}
		s.set(false, false)
		enqueue(2)
		for _, id := range []string{"2", "3"} {
			if f, _ := r.next(); f.Event != "message" || f.ID != id {
				t.Errorf("when the store is back %+v comes, want the event %s", f, id)
			}
		}
		s.set(true, false)
		if f, _ := r.next(); f.Event != "error" {
			t.Errorf("when it goes again the stream says %+v", f)
		}
		a.Stop()
		if f, more := r.next(); more {
			t.Errorf("after Stop comes %+v", f)
		}
	})
}

// A stream ends with a problem when the store does not keep events any more.
func TestEventsWithoutTheStore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, srv, enqueue := eventsServer(t, nil, nil)
		r := connect(t, srv.client(t), "/v1/events?after=0")
		r.next()
		enqueue(1)
		f, _ := r.next()
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		if err := a.client.KeepEvents(ctx, 0); err != nil {
			t.Fatal(err)
		}
		if e, _ := r.next(); e.Event != "error" || f.ID != "1" {
			t.Errorf("without events the stream says %+v, after %+v", e, f)
		}
	})
}
