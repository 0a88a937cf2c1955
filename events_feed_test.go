package weaver_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/goweaver/weaver"
	"github.com/goweaver/weaver/internal/faults/storehook"
	"github.com/goweaver/weaver/ops"
	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/task/event"
)

// keepEvents starts the feed.
func keepEvents(fx *fixture) {
	fx.Helper()
	fx.must(fx.client.KeepEvents(fx.Context(), 7*24*time.Hour))
}

// page reads one page of events without an error.
func (fx *fixture) page(req event.FeedRequest) event.FeedPage {
	fx.Helper()
	page, err := fx.client.EventPage(fx.Context(), req)
	fx.must(err)
	return page
}

// namesOf returns the types of events.
func namesOf(list []event.FeedEvent) (names []string) {
	for _, ev := range list {
		if ev.Gap != nil {
			names = append(names, fmt.Sprintf("gap %s-%s", ev.Gap.From, ev.Gap.To))
		} else {
			names = append(names, ev.Event.Type())
		}
	}
	return names
}

func TestEventsFollows(t *testing.T) {
	typ := weaver.Define[string, string]("engine.feed.run.v1", weaver.MaxAttempts(2))
	handler := typ.Handler(func(ctx context.Context, in string) (string, error) {
		weaver.Log(ctx).Info("at work")
		if weaver.Current(ctx).AttemptNo == 1 {
			return "", errors.New("not yet")
		}
		return weaver.Step(ctx, "copy", func(context.Context) (string, error) { return in, nil })
	})
	subtest(t, "the life of a task, as it happens", func(fx *fixture) {
		keepEvents(fx)
		enqueue(fx, typ, "before")
		ctx, stop := context.WithCancel(fx.Context())
		defer stop()
		var got []event.FeedEvent
		done := make(chan error, 1)
		go func() {
			for ev, err := range fx.client.Events(ctx, event.FeedRequest{Types: []string{"engine.feed.*"}}) {
				if err != nil {
					done <- err
					return
				}
				got = append(got, ev)
			}
		}()
		synctest.Wait() // it starts after the earlier enqueues
		fx.runConfig(fx.store, weaver.Config{Handlers: []weaver.Handler{handler}, Plugins: []weaver.Plugin{weaver.PersistLogs(), weaver.PersistEvents()}})
		h := enqueue(fx, typ, "x")
		equal(fx, "output", result(fx, h), "x")
		time.Sleep(time.Second)
		synctest.Wait()
		stop()
		if err := <-done; !errors.Is(err, context.Canceled) {
			fx.Errorf("Events ends with %v", err)
		}
		own := slices.DeleteFunc(slices.Clone(got), func(ev event.FeedEvent) bool { return ev.Event.Head().TaskID != h.ID() })
		equal(fx, "events", fmt.Sprint(namesOf(own)),
			"[task.enqueued task.started log.written task.retrying task.started log.written step.started step.completed task.succeeded]")
		equal(fx, "a delay", own[3].Event.(event.TaskRetrying).Delay > 0, true)
		equal(fx, "an error", own[3].Event.(event.TaskRetrying).Error.Message, "not yet")
		equal(fx, "the numbers of Subscribe", fmt.Sprint(sequences(own)), fmt.Sprint(sequencesOf(fx, h.ID())))
		equal(fx, "the first event of the other task", namesOf(got)[0] != "task.enqueued" || got[0].Event.Head().TaskID == h.ID(), true)
		if !slices.IsSortedFunc(got, func(a, b event.FeedEvent) int { return a.Event.Head().At.Compare(b.Event.Head().At) }) {
			fx.Errorf("the events are not in order: %v", namesOf(got))
		}

		all := fx.page(event.FeedRequest{After: event.FeedOldest, Task: h.ID()})
		equal(fx, "read again", fmt.Sprint(namesOf(all.Events)), fmt.Sprint(namesOf(own)))
		rest := fx.page(event.FeedRequest{After: own[3].Cursor, Task: h.ID()})
		equal(fx, "resumed", len(rest.Events), 5)
		some := fx.page(event.FeedRequest{After: event.FeedOldest, Task: h.ID(), Names: []string{"step.*"}, Limit: 1})
		equal(fx, "filtered", fmt.Sprint(namesOf(some.Events), some.More), "[step.started] true")
	})
	subtest(t, "what a person did, and jobs", func(fx *fixture) {
		keepEvents(fx)
		j := weaver.NewJob("one")
		j.Add("a", typ.With("x"))
		h := submit(fx, j)
		_, err := fx.client.CancelJob(fx.Context(), h.ID())
		fx.must(err)
		page := fx.page(event.FeedRequest{After: event.FeedOldest, Job: h.ID()})
		equal(fx, "events", fmt.Sprint(namesOf(page.Events)), "[task.enqueued task.cancelled job.settled]")
		settled := page.Events[2].Event.(event.JobSettled)
		equal(fx, "the job", fmt.Sprint(settled.Name, " ", settled.State, " ", settled.Counters.Total), "one cancelled 1")
		fx.must(fx.client.Retry(fx.Context(), page.Events[0].Event.Head().TaskID))
		page = fx.page(event.FeedRequest{After: event.FeedOldest, Job: h.ID(), Names: []string{"job.settled"}})
		settled = page.Events[0].Event.(event.JobSettled)
		equal(fx, "the job that was retried since", fmt.Sprint(settled.Name, " ", settled.State, " ", settled.Counters.Total), "one cancelled 0")
		equal(fx, "its problem", page.Events[0].Problem, "the job has changed since: the counters of then are not known")

		lone := enqueue(fx, typ, "x")
		fx.idle(typ.Handler(func(context.Context, string) (string, error) { return "", weaver.Permanent(errors.New("no")) }))
		fx.must(fx.client.Retry(fx.Context(), lone.ID()))
		page = fx.page(event.FeedRequest{After: event.FeedOldest, Task: lone.ID()})
		equal(fx, "events", fmt.Sprint(namesOf(page.Events)), "[task.enqueued task.started task.failed task.reopened]")
	})
}

