package storetest

import (
	"fmt"
	"slices"
	"time"

	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/task"
)

func (e *env) keepFeed(d time.Duration) {
	e.Helper()
	e.operate(store.KeepFeed{Keep: d})
}

// pruneFeed removes the few rows that are old.
func (e *env) pruneFeed() {
	e.Helper()
	got, err := e.s.Collect(e.Context(), e.ns, store.CollectRequest{Feed: true})
	e.check(err == nil && !got.More, "Collect of the feed: %v, %v", got.More, err)
}

func (e *env) feed() store.FeedState {
	e.Helper()
	page, err := e.s.Feed(e.Context(), e.ns, store.FeedRequest{StateOnly: true})
	e.require(err == nil && len(page.Rows) == 0, "Feed: %d rows, %v", len(page.Rows), err)
	return page.FeedState
}

// feedAfter reads all pages after a position and returns their rows.
func (e *env) feedAfter(req store.FeedRequest) (rows []store.FeedRow, next int64) {
	e.Helper()
	for state := e.feed(); state.Newest < state.Last; state = e.feed() {
		time.Sleep(10 * time.Millisecond) // a transaction of another test is open
	}
	for next = req.After; ; {
		req.After = next
		page, err := e.s.Feed(e.Context(), e.ns, req)
		e.require(err == nil, "Feed: %v", err)
		e.check(page.Next >= next, "the page behind %d ends at %d", next, page.Next)
		for _, row := range page.Rows {
			e.check(row.Pos > next && row.Pos <= page.Next, "row %d behind %d is not in order, or beyond %d", row.Pos, next, page.Next)
			next = row.Pos
		}
		rows = append(rows, page.Rows...)
		if next = page.Next; !page.More {
			return rows, next
		}
	}
}

// feedOf returns the event names of a task in the feed.
func (e *env) feedOf(id task.ID) string {
	e.Helper()
	rows, _ := e.feedAfter(store.FeedRequest{Task: id})
	return fmt.Sprint(mapped(rows, func(r store.FeedRow) string { return r.Name }))
}

