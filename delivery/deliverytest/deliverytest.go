// Package deliverytest is the conformance suite for delivery.Transport, to be called by the test of an adapter.
//
// A Transport may lose, repeat and reorder hints. Here nothing disturbs it, so every hint must arrive after a few pushes
// at most; the suite logs how many were lost or repeated on the way.
package deliverytest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/goweaver/weaver/delivery"
	"github.com/goweaver/weaver/task"
)

// Run tests the transports returned by open. Each call of open must return a new transport without hints. Run closes it.
func Run(t *testing.T, open func(t *testing.T) delivery.Transport) {
	cases := []struct {
		name string
		run  func(t *testing.T, tr delivery.Transport)
	}{
		{"pushed hints are popped", popped},
		{"nothing is popped before a push", nothing},
		{"a Pop returns no more than its limit", limits},
		{"a push of nothing is no error", pushNothing},
		{"many hints in one push", manyHints},
		{"a full lane drops hints and takes new ones later", overflow},
		{"lanes are apart", lanesApart},
		{"lanes are popped together", lanesTogether},
		{"a full lane does not starve another", starving},
		{"an empty queue stands for every queue", anyQueue},
		{"namespaces are apart", namespacesApart},
		{"odd names are names", oddNames},
		{"a wait ends", waitEnds},
		{"a push wakes a waiting Pop", wakes},
		{"a push wakes a Pop of any queue", wakesAnyQueue},
		{"a cancelled wait ends", cancelled},
		{"an ended context is an error", endedContext},
		{"many push and pop at once", concurrent},
		{"a close ends waits", closeEndsWaits},
		{"a closed transport refuses calls", closed},
	}
	for _, c := range cases {
		t.Run(strings.ReplaceAll(c.name, " ", "_"), func(t *testing.T) {
			t.Parallel()
			tr := open(t)
			t.Cleanup(func() {
				if err := tr.Close(); err != nil {
					t.Errorf("Close: %v", err)
				}
			})
			c.run(t, tr)
		})
	}
}

const (
	namespace = "default"
	// attempts is the number of pushes after which a hint must have arrived.
	attempts = 3
	// enough is the wait for hints that were pushed. It passes only if hints are lost.
	enough = 10 * time.Second
)

var lane = delivery.Lane{Queue: "default", Type: "mail:send"}

var newIDs = task.NewIDs(nil)

// hintsOf returns n new hints of a lane.
func hintsOf(l delivery.Lane, n int) []delivery.Hint {
	hints := make([]delivery.Hint, n)
	for i := range hints {
		hints[i] = delivery.Hint{Lane: l, Task: newIDs.New()}
	}
	return hints
}

func push(t *testing.T, tr delivery.Transport, ns string, hints ...delivery.Hint) {
	t.Helper()
	if err := tr.Push(t.Context(), ns, hints); err != nil {
		t.Fatalf("Push: %v", err)
	}
}

func pop(t *testing.T, tr delivery.Transport, ns string, limit int, wait time.Duration, lanes ...delivery.Lane) []task.ID {
	t.Helper()
	ids, err := tr.Pop(t.Context(), ns, lanes, limit, wait)
	if err != nil {
		t.Fatalf("Pop: %v", err)
	}
	if len(ids) > limit {
		t.Fatalf("Pop returned %d IDs, its limit is %d", len(ids), limit)
	}
	return ids
}

// arrive pops until all hints have arrived, and pushes those that are lost again.
func arrive(t *testing.T, tr delivery.Transport, ns string, hints []delivery.Hint, lanes ...delivery.Lane) {
	t.Helper()
	missing := make(map[task.ID]delivery.Hint)
	known := make(map[task.ID]bool)
	for _, h := range hints {
		missing[h.Task], known[h.Task] = h, true
	}
	for attempt := 1; ; {
		ids := pop(t, tr, ns, len(hints), enough, lanes...)
		for _, id := range ids {
			if !known[id] {
				t.Fatalf("popped %v, which was not pushed to %q of namespace %q", id, lanes, ns)
			}
			if _, first := missing[id]; !first {
				t.Logf("%v arrived twice", id)
			}
			delete(missing, id)
		}
		if len(missing) == 0 {
			return
		}
		if len(ids) > 0 {
			continue
		}
		if attempt == attempts {
			t.Fatalf("%d of %d hints of %q did not arrive in %d attempts", len(missing), len(hints), lanes, attempts)
		}
		t.Logf("%d of %d hints are lost: pushing them again", len(missing), len(hints))
		attempt++
		for _, h := range missing {
			push(t, tr, ns, h)
		}
	}
}