func sequences(list []event.FeedEvent) (all []int64) {
	for _, ev := range list {
		all = append(all, ev.Event.Head().Sequence)
	}
	return all
}

// sequencesOf returns the sequence numbers that Subscribe gives.
func sequencesOf(fx *fixture, id weaver.TaskID) (all []int64) {
	fx.Helper()
	for ev, err := range fx.client.Subscribe(fx.Context(), weaver.EventFilter{TaskID: id, NoWait: true}) {
		fx.must(err)
		all = append(all, ev.Head().Sequence)
	}
	return all
}

func TestEventsRefuses(t *testing.T) {
	inBubble(t, func(fx *fixture) {
		read := func(req event.FeedRequest) error {
			_, err := fx.client.EventPage(fx.Context(), req)
			for _, follow := range fx.client.Events(fx.Context(), req) {
				if (follow == nil) != (err == nil) || follow != nil && !strings.HasSuffix(err.Error(), strings.TrimPrefix(follow.Error(), "events: ")) {
					fx.Errorf("Events says %v, EventPage %v", follow, err)
				}
				break
			}
			return err
		}
		wantError(fx, read(event.FeedRequest{}), store.ErrNoFeed, `namespace "default"`, "Client.KeepEvents")
		wantError(fx, read(event.FeedRequest{After: "0"}), store.ErrNoFeed)
		wantError(fx, fx.client.KeepEvents(fx.Context(), time.Second), weaver.ErrInvalidOption, "1m0s or more")
		wantError(fx, fx.client.KeepEvents(fx.Context(), -1), weaver.ErrInvalidOption)
		keepEvents(fx)
		keepEvents(fx)
		for _, bad := range []string{"x", "-1", "1.5", "01", "+1", " 1", "99999999999999999999"} {
			wantError(fx, read(event.FeedRequest{After: bad}), store.ErrBadCursor, fmt.Sprintf("%q", bad))
		}
		wantError(fx, read(event.FeedRequest{After: "7"}), store.ErrBadCursor, "from the future", `the newest is "0"`)
		wantError(fx, read(event.FeedRequest{After: "0", Limit: -1}), weaver.ErrInvalidOption, "Limit is -1")
		wantError(fx, read(event.FeedRequest{After: "0", Limit: 501}), weaver.ErrInvalidOption, "want 1 to 500")
		wantError(fx, read(event.FeedRequest{After: "0", Names: []string{""}}), weaver.ErrInvalidOption)
		for _, bad := range []string{"task.faild", "task", "job.started", "steps.*"} {
			wantError(fx, read(event.FeedRequest{After: "0", Names: []string{"task.failed", bad}}), weaver.ErrInvalidOption, fmt.Sprintf("%q", bad), "job.settled")
		}
		for _, good := range []string{"*", "task.*", "log.written", "job.settled"} {
			_, err := fx.client.EventPage(fx.Context(), event.FeedRequest{After: "0", Names: []string{good}})
			fx.must(err)
		}

		none, err := weaver.NewClient(polled(fx.store), weaver.ClientConfig{})
		fx.must(err)
		wantError(fx, none.KeepEvents(fx.Context(), time.Hour), store.ErrNoFeed, "cannot keep a feed of events")
	})
}

