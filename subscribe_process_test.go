package weaver_test

import (
	"context"
	"crypto/sha256"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/goweaver/weaver"
	"github.com/goweaver/weaver/store/sqlite"
	"github.com/goweaver/weaver/task"
	"github.com/goweaver/weaver/task/event"
)

// childTell is handled by worker processes: it emits as many numbers as its input says, and has a step
// after each thousand. Its first attempt never ends: it is killed.
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
		if weaver.Current(ctx).AttemptNo == 1 {
			<-ctx.Done()
		}
		return n, context.Cause(ctx)
	})
}

// heard holds the events of one subscriber.
type heard struct {
	all   []int64
	steps int
	next  map[int]int // next number, by attempt
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

// followEnv names the task that a process without an engine follows.
const followEnv = "WEAVER_TEST_FOLLOW"

// subscribers are the subscribers of one process.
const subscribers = 5

// followAll makes the subscribers of a process follow a task to its end.
func followAll(ctx context.Context, c *weaver.Client, id weaver.TaskID) []heard {
	list := make([]heard, subscribers)
	var wg sync.WaitGroup
	for i := range list {
		wg.Go(func() { list[i].follow(ctx, c, id) })
	}
	wg.Wait()
	return list
}

// String returns the events of a subscriber in one line; followMain prints it.
func (h *heard) String() string {
	sorted := slices.IsSorted(h.all) && len(slices.Compact(slices.Clone(h.all))) == len(h.all)
	return fmt.Sprintf("events %d, with hash %x, in order %t, numbers of attempts %v, steps %d, error %v", len(h.all), sha256.Sum256(fmt.Append(nil, h.all)), sorted, h.next, h.steps, h.err)
}

// followMain is a process of subscribers.
func followMain(path string) error {
	ctx := context.Background()
	db, err := sqlite.Open(ctx, path)
	if err != nil {
		return err
	}
	client, err := weaver.NewClient(db, weaver.ClientConfig{})
	if err != nil {
		return err
	}
	id, err := task.ParseID(os.Getenv(followEnv))
	if err != nil {
		return err
	}
	fmt.Println("follows")
	for _, h := range followAll(ctx, client, id) {
		fmt.Println(h.String())
	}
	return db.Close()
}

// Ten subscribers in two processes get all events in order, although the worker process is killed and
// another one takes over.
func TestSubscribeThroughAKill(t *testing.T) {
	t.Parallel()
	n := 10_000
	if testing.Short() {
		n = 3000
	}
	path := filepath.Join(t.TempDir(), "weaver.db")
	db := openFile(t, path)
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
	other := startChild(t, path, followEnv+"="+h.ID().String())
	other.says("follows")
	here := make(chan []heard)
	go func() { here <- followAll(t.Context(), client, h.ID()) }()
	first.says("half")
	first.kill()
	second := startChild(t, path)
	second.says("half")
	list := <-here
	second.end()
	want := list[0].String()
	if s := &list[0]; s.err != nil || s.next[2] != n || s.steps != n/1000 || !strings.Contains(want, "in order true") {
		t.Fatalf("want %d numbers of the second attempt, got %s", n, want)
	}
	for i := range list {
		if got := list[i].String(); got != want {
			t.Errorf("subscriber %d: %s\nwant %s", i, got, want)
		}
		other.says(want)
	}
	t.Log(want)
}
