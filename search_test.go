package weaver_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/goweaver/weaver"
	"github.com/goweaver/weaver/blob"
	"github.com/goweaver/weaver/internal/faults/storehook"
	"github.com/goweaver/weaver/ops"
	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/task"
)

type searchOrder struct {
	Order struct {
		ID   int    `json:"id"`
		Card string `json:"card" weaver:"redact"`
	} `json:"order"`
	Note string `json:"note,omitempty"`
}

func orderOf(id int, card string) (in searchOrder) {
	in.Order.ID, in.Order.Card = id, card
	return in
}

var searchType = weaver.Define[searchOrder, searchOrder]("acme.billing.search.v1", weaver.NoRetry())

func (fx *fixture) query(text string) ops.Query {
	fx.Helper()
	q, err := ops.ParseQuery(text, time.Now())
	fx.must(err)
	return q
}

// found returns the IDs that a search finds, page by page.
func (fx *fixture) found(c *weaver.Client, q ops.Query) (ids []task.ID, pages, scanned, unread int) {
	fx.Helper()
	for {
		page, err := c.Search(fx.Context(), q)
		fx.must(err)
		for i := range page.Items {
			ids = append(ids, page.Items[i].ID)
		}
		pages, scanned, unread = pages+1, scanned+page.Scanned, unread+page.Unread
		if page.Next == "" || pages > 100 {
			return ids, pages, scanned, unread
		}
		q.Filter.After = page.Next
	}
}