func TestEventsGap(t *testing.T) {
	typ := weaver.Define[int, int]("engine.feed.gap.v1")
	inBubble(t, func(fx *fixture) {
		keepEvents(fx)
		enqueue(fx, typ, 1)
		begin := fx.page(event.FeedRequest{}).Next
		equal(fx, "the cursor now", begin, "1")
		enqueue(fx, typ, 2)
		fx.must(fx.client.KeepEvents(fx.Context(), 0))
		enqueue(fx, typ, 3)
		keepEvents(fx)
		enqueue(fx, typ, 4)
		page := fx.page(event.FeedRequest{After: begin})
		equal(fx, "events", fmt.Sprint(namesOf(page.Events)), "[gap 1-3 task.enqueued]")
		again := fx.page(event.FeedRequest{After: page.Events[0].Cursor})
		equal(fx, "behind the gap", fmt.Sprint(namesOf(again.Events)), "[task.enqueued]")

		go func() {
			time.Sleep(time.Minute)
			fx.must(fx.client.KeepEvents(fx.Context(), 0))
		}()
		for ev, err := range fx.client.Events(fx.Context(), event.FeedRequest{After: page.Next}) {
			if err == nil {
				fx.Errorf("Events gives %v", ev)
			}
			wantError(fx, err, store.ErrNoFeed)
		}
	})
}