// wantNone checks that no hints are there.
func wantNone(t *testing.T, tr delivery.Transport, ns string, lanes ...delivery.Lane) {
	t.Helper()
	if ids := pop(t, tr, ns, 10, 0, lanes...); len(ids) != 0 {
		t.Errorf("popped %v from %q of namespace %q, want nothing", ids, lanes, ns)
	}
}

func popped(t *testing.T, tr delivery.Transport) {
	hints := hintsOf(lane, 5)
	push(t, tr, namespace, hints...)
	arrive(t, tr, namespace, hints, lane)
	wantNone(t, tr, namespace, lane)
	hints = hintsOf(lane, 2)
	push(t, tr, namespace, hints[0])
	push(t, tr, namespace, hints[1])
	arrive(t, tr, namespace, hints, lane)
	// The same hint again, after it was popped: a task that was not claimed.
	push(t, tr, namespace, hints[0])
	arrive(t, tr, namespace, hints[:1], lane)
}

func nothing(t *testing.T, tr delivery.Transport) {
	wantNone(t, tr, namespace, lane)
	wantNone(t, tr, namespace, delivery.Lane{Type: "mail:send"})
	wantNone(t, tr, namespace)
	for _, wait := range []time.Duration{-time.Hour, 0, 1} {
		if ids := pop(t, tr, namespace, 1, wait, lane); len(ids) != 0 {
			t.Errorf("Pop with a wait of %v returned %v", wait, ids)
		}
	}
}

func limits(t *testing.T, tr delivery.Transport) {
	hints := hintsOf(lane, 7)
	push(t, tr, namespace, hints...)
	for _, limit := range []int{0, -1} {
		ids, err := tr.Pop(t.Context(), namespace, []delivery.Lane{lane}, limit, enough)
		if err != nil || len(ids) != 0 {
			t.Errorf("Pop with limit %d = %v, %v; want nothing at once", limit, ids, err)
		}
	}
	seen := make(map[task.ID]bool)
	for range 3 {
		for _, id := range pop(t, tr, namespace, 2, enough, lane, lane, delivery.Lane{Type: lane.Type}) {
			seen[id] = true
		}
	}
	var rest []delivery.Hint
	for _, h := range hints {
		if !seen[h.Task] {
			rest = append(rest, h)
		}
	}
	arrive(t, tr, namespace, rest, lane)
}

func pushNothing(t *testing.T, tr delivery.Transport) {
	push(t, tr, namespace)
	wantNone(t, tr, namespace, lane)
}

func manyHints(t *testing.T, tr delivery.Transport) {
	var hints []delivery.Hint
	var lanes []delivery.Lane
	for i := range 20 {
		l := delivery.Lane{Queue: fmt.Sprint("queue", i%4), Type: fmt.Sprint("type", i)}
		lanes = append(lanes, l)
		hints = append(hints, hintsOf(l, 100)...)
	}
	push(t, tr, namespace, hints...)
	arrive(t, tr, namespace, hints, lanes...)
}

func overflow(t *testing.T, tr delivery.Transport) {
	for range 12 {
		push(t, tr, namespace, hintsOf(lane, 1000)...)
	}
	n := 0
	for ids := pop(t, tr, namespace, 5000, enough, lane); len(ids) > 0; ids = pop(t, tr, namespace, 5000, 0, lane) {
		n += len(ids)
	}
	t.Logf("%d of 12,000 hints were kept", n)
	hints := hintsOf(lane, 3)
	push(t, tr, namespace, hints...)
	arrive(t, tr, namespace, hints, lane)
}

func lanesApart(t *testing.T, tr delivery.Transport) {
	lanes := []delivery.Lane{lane, {Queue: "other", Type: lane.Type}, {Queue: lane.Queue, Type: "other"}, {Queue: lane.Type, Type: lane.Queue}}
	hints := make([]delivery.Hint, len(lanes))
	for i, l := range lanes {
		hints[i] = hintsOf(l, 1)[0]
	}
	push(t, tr, namespace, hints...)
	for i, l := range lanes {
		arrive(t, tr, namespace, hints[i:i+1], l)
		wantNone(t, tr, namespace, l)
	}
}

func lanesTogether(t *testing.T, tr delivery.Transport) {
	other := delivery.Lane{Queue: "other", Type: "other"}
	hints := append(hintsOf(lane, 3), hintsOf(other, 3)...)
	foreign := hintsOf(delivery.Lane{Queue: lane.Queue, Type: other.Type}, 1)
	push(t, tr, namespace, append(hints, foreign...)...)
	arrive(t, tr, namespace, hints, lane, other)
	wantNone(t, tr, namespace, lane, other)
	arrive(t, tr, namespace, foreign, foreign[0].Lane)
}

