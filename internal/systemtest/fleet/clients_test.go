package fleet_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/goweaver/weaver"
	"github.com/goweaver/weaver/internal/s3test"
)

// memory is an S3 server in the test's process that can be away.
type memory struct{ *s3test.Memory }

func (m *memory) Kill() {
	m.Before(func(http.ResponseWriter, *http.Request) bool { panic(http.ErrAbortHandler) })
}

func (m *memory) Restart(testing.TB) { m.Before(nil) }

// clients enqueue the tasks, some over HTTP, and the job. They repeat each call, with its idempotency keys, until it is
// acknowledged.
type clients struct {
	client *weaver.Client
	api    *process
	size   size

	enqueued, repeated atomic.Int64
	enough             chan struct{} // closed when the storm needs no further tasks
	once               sync.Once     // closes enough
	over               chan struct{} // closed when all is enqueued, with err
	mu                 sync.Mutex
	ids                map[weaver.TaskID]bool // acknowledged
	job                weaver.JobID
	err                error
}

func (c *clients) run(ctx context.Context) {
	defer close(c.over)
	c.err = c.repeat(ctx, func(ctx context.Context) error {
		j := weaver.NewJob("packs")
		first := j.Add("first", pack.With(0))
		var all []*weaver.Node
		for i := range c.size.nodes - 2 {
			all = append(all, j.Add("pack-"+strconv.Itoa(i+1), pack.With(i+1), weaver.Needs(first)))
		}
		j.Add("last", pack.With(c.size.nodes-1), weaver.Needs(all...))
		h, err := c.client.Submit(ctx, j, weaver.IdempotencyKey("packs"))
		if err == nil {
			c.job = h.ID()
		}
		return err
	})
	every := time.NewTicker(250 * time.Millisecond)
	defer every.Stop()
	batch := max(c.size.rate/4, 1)
	for from := 0; c.err == nil; from += batch {
		<-every.C
		if from >= c.size.tasks {
			select {
			case <-c.enough:
				return
			default:
			}
		}
		c.err = c.enqueue(ctx, from, from+batch)
		c.enqueued.Store(int64(from + batch))
	}
}

// stop ends the clients when they have enqueued the tasks of their size.
func (c *clients) stop() { c.once.Do(func() { close(c.enough) }) }

func key(n int) string { return "task-" + strconv.Itoa(n) }

func (c *clients) enqueue(ctx context.Context, from, to int) error {
	var drafts []weaver.Draft
	for n := from; n < to; n++ {
		if n%c.size.http != 0 {
			drafts = append(drafts, steps.With(n, weaver.IdempotencyKey(key(n))))
			continue
		}
		if err := c.repeat(ctx, func(ctx context.Context) error { return c.post(ctx, n) }); err != nil {
			return err
		}
	}
	return c.repeat(ctx, func(ctx context.Context) error {
		all, err := c.client.EnqueueTasks(ctx, drafts...)
		for _, e := range all {
			c.acknowledged(e.ID)
		}
		return err
	})
}

func (c *clients) acknowledged(id weaver.TaskID) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.ids[id] = true
}

// repeat calls f until it returns nil.
func (c *clients) repeat(ctx context.Context, f func(ctx context.Context) error) error {
	for {
		err := attempt(ctx, f)
		if err == nil {
			return nil
		}
		c.repeated.Add(1)
		select {
		case <-ctx.Done():
			return fmt.Errorf("%w: %w", context.Cause(ctx), err)
		case <-time.After(50 * time.Millisecond):
		}
	}
}

func attempt(ctx context.Context, f func(ctx context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	return f(ctx)
}

func (c *clients) post(ctx context.Context, n int) error {
	body := fmt.Sprintf(`{"task_type": %q, "input": %d, "max_attempts": 10000}`, steps.Name(), n)
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, c.api.address()+"v1/tasks", strings.NewReader(body))
	if err != nil {
		return err
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Idempotency-Key", key(n))
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	text, err := io.ReadAll(res.Body)
	if cerr := res.Body.Close(); err == nil {
		err = cerr
	}
	if err == nil && res.StatusCode/100 != 2 {
		err = fmt.Errorf("%s: %s", res.Status, text)
	}
	var answer struct {
		ID weaver.TaskID `json:"id"`
	}
	if err == nil {
		err = json.Unmarshal(text, &answer)
	}
	if err == nil {
		c.acknowledged(answer.ID)
	}
	return err
}

// done reports whether everything is enqueued and has ended.
func (c *clients) done(ctx context.Context) bool {
	select {
	case <-c.over:
	default:
		return false
	}
	if c.err != nil {
		return true
	}
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	n, err := c.client.Counts(ctx)
	if err != nil {
		return false // the next second asks again
	}
	for state, count := range n.States {
		if !state.Terminal() && count.N > 0 {
			return false
		}
	}
	return true
}

// pushed returns the number of hints that a publisher sent, or 0 if it does not answer.
func pushed(url string) int64 {
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url+"metrics", http.NoBody)
	if err != nil {
		return 0
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return 0
	}
	var n float64
	for lines := bufio.NewScanner(res.Body); lines.Scan(); {
		if text, ok := strings.CutPrefix(lines.Text(), `weaver_hints_pushed_total{result="taken"} `); ok {
			n, _ = strconv.ParseFloat(text, 64)
		}
	}
	_ = res.Body.Close()
	return int64(n)
}
