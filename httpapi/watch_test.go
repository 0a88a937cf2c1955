package httpapi

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/goweaver/weaver"
)

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

		// A claim has a notice too, although only watchers wait for it.
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

// TestWatchCoalesces: under 10,000 changes a second a stream gets four frames a second, and the
// last one has the newest state.
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

// TestWatchLargePage: a page that does not fit into a frame is split over several, even while all
// of its rows change.
func TestWatchLargePage(t *testing.T) {
	if testing.Short() {
		t.Skip("make test runs this")
	}
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
		c.topic.state.Store(h.shown(fill(), c.topic.state.Load(), false))
		f, err := w.frame()
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
		if _, err := w.frame(); err != nil || n > 5 {
			t.Fatal("what does not change any more is not told in a few frames")
		}
	}
	if f, err := w.frame(); f != nil || err != nil {
		t.Errorf("there is more to tell: %s (%v)", f, err)
	}
}

// TestWatchOnce: the present content comes in full, without pauses, and a missing task as its problem; the
// answer ends although the content changes.
func TestWatchOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := testAPI(t, nil, nil)
		c := servePipes(t, a).client(t)
		var topics []string
		for range 10 {
			topics = append(topics, "task:"+enqueueWatched(t, a, map[string]string{"text": strings.Repeat("x", 60<<10)})[0])
		}
		none := "task:01ARZ3NDEKTSV4RRFFQ69G5FAV"
		topics = append(topics, none, "counts", "inbox")
		w := &watching{T: t, shown: map[string]map[string]json.RawMessage{}, cut: map[string]bool{}}
		w.stream = connect(t, c, watchPath(topics...)+"&once=true")
		w.stream.next() // retry
		begin, frames := time.Now(), 0
		var failing []string
		for {
			event, got := w.next()
			if event == "" {
				break
			}
			frames++
			for topic := range got {
				if event == "error" {
					failing = append(failing, topic)
				}
			}
			enqueueWatched(t, a, map[string]string{"n": "1"})
		}
		if d := time.Since(begin); d > time.Second {
			t.Errorf("%d frames and the end took %s", frames, d)
		}
		if !slices.Equal(failing, []string{none}) || len(w.shown) != len(topics)-1 || frames < 4 {
			t.Errorf("%d frames showed %d topics, and problems of %s", frames, len(w.shown), failing)
		}
		for _, topic := range topics[:10] {
			if row := w.shown[topic][strings.TrimPrefix(topic, "task:")]; len(row) < 60<<10 {
				t.Errorf("%s has a row of %d bytes", topic, len(row))
			}
		}
		synctest.Wait()
		if a.hub.group != nil {
			t.Error("the hub runs without watchers")
		}
	})
}

// TestWatchSlowReader: a client that does not read is cut, and delays no other.
func TestWatchSlowReader(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := testAPI(t, nil, nil)
		srv := servePipes(t, a)
		slow := watch(t, srv.client(t), "tasks:")
		w := watch(t, srv.client(t), "tasks:")
		w.next()
		stop, stopped := make(chan bool), make(chan bool)
		go func() {
			defer close(stopped)
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
		<-stopped
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