// Waiting readers share one read of the end of the feed, four times a second. Without waiting readers
// there are no reads. A write wakes all of them at once.
func TestEventsShareTheirLooks(t *testing.T) {
	typ := weaver.Define[int, int]("engine.feed.looks.v1")
	inBubble(t, func(fx *fixture) {
		looks := map[string]int{}
		count := make(chan map[string]int, 1)
		count <- looks
		s := storehook.New(fx.store, &storehook.Hooks{Around: func(ctx context.Context, c *storehook.Call, next func(context.Context) error) error {
			m := <-count
			m[c.Method]++
			count <- m
			return next(ctx)
		}, Feed: func(_ context.Context, req store.FeedRequest, next func() (store.FeedPage, error)) (store.FeedPage, error) {
			if !req.StateOnly {
				m := <-count
				m["pages"]++
				count <- m
			}
			return next()
		}})
		take := func() map[string]int {
			m := <-count
			count <- map[string]int{}
			return m
		}
		client, err := weaver.NewClient(s, weaver.ClientConfig{})
		fx.must(err)
		fx.must(client.KeepEvents(fx.Context(), time.Hour))
		ctx, stop := context.WithCancel(fx.Context())
		const readers = 20
		got, ended := make(chan time.Time, readers), make(chan struct{}, readers)
		for range readers {
			go func() {
				for _, err := range client.Events(ctx, event.FeedRequest{}) {
					if err == nil {
						got <- time.Now()
					}
				}
				ended <- struct{}{}
			}()
		}
		time.Sleep(time.Second)
		take()
		time.Sleep(time.Minute)
		if m := take(); m["Feed"] < 200 || m["Feed"] > 245 || m["pages"] > 0 {
			fx.Errorf("in a minute in which nothing happens the store is asked %v", m)
		}
		began := time.Now()
		enqueue(fx, typ, 1)
		for range readers {
			if at := <-got; at.Sub(began) > 50*time.Millisecond {
				fx.Errorf("a follower learns of it after %v", at.Sub(began))
			}
		}
		if m := take(); m["Feed"]-m["pages"] > 3 || m["pages"] != readers {
			fx.Errorf("an event costs %v", m)
		}
		stop()
		for range readers {
			<-ended
		}
		take()
		time.Sleep(time.Minute)
		if m := take(); len(m) > 0 {
			fx.Errorf("without followers the store is asked %v", m)
		}
	})
}

func TestEventPageWaits(t *testing.T) {
	typ := weaver.Define[int, int]("engine.feed.wait.v1")
	inBubble(t, func(fx *fixture) {
		keepEvents(fx)
		began := time.Now()
		page := fx.page(event.FeedRequest{Wait: 15 * time.Second})
		equal(fx, "time", time.Since(began), 15*time.Second)
		equal(fx, "page", fmt.Sprint(page), fmt.Sprint(event.FeedPage{Next: "0", Newest: "0"}))
		go func() {
			time.Sleep(time.Second)
			enqueue(fx, typ, 1)
			time.Sleep(time.Second)
			enqueue(fx, typ, 2, weaver.Queue("slow"))
		}()
		page = fx.page(event.FeedRequest{After: page.Next, Queue: "slow", Wait: 15 * time.Second})
		equal(fx, "time", time.Since(began) < 18*time.Second, true)
		equal(fx, "events", len(page.Events), 1)
		equal(fx, "queue", page.Events[0].Queue, "slow")
		ctx, stop := context.WithTimeout(fx.Context(), time.Second)
		defer stop()
		if _, err := fx.client.EventPage(ctx, event.FeedRequest{Wait: time.Minute}); !errors.Is(err, context.DeadlineExceeded) {
			fx.Errorf("a wait whose context ends: %v", err)
		}
	})
}