func TestSearch(t *testing.T) {
	enqueue := func(fx *fixture, c weaver.Enqueuer, in searchOrder, opts ...weaver.EnqueueOption) task.ID {
		fx.Helper()
		h, err := searchType.Enqueue(fx.Context(), c, in, opts...)
		fx.must(err)
		return h.ID()
	}
	const card = "4711-0815-4711"

	subtest(t, "by the Filter and by what no index knows", func(fx *fixture) {
		e, err := weaver.New(fx.store, weaver.Config{Handlers: []weaver.Handler{searchType.Handler(func(_ context.Context, in searchOrder) (searchOrder, error) {
			if in.Order.ID == 42 {
				return in, fmt.Errorf("card %s was Refused", in.Order.Card)
			}
			return in, nil
		})}})
		fx.must(err)
		a := enqueue(fx, fx.client, orderOf(42, card), weaver.Label("team", "pay"), weaver.IdempotencyKey("evt-1"))
		time.Sleep(time.Hour)
		b := enqueue(fx, fx.client, orderOf(43, card), weaver.Label("team", "ops"), weaver.Queue("other"))
		fx.must(e.RunUntilIdle(fx.Context()))
		last := enqueue(fx, fx.client, orderOf(42, ""), weaver.Queue("a b"), weaver.Delay(time.Hour))
		for text, want := range map[string][]task.ID{
			"":                                     {last, b, a},
			"type:acme.billing.*":                  {last, b, a},
			"type:acme.bill.*":                     nil,
			"state:failed,succeeded":               {b, a},
			"state:failed error:handler_error":     {a},
			"error:timeout":                        nil,
			"waiting:delay":                        {last},
			"created>-30m":                         {last, b},
			"created<-30m":                         {a},
			`queue:other,"a b"`:                    {last, b},
			"input.order.id=42":                    {last, a},
			"input.order.id=42 state:failed":       {a},
			"output.order.id=43":                   {b},
			"output.order.id=42":                   nil,
			"key:evt-1":                            {a},
			"label.team=pay,ops":                   {b, a},
			"label.team=pay":                       {a},
			"refused":                              {a},
			`"was refused" label.team=ops`:         nil,
			`"was refused" label.team=pay evt`:     {a},
			"input.order.card=" + card:             nil,
			`input.order.card="[redacted]"`:        nil,
			`output.order.card="` + card + `"`:     nil,
			card:                                   nil,
			`input.order.card="" state:pending`:    nil, // it is also hidden
			"parent:" + a.String() + " refused":    nil,
			"job:" + a.String():                    nil,
			"job:" + a.String() + "," + b.String(): nil,
		} {
			ids, _, scanned, unread := fx.found(fx.client, fx.query(text))
			equal(fx, text, fmt.Sprint(ids), fmt.Sprint(want))
			equal(fx, text+": unread", unread, 0)
			if scanned < len(want) || scanned > 3 {
				fx.Errorf("%s: scanned %d", text, scanned)
			}
		}
	})

	subtest(t, "pages: full ones and the last", func(fx *fixture) {
		var want []task.ID
		for i := range 9 {
			id := enqueue(fx, fx.client, orderOf(i%2, ""))
			if i%2 == 0 {
				want = append([]task.ID{id}, want...)
			}
		}
		for _, text := range []string{"input.order.id=0", "input.order.id=0 state:ready"} {
			for limit, pages := range map[int]int{1: 5, 2: 3, 5: 1, 50: 1} {
				q := fx.query(text)
				q.Filter.Limit = limit
				ids, n, scanned, _ := fx.found(fx.client, q)
				equal(fx, "the tasks", fmt.Sprint(ids), fmt.Sprint(want))
				equal(fx, fmt.Sprintf("the pages of %d", limit), n, pages)
				equal(fx, "scanned", scanned, 9)
			}
		}
		q := fx.query("input.order.id=0")
		q.Filter.Limit = 2
		page, err := fx.client.Search(fx.Context(), q)
		fx.must(err)
		equal(fx, "how far it came", page.OldestSeen, want[1])
		equal(fx, "the cursor", page.Next, want[1].String())
		page, err = fx.client.Search(fx.Context(), ops.Query{Filter: weaver.Filter{Limit: 3}})
		fx.must(err)
		equal(fx, "a list, how far it came", page.OldestSeen, want[1])
		equal(fx, "a list, scanned", page.Scanned, 3)
	})

	subtest(t, "both a query and a filter", func(fx *fixture) {
		a := enqueue(fx, fx.client, orderOf(1, ""), weaver.Label("team", "pay"))
		b := enqueue(fx, fx.client, orderOf(2, ""), weaver.Label("team", "ops"), weaver.Delay(time.Hour))
		for _, c := range []struct {
			text string
			f    weaver.Filter
			want []task.ID
		}{
			{"", weaver.Filter{}, []task.ID{b, a}},
			{"state:ready,pending", weaver.Filter{States: []weaver.State{task.Pending, task.Failed}}, []task.ID{b}},
			{"state:ready", weaver.Filter{States: []weaver.State{task.Pending}}, nil},
			{"type:acme.*", weaver.Filter{Types: []string{searchType.Name()}}, []task.ID{b, a}},
			{"type:acme.*", weaver.Filter{Types: []string{"other.*"}}, nil},
			{"input.order.id=1", weaver.Filter{Types: []string{"acme.billing.*"}, Queue: "default"}, []task.ID{a}},
			{"queue:default", weaver.Filter{Queue: "other"}, nil},
			{"label.team=pay", weaver.Filter{Labels: map[string]string{"team": "pay"}}, []task.ID{a}},
			{"label.team=pay", weaver.Filter{Labels: map[string]string{"team": "ops"}}, nil},
			{"label.team=pay,ops", weaver.Filter{Labels: map[string]string{"team": "ops"}}, []task.ID{b}},
			{"job:" + a.String(), weaver.Filter{Job: b}, nil},
			{"waiting:delay", weaver.Filter{Waiting: []task.Waiting{task.WaitSignal}}, nil},
			{"created>-1h", weaver.Filter{CreatedAfter: time.Now().Add(time.Hour)}, nil},
			{"created<-1h", weaver.Filter{CreatedBefore: time.Now().Add(time.Hour)}, nil},
			{"created>-1h", weaver.Filter{Limit: 1}, []task.ID{b, a}},
			{"", weaver.Filter{After: b.String()}, []task.ID{a}},
		} {
			q := fx.query(c.text)
			before := fmt.Sprint(q.Filter)
			ids, _, _, _ := fx.found(fx.client, q.And(c.f))
			equal(fx, fmt.Sprintf("%s and %+v", c.text, c.f), fmt.Sprint(ids), fmt.Sprint(c.want))
			equal(fx, "the query itself", fmt.Sprint(q.Filter), before)
		}
	})

	subtest(t, "sealed and large values are read as Get does", func(fx *fixture) {
		keys := aesKeys(fx, "k1")
		bucket := blob.NewMemory()
		seals, err := weaver.NewClient(fx.store, weaver.ClientConfig{Codec: aesCodec(fx, keys...), Bucket: bucket})
		fx.must(err)
		large := orderOf(42, card)
		large.Note = strings.Repeat("x", weaver.DefaultInlineLimit)
		a, b := enqueue(fx, seals, orderOf(42, card)), enqueue(fx, seals, large)
		ids, _, _, _ := fx.found(seals, fx.query("input.order.id=42"))
		equal(fx, "found", fmt.Sprint(ids), fmt.Sprint([]task.ID{b, a}))
		ids, _, _, _ = fx.found(seals, fx.query("input.order.card="+card))
		equal(fx, "found by what is hidden", len(ids), 0)
		page, err := fx.client.Search(fx.Context(), fx.query("input.order.id=42"))
		fx.must(err)
		equal(fx, "without the key", fmt.Sprint(len(page.Items), page.Scanned, page.Unread), "0 2 2")
	})

	subtest(t, "two seconds, and on from there", func(fx *fixture) {
		var want []task.ID
		for range 1000 {
			want = append(want, enqueue(fx, fx.client, orderOf(7, "")))
		}
		lists := 0
		hooked := storehook.New(fx.store, &storehook.Hooks{List: func(_ context.Context, _ store.Filter, next func() (storehook.Page[task.Task], error)) (storehook.Page[task.Task], error) {
			lists++
			time.Sleep(1100 * time.Millisecond)
			return next()
		}})
		c, err := weaver.NewClient(hooked, weaver.ClientConfig{})
		fx.must(err)
		begin := time.Now()
		q := fx.query("input.order.id=8")
		page, err := c.Search(fx.Context(), q)
		fx.must(err)
		equal(fx, "it took", time.Since(begin), 2200*time.Millisecond)
		equal(fx, "scanned", page.Scanned, 400)
		_, pages, scanned, _ := fx.found(c, q)
		equal(fx, "scanned by all calls", scanned, 1000)
		if pages < 3 {
			fx.Errorf("%d calls", pages)
		}
		ids, _, _, _ := fx.found(c, fx.query("input.order.id=7"))
		equal(fx, "found by all calls", len(ids), len(want))
		ctx, cancel := context.WithTimeout(fx.Context(), 1500*time.Millisecond)
		defer cancel()
		_, err = c.Search(ctx, q)
		wantError(fx, err, context.DeadlineExceeded, "search tasks: ")
	})

	subtest(t, "a bucket that is slow takes no more time, and is asked again", func(fx *fixture) {
		bucket := &lateBucket{Bucket: blob.NewMemory()}
		c, err := weaver.NewClient(fx.store, weaver.ClientConfig{Bucket: bucket})
		fx.must(err)
		large := orderOf(42, "")
		large.Note = strings.Repeat("x", weaver.DefaultInlineLimit)
		for range 5 {
			large.Order.ID++
			enqueue(fx, c, large)
		}
		bucket.takes = 1500 * time.Millisecond
		begin := time.Now()
		q := fx.query("input.order.id=43,44,45,46,47")
		page, err := c.Search(fx.Context(), q)
		fx.must(err)
		equal(fx, "it took", time.Since(begin), 2*time.Second)
		equal(fx, "the page", fmt.Sprint(len(page.Items), page.Scanned, page.Unread), "1 1 0")
		ids, pages, _, unread := fx.found(c, q)
		equal(fx, "all calls", fmt.Sprint(len(ids), pages, unread), "5 5 0")
		bucket.takes = time.Minute
		_, pages, scanned, unread := fx.found(c, q)
		equal(fx, "with a bucket that does not answer", fmt.Sprint(pages, scanned, unread), "5 5 5")
	})

	subtest(t, "what is wrong", func(fx *fixture) {
		_, err := ops.ParseQuery("a stat:failed", time.Now())
		wantError(fx, err, ops.ErrInvalidQuery, "invalid query: column 3: ", "did you mean state:?", "waiting:")
		var q *ops.QueryError
		if !errors.As(err, &q) || q.Column != 3 || q.Meant != "state:" || len(q.Words) == 0 {
			fx.Errorf("%#v", q)
		}
		_, err = fx.client.Search(fx.Context(), ops.Query{Filter: weaver.Filter{States: []weaver.State{"odd"}}})
		wantError(fx, err, weaver.ErrInvalidOption, "list tasks: ")
		bad := fx.query("word")
		bad.Filter.After = "odd"
		_, err = fx.client.Search(fx.Context(), bad)
		wantError(fx, err, store.ErrBadCursor)
	})
}