func starving(t *testing.T, tr delivery.Transport) {
	for _, lanes := range [][]delivery.Lane{
		{{Queue: "full", Type: "a"}, {Queue: "small", Type: "a"}},
		{{Queue: "full", Type: "b"}, {Queue: "full", Type: "c"}},
		{{Queue: "full", Type: "d"}, {Queue: "small", Type: "d"}, {Type: "d"}},
	} {
		served := lanes[:2]
		if len(lanes) == 3 {
			served = lanes[2:]
		}
		push(t, tr, namespace, hintsOf(lanes[0], 1000)...)
		small := hintsOf(lanes[1], 1)[0]
		push(t, tr, namespace, small)
		for calls := 1; !slices.Contains(pop(t, tr, namespace, 10, 0, served...), small.Task); calls++ {
			if calls == 90 {
				t.Errorf("the hint of %q was not among 900 hints popped from %q", lanes[1], served)
				break
			}
		}
	}
}

func anyQueue(t *testing.T, tr delivery.Transport) {
	all := delivery.Lane{Type: "report"}
	for range 2 { // the second time after every queue was empty
		hints := slices.Concat(
			hintsOf(delivery.Lane{Queue: "a", Type: "report"}, 2), hintsOf(delivery.Lane{Queue: "b:c", Type: "report"}, 2), hintsOf(all, 1))
		foreign := hintsOf(delivery.Lane{Queue: "a", Type: "other"}, 1)
		push(t, tr, namespace, append(hints, foreign...)...)
		arrive(t, tr, namespace, hints, all)
		wantNone(t, tr, namespace, all)
		arrive(t, tr, namespace, foreign, foreign[0].Lane)
	}
}

func namespacesApart(t *testing.T, tr delivery.Transport) {
	names := []string{"a", "b", "a:", "A"}
	hints := make(map[string][]delivery.Hint)
	for _, ns := range names {
		hints[ns] = hintsOf(lane, 2)
		push(t, tr, ns, hints[ns]...)
	}
	for _, ns := range names {
		arrive(t, tr, ns, hints[ns][:2], lane, delivery.Lane{Type: lane.Type})
		wantNone(t, tr, ns, lane, delivery.Lane{Type: lane.Type})
	}
}

func waitEnds(t *testing.T, tr delivery.Transport) {
	for _, lanes := range [][]delivery.Lane{{lane}, {{Type: lane.Type}}, {lane, {Type: "other"}}, nil} {
		if ids := pop(t, tr, namespace, 1, 20*time.Millisecond, lanes...); len(ids) != 0 {
			t.Errorf("Pop(%q) = %v, want nothing", lanes, ids)
		}
	}
}

func wakes(t *testing.T, tr delivery.Transport)         { wake(t, tr, lane) }
func wakesAnyQueue(t *testing.T, tr delivery.Transport) { wake(t, tr, delivery.Lane{Type: lane.Type}) }

// wake pushes single hints to a Pop that mostly waits already, because each push follows the result of the Pop before.
func wake(t *testing.T, tr delivery.Transport, served delivery.Lane) {
	got := make(chan []task.ID)
	go func() {
		defer close(got)
		for range 20 {
			ids, err := tr.Pop(t.Context(), namespace, []delivery.Lane{served}, 10, 2*enough)
			if err != nil || len(ids) == 0 {
				t.Errorf("Pop = %v, %v; want the hint that was pushed while it waited", ids, err)
				return
			}
			got <- ids
		}
	}()
	for i := range 20 {
		h := hintsOf(delivery.Lane{Queue: fmt.Sprint("queue", i), Type: lane.Type}, 1)[0]
		if served.Queue != "" {
			h.Lane = served
		}
		push(t, tr, namespace, h)
		if ids := <-got; !slices.Equal(ids, []task.ID{h.Task}) {
			t.Errorf("Pop = %v, want %v", ids, h.Task)
			break
		}
	}
	for range got {
	}
}

func cancelled(t *testing.T, tr delivery.Transport) {
	for _, lanes := range [][]delivery.Lane{{lane}, {{Type: lane.Type}}, nil} {
		ctx, cancel := context.WithCancel(t.Context())
		go cancel()
		_, err := tr.Pop(ctx, namespace, lanes, 1, time.Hour)
		if !errors.Is(err, context.Canceled) {
			t.Errorf("Pop(%q) = %v, want context.Canceled", lanes, err)
		}
		ctx, end := context.WithTimeout(t.Context(), 10*time.Millisecond)
		if _, err := tr.Pop(ctx, namespace, lanes, 1, time.Hour); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("Pop(%q) = %v, want context.DeadlineExceeded", lanes, err)
		}
		end()
	}
	// A Pop that ended takes no later hint.
	hints := hintsOf(lane, 5)
	push(t, tr, namespace, hints...)
	arrive(t, tr, namespace, hints, lane)
}