var feedCases = []testCase{
	{"tells the life of a task, whoever moves it", func(e *env) {
		e.keepFeed(time.Hour)
		well := e.one(queue("q"))
		fin := success(e.a.take(well))
		fin.Events = eventRows(e, 1, 2, 3, 4, 6, 7)
		e.finish(fin)
		e.finish(fin) // the reply was lost
		e.equal("of one that succeeds", e.feedOf(well), "[task.enqueued task.started step.started step.started log.written step.started log.written step.started task.succeeded]")

		retried := e.one()
		e.finish(retry(e.a.take(retried), time.Second))
		e.pass(2 * time.Second)
		e.finish(dead(e.a.take(retried)))
		e.operate(retryOf(retried))
		e.operate(cancelOf(retried))
		e.equal("of one that a person retries and cancels", e.feedOf(retried),
			"[task.enqueued task.started task.retrying task.started task.failed task.reopened task.cancelled]")

		blocked := e.one()
		e.finish(block(e.a.take(blocked)))
		e.equal("of one that is blocked", e.feedOf(blocked), "[task.enqueued task.started task.blocked]")

		given := e.one()
		e.finish(released(e.a.take(given)))
		e.pass(time.Second)
		e.finish(suspend(e.a.take(given), e.now().Add(time.Hour)))
		e.equal("of one that is given back", e.feedOf(given), "[task.enqueued task.started task.released task.started task.suspended]")

		lost := e.one()
		e.expire(e.a.take(lost))
		e.equal("of one whose lease is lost", e.feedOf(lost), "[task.enqueued task.started task.lease_lost]")
	}},
	{"tells of jobs, and what rows quote", func(e *env) {
		e.keepFeed(time.Hour)
		j := e.job("a", "b: a")
		e.finish(dead(e.a.take(j.id("a"))))
		rows, _ := e.feedAfter(store.FeedRequest{Names: []string{"job.*"}})
		e.require(len(rows) == 1, "rows of jobs: %+v", rows)
		e.equal("the job", rows[0].Job, j.read().ID)
		e.equal("its state", rows[0].State, string(task.JobFailed))
		e.equal("its tasks", rows[0].Counters.Total, 2)
		e.equal("of what waited", e.feedOf(j.id("b")), "[task.enqueued task.cancelled]")

		failed, _ := e.feedAfter(store.FeedRequest{Task: j.id("a"), Names: []string{"task.failed"}})
		e.require(len(failed) == 1 && failed[0].Error != nil, "the failure: %+v", failed)
		e.equal("node", failed[0].Node, "a")
		e.equal("attempt", failed[0].AttemptNo, 1)
		over, _ := e.feedAfter(store.FeedRequest{Task: j.id("b"), Names: []string{"task.cancelled"}})
		e.require(len(over) == 1 && over[0].Error != nil, "the end of what waited: %+v", over)

		id := e.undoing()
		e.finish(undone(e.a.take(id)))
		failed, _ = e.feedAfter(store.FeedRequest{Task: id, Names: []string{"task.failed"}})
		e.require(len(failed) == 1 && failed[0].Error != nil, "the verdict on what was undone: %+v", failed)
	}},
	{"rows of a task that was deleted say so", func(e *env) {
		e.keepFeed(time.Hour)
		id, stays, again := e.one(), e.one(), e.one()
		e.operate(cancelOf(again))
		e.pass(time.Second)
		e.operate(retryOf(again))
		fin := dead(e.a.take(id))
		fin.Events = eventRows(e, 1)
		e.finish(fin)
		e.operate(deleteOf(id))
		rows, _ := e.feedAfter(store.FeedRequest{})
		for _, row := range rows {
			e.equal(row.Name+" of a task that is gone", row.Gone, row.Task == id)
			e.check(row.Task != id || row.Error == nil && row.StartedAt.IsZero() && row.Event.Body == nil, "quotes of what was deleted: %+v", row)
			e.check(row.Kind != store.FeedOver || row.Error == nil, "the end of a task that has gone on: %+v", row)
		}
		e.equal("of one that is gone", e.feedOf(id), "[task.enqueued task.started step.started task.failed]")
		e.equal("of one that stays", e.feedOf(stays), "[task.enqueued]")
	}},
	{"the counters of a job that has changed since are not told", func(e *env) {
		e.keepFeed(time.Hour)
		j := e.job("a")
		e.fail(j.id("a"))
		ends := func(want ...string) {
			e.Helper()
			rows, _ := e.feedAfter(store.FeedRequest{Names: []string{"job.settled"}})
			e.equal("ends of the job", fmt.Sprint(mapped(rows, func(r store.FeedRow) string {
				return fmt.Sprintf("%s %d/%d of %d", r.State, r.Counters.Failed, r.Counters.Succeeded, r.Counters.Total)
			})), fmt.Sprint(want))
			for _, r := range rows {
				e.equal("the job's begin", r.StartedAt, j.read().CreatedAt)
			}
		}
		ends("failed 1/0 of 1")
		e.pass(time.Second)
		e.operate(retryOf(j.id("a")))
		ends("failed 0/0 of 0")
		e.succeed(j.id("a"))
		ends("failed 0/0 of 0", "succeeded 0/1 of 1")
	}},
	{"pages go on where they ended, and filters hold", func(e *env) {
		e.keepFeed(time.Hour)
		ids := e.many(5, queue("a"), typed("acme.one.v1"))
		e.many(4, queue("b"), typed("acme.two.v1"))
		for _, want := range []struct {
			req store.FeedRequest
			n   int
		}{
			{store.FeedRequest{}, 9},
			{store.FeedRequest{Limit: 2}, 9},
			{store.FeedRequest{Queue: "b"}, 4},
			{store.FeedRequest{Types: []string{"acme.two.*"}}, 4},
			{store.FeedRequest{Types: []string{"acme.one.v1", "acme.two.v1"}, Limit: 1}, 9},
			{store.FeedRequest{Task: ids[0]}, 1},
			{store.FeedRequest{Names: []string{"task.started"}}, 0},
			{store.FeedRequest{Queue: "none"}, 0},
		} {
			rows, next := e.feedAfter(want.req)
			e.equal(fmt.Sprintf("rows for %+v", want.req), len(rows), want.n)
			e.equal("the end", next, e.feed().Newest)
			e.check(slices.IsSortedFunc(rows, func(a, b store.FeedRow) int { return int(a.Pos - b.Pos) }), "rows are out of order")
		}
	}},
	{"a feed that ended and begins again leaves a gap", func(e *env) {
		e.one()
		e.equal("without a feed", e.feed(), store.FeedState{})
		e.keepFeed(time.Hour)
		e.check(e.feed().On, "the feed is not on")
		e.one()
		_, seen := e.feedAfter(store.FeedRequest{})
		e.keepFeed(0)
		e.one()
		e.keepFeed(time.Hour)
		e.check(e.feed().Kept > seen, "kept is %d, but what came behind %d is not there", e.feed().Kept, seen)
		id := e.one()
		rows, _ := e.feedAfter(store.FeedRequest{After: seen})
		e.require(len(rows) == 1 && rows[0].Task == id, "rows after the gap: %+v", rows)

		got := e.command(store.KeepFeed{Keep: time.Second})
		e.check(got.Err != nil, "a feed may keep its rows for a second")
	}},
	{"what is old goes, and readers know where", func(e *env) {
		e.keepFeed(time.Minute)
		e.many(3)
		_, first := e.feedAfter(store.FeedRequest{})
		e.pass(2 * time.Minute)
		id := e.one()
		e.pruneFeed()
		e.equal("kept", e.feed().Kept, first)
		rows, _ := e.feedAfter(store.FeedRequest{})
		e.require(len(rows) == 1 && rows[0].Task == id, "rows that are kept: %+v", rows)
	}},
	{"an old row behind a young one stays", func(e *env) {
		e.keepFeed(time.Minute)
		id := e.one()
		fin := success(e.a.take(id))
		fin.Events = eventRows(e, 1, 2)
		for i := range fin.Events { // a worker with a slow clock
			fin.Events[i].At = fin.Events[i].At.Add(-time.Hour)
		}
		e.finish(fin)
		e.pruneFeed()
		e.equal("kept", e.feed().Kept, int64(0))
		e.equal("of the task", e.feedOf(id), "[task.enqueued task.started step.started step.started task.succeeded]")
		e.pass(2 * time.Minute)
		e.pruneFeed()
		e.equal("of the task, later", e.feedOf(id), "[]")
	}},
}