// Four searches run at a time; a fifth waits as long as its context lets it.
func TestSearchesAtATime(t *testing.T) {
	began, goOn := make(chan struct{}), make(chan struct{})
	fx := newFixture(t, storehook.New(openStore(t), &storehook.Hooks{List: func(_ context.Context, f store.Filter, next func() (storehook.Page[task.Task], error)) (storehook.Page[task.Task], error) {
		if f.Queue == "wait" {
			began <- struct{}{}
			<-goOn
		}
		return next()
	}}))
	ended := make(chan error)
	for range 4 {
		go func() {
			_, err := fx.client.Search(t.Context(), fx.query("queue:wait word"))
			ended <- err
		}()
		<-began
	}
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	_, err := fx.client.Search(ctx, fx.query("word"))
	wantError(t, err, context.DeadlineExceeded, "4 other searches run in this process")
	_, err = fx.client.Search(t.Context(), fx.query("queue:list")) // a list needs no slot
	fx.must(err)
	close(goOn)
	for range 4 {
		fx.must(<-ended)
	}
	_, err = fx.client.Search(t.Context(), fx.query("word"))
	fx.must(err)
}

// lateBucket delays reads.
type lateBucket struct {
	blob.Bucket
	takes time.Duration
}

func (b *lateBucket) Get(ctx context.Context, key string) (io.ReadCloser, error) {
	select {
	case <-time.After(b.takes):
		return b.Bucket.Get(ctx, key)
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}