func endedContext(t *testing.T, tr delivery.Transport) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := tr.Push(ctx, namespace, hintsOf(lane, 1)); !errors.Is(err, context.Canceled) {
		t.Errorf("Push = %v, want context.Canceled", err)
	}
	if _, err := tr.Pop(ctx, namespace, []delivery.Lane{lane}, 1, time.Hour); !errors.Is(err, context.Canceled) {
		t.Errorf("Pop = %v, want context.Canceled", err)
	}
}

func concurrent(t *testing.T, tr delivery.Transport) {
	const pushers, poppers, each = 4, 4, 500
	all := delivery.Lane{Type: lane.Type}
	missing := make(map[task.ID]delivery.Hint)
	batches := make([][]delivery.Hint, pushers)
	for i := range batches {
		for _, l := range []delivery.Lane{lane, {Queue: fmt.Sprint("queue", i), Type: lane.Type}} {
			batches[i] = append(batches[i], hintsOf(l, each/2)...)
		}
		for _, h := range batches[i] {
			missing[h.Task] = h
		}
	}
	var repeated int
	var mu sync.Mutex
	ctx, done := context.WithTimeout(t.Context(), time.Minute)
	defer done()
	var group sync.WaitGroup
	for i := range poppers {
		served := []delivery.Lane{all}
		if i%2 == 0 {
			served = []delivery.Lane{lane, all}
		}
		group.Go(func() {
			for ctx.Err() == nil {
				ids, err := tr.Pop(ctx, namespace, served, 7, enough)
				if err != nil && ctx.Err() == nil {
					t.Errorf("Pop: %v", err)
					done()
				}
				mu.Lock()
				for _, id := range ids {
					if _, first := missing[id]; !first {
						repeated++
					}
					delete(missing, id)
				}
				if len(missing) == 0 {
					done()
				}
				mu.Unlock()
			}
		})
	}
	for _, hints := range batches {
		group.Go(func() {
			for batch := range slices.Chunk(hints, 13) {
				if err := tr.Push(t.Context(), namespace, batch); err != nil {
					t.Errorf("Push: %v", err)
				}
			}
		})
	}
	group.Wait()
	if repeated > 0 || len(missing) > 0 {
		t.Logf("%d hints were repeated, %d of %d lost", repeated, len(missing), pushers*each)
	}
	if len(missing) > 0 {
		rest := make([]delivery.Hint, 0, len(missing))
		for _, h := range missing {
			rest = append(rest, h)
		}
		push(t, tr, namespace, rest...)
		arrive(t, tr, namespace, rest, all)
	}
}

func closeEndsWaits(t *testing.T, tr delivery.Transport) {
	results := make(chan error)
	waiting := [][]delivery.Lane{{lane}, {{Type: lane.Type}}, {lane}, nil}
	for _, lanes := range waiting {
		go func() {
			_, err := tr.Pop(t.Context(), namespace, lanes, 1, time.Hour)
			results <- err
		}()
	}
	pop(t, tr, namespace, 1, 20*time.Millisecond, delivery.Lane{Type: "other"}) // meanwhile they wait, most likely
	if err := tr.Close(); err != nil {
		t.Errorf("Close: %v", err)
	}
	for range waiting {
		if err := <-results; !errors.Is(err, delivery.ErrClosed) {
			t.Errorf("a waiting Pop = %v, want ErrClosed", err)
		}
	}
}

func closed(t *testing.T, tr delivery.Transport) {
	push(t, tr, namespace, hintsOf(lane, 1)...)
	for range 2 {
		if err := tr.Close(); err != nil {
			t.Errorf("Close: %v", err)
		}
	}
	if err := tr.Push(t.Context(), namespace, hintsOf(lane, 1)); !errors.Is(err, delivery.ErrClosed) {
		t.Errorf("Push = %v, want ErrClosed", err)
	}
	for _, wait := range []time.Duration{0, time.Hour} {
		if _, err := tr.Pop(t.Context(), namespace, []delivery.Lane{lane}, 1, wait); !errors.Is(err, delivery.ErrClosed) {
			t.Errorf("Pop = %v, want ErrClosed", err)
		}
	}
}