// Events of a deleted task report that their quoted data is gone; so does the end of a task that has
// continued since.
func TestEventsOfWhatIsGone(t *testing.T) {
	typ := weaver.Define[int, int]("engine.feed.gone.v1", weaver.MaxAttempts(1))
	inBubble(t, func(fx *fixture) {
		keepEvents(fx)
		j := weaver.NewJob("one")
		j.Add("a", typ.With(1))
		deleted, again, job := enqueue(fx, typ, 1), enqueue(fx, typ, 2), submit(fx, j)
		fx.must(fx.client.Cancel(fx.Context(), again.ID(), weaver.Reason("not now")))
		fx.idle(typ.Handler(func(ctx context.Context, _ int) (int, error) {
			time.Sleep(time.Second)
			return 0, weaver.Do(ctx, "charge", func(context.Context) error { return weaver.Permanent(errors.New("the card is refused")) })
		}))
		read := func(req event.FeedRequest) (list []string) {
			req.After = event.FeedOldest
			for _, ev := range fx.page(req).Events {
				line := strings.Join(new(event.Encoder).Lines(ev.Event), "")
				if ev.Problem != "" {
					line = event.Partial(ev.Event)
				}
				var of struct {
					Event    string         `json:"event"`
					Error    map[string]any `json:"error"`
					Duration *int           `json:"duration_ns"`
					Counters any            `json:"counters"`
				}
				fx.must(json.Unmarshal([]byte(line), &of))
				list = append(list, fmt.Sprint(of.Event, " ", of.Error != nil, of.Duration != nil, of.Counters != nil, " ", ev.Problem))
			}
			return list
		}
		failed := event.FeedRequest{Task: deleted.ID(), Names: []string{"task.failed"}}
		cancelled := event.FeedRequest{Task: again.ID(), Names: []string{"task.cancelled"}}
		settled := event.FeedRequest{Job: job.ID(), Names: []string{"job.settled"}}
		equal(fx, "before", fmt.Sprint(read(failed), read(cancelled), read(settled)), "[task.failed true true false ] [task.cancelled true true false ] [job.settled false true true ]")
		fx.must(fx.client.Delete(fx.Context(), deleted.ID()))
		fx.must(fx.client.Retry(fx.Context(), again.ID()))
		_, err := fx.client.DeleteJob(fx.Context(), job.ID())
		fx.must(err)
		const gone = "the task was deleted"
		equal(fx, "after", fmt.Sprint(read(failed), read(cancelled), read(settled)),
			"[task.failed false false false "+gone+"] [task.cancelled false false false why it ended is not kept: the task has changed since] [job.settled false false false the job was deleted]")
		for _, line := range read(event.FeedRequest{Task: deleted.ID()}) {
			if !strings.HasSuffix(line, " false false false "+gone) {
				fx.Errorf("an event of a task that was deleted: %s", line)
			}
		}
	})
}

// Event data is sealed as elsewhere, masked, and erased by Forget.
func TestEventsKeepSecrets(t *testing.T) {
	type order struct {
		Card string `json:"card" weaver:"redact"`
	}
	typ := weaver.Define[order, int]("engine.feed.secret.v1", weaver.MaxAttempts(1))
	inBubble(t, func(fx *fixture) {
		seals := aesCodec(fx, aesKeys(fx, "k1")...)
		client, err := weaver.NewClient(fx.store, weaver.ClientConfig{Codec: seals})
		fx.must(err)
		fx.client = client
		keepEvents(fx)
		eng := fx.newEngine(fx.store, weaver.Config{
			Codec: seals, Plugins: []weaver.Plugin{weaver.PersistLogs()},
			Handlers: []weaver.Handler{typ.Handler(func(ctx context.Context, in order) (int, error) {
				weaver.Log(ctx).Info("charging", "card", in.Card, "shop", "corner")
				return 0, weaver.Permanent(errors.New("the card " + in.Card + " is refused"))
			})},
		})
		h := enqueue(fx, typ, order{"4711-0815"}, weaver.Label("user", "u1"))
		fx.must(eng.RunUntilIdle(fx.Context()))
		all := func(c *weaver.Client) string {
			page, err := c.EventPage(fx.Context(), event.FeedRequest{After: event.FeedOldest, Task: h.ID()})
			fx.must(err)
			raw, err := json.Marshal(page)
			fx.must(err)
			return string(raw)
		}
		text := all(client)
		for _, want := range []string{"charging", "corner", "is refused"} {
			if !strings.Contains(text, want) {
				fx.Errorf("the events do not say %q: %s", want, text)
			}
		}
		if strings.Contains(text, "4711-") {
			fx.Errorf("the events have the card: %s", text)
		}
		plain, err := weaver.NewClient(fx.store, weaver.ClientConfig{})
		fx.must(err)
		if text := all(plain); strings.Contains(text, "corner") || !strings.Contains(text, "cannot be read") {
			fx.Errorf("without the codec they say %s", text)
		}
		_, err = client.Forget(fx.Context(), ops.ForgetRequest{Labels: map[string]string{"user": "u1"}, Reason: "asked"})
		fx.must(err)
		if text := all(client); strings.Contains(text, "charging") || strings.Contains(text, "refused") || !strings.Contains(text, "is erased") {
			fx.Errorf("after it was forgotten they say %s", text)
		}
	})
}
