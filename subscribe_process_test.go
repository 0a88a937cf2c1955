package weaver_test

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"sync"
	"testing"

	"github.com/goweaver/weaver"
	"github.com/goweaver/weaver/task/event"
)

// childTell is handled by worker processes: it emits as many numbers as it is told, and
// has a step after each thousand.
var childTell = weaver.Define[int, int]("child.events.tell.v1")

func childTells() weaver.Handler {
	return childTell.Handler(func(ctx context.Context, n int) (int, error) {
		for i := range n {
			if err := weaver.Emit(ctx, "numbers", i); err != nil {
				return 0, err
			}
			if i%1000 == 999 {
				if err := weaver.Do(ctx, fmt.Sprint("step ", i), func(context.Context) error { return nil }); err != nil {
					return 0, err
				}
			}
			if i == n/2 {
				fmt.Println("half")
			}
		}
		return n, nil
	})
}

// heard is what one subscriber got.
type heard struct {
	all   []int64
	steps int
	next  map[int]int // by attempt: the number that comes next
	err   error
}

func (h *heard) follow(ctx context.Context, c *weaver.Client, id weaver.TaskID) {
	h.next = map[int]int{}
	for ev, err := range c.Subscribe(ctx, weaver.EventFilter{TaskID: id}) {
		if err != nil {
			h.err = err
			return
		}
		head := ev.Head()
		if head.Sequence > 0 { // a step that completed just before the kill has no number
			h.all = append(h.all, head.Sequence)
		}
		switch ev := ev.(type) {
		case event.StepCompleted:
			h.steps++
		case event.StreamChunk:
			if got := ev.Data.(float64); int(got) != h.next[head.AttemptNo] {
				h.err = fmt.Errorf("attempt %d: the number %v comes, want %d", head.AttemptNo, got, h.next[head.AttemptNo])
				return
			}
			h.next[head.AttemptNo]++
		}
	}
}

// Ten subscribers get all events in their order, while one process is killed and
// another one goes on.
func TestSubscribeThroughAKill(t *testing.T) {
	t.Parallel()
	n := 10_000
	if testing.Short() {
		n = 3000
	}
	path := filepath.Join(t.TempDir(), "weaver.db")
	db := openFile(t, path)
	var subscribers [10]heard
	first := startChild(t, path)
	first.says("runs")
	client, err := weaver.NewClient(db, weaver.ClientConfig{})
	if err != nil {
		t.Fatal(err)
	}
	h, err := childTell.Enqueue(t.Context(), client, n)
	if err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	for i := range subscribers {
		wg.Go(func() { subscribers[i].follow(t.Context(), client, h.ID()) })
	}
	first.says("half")
	first.kill()
	second := startChild(t, path)
	second.says("half")
	wg.Wait()
	second.end()
	for i := range subscribers {
		s := &subscribers[i]
		if s.err != nil {
			t.Fatalf("subscriber %d: %v", i, s.err)
		}
		if !slices.IsSorted(s.all) || len(slices.Compact(slices.Clone(s.all))) != len(s.all) {
			t.Errorf("subscriber %d: the numbers are out of order", i)
		}
		if s.next[2] != n || s.steps != n/1000 || !slices.Equal(s.all, subscribers[0].all) {
			t.Errorf("subscriber %d: %d events, %d of %d numbers of the second attempt, %d steps", i, len(s.all), s.next[2], n, s.steps)
		}
	}
	t.Logf("%d events, of these %d numbers of the killed process", len(subscribers[0].all), subscribers[0].next[1])
}
