package explain

import (
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/goweaver/weaver/internal/text"
	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/task"
)

// Start is the estimate of when a waiting task starts. Without a latest time it is unknown, for the reason.
type Start struct {
	Earliest  time.Time   `json:"earliest,omitzero"`   // it probably does not start before; empty if unknown
	Latest    time.Time   `json:"latest,omitzero"`     // it has probably started by then; empty if unknown
	Ahead     store.Count `json:"ahead,omitzero"`      // due tasks that start before it
	PerMinute float64     `json:"per_minute,omitzero"` // starts of them per minute; empty if unknown
	Reason    string      `json:"reason"`              // what the estimate follows from, or why there is none
}

// PaceSpan is the time for which the recent starts of a lane are counted.
const PaceSpan = 5 * time.Minute

// Pace describes the recent work at the lane and the queue of a due task.
type Pace struct {
	At      time.Time   // the store's time
	Line    *store.Line // of the task; nil if it is not due any more
	Workers []store.WorkerStatus
	Lane    []PaceSlot  // attempts of its queue and type that ended in the last PaceSpan
	Queue   []PaceSlot  // the same of all types of its queue
	Running []task.Task // running tasks of its type, or a page of them
}

// PaceSlot counts the attempts that ended since an instant and before the next slot.
type PaceSlot struct {
	From  time.Time
	Ended int64
	Run   time.Duration // mean run time
}

const (
	// backlogged is the age from which on a backlog's recent ends tell its speed. Before it there may have been no more
	// starts than tasks.
	backlogged = 30 * time.Second
	// startSlack is added to latest times: the time in which workers look for work and write statistics.
	startSlack = 5 * time.Second
)

// StartOf estimates when a waiting task starts. It returns nil for a task that has started or ended. pace is that of a
// due task; nil if it was not read.
func StartOf(h *store.History, pace *Pace) *Start {
	t := &h.Task
	unknown := func(why string) *Start { return &Start{Reason: why} }
	switch {
	case t.State == task.Blocked:
		return unknown("it is blocked and waits for a person")
	case t.State == task.Ready && pace != nil && pace.Line != nil:
		e := &estimate{Pace: pace, t: t}
		return e.start()
	case t.State != task.Pending:
		return nil
	case WaitsForTime(t.Waiting):
		return &Start{Earliest: t.ReadyAt, Reason: "it is due then, and what will be due before it is unknown"}
	case t.Waiting == task.WaitPaused:
		return unknown("it is paused, until someone resumes it")
	case t.Waiting.OnTasks():
		return unknown("it waits for other tasks")
	case t.Waiting == task.WaitConcurrency:
		return unknown("it waits for its concurrency key, until the tasks that hold it end")
	case t.Waiting == task.WaitSignal:
		return unknown("it waits for a signal")
	}
	return unknown("it waits: " + Waits(t, nil))
}

// estimate is the estimate of a due task. Spans are from Pace.At on.
type estimate struct {
	*Pace
	t *task.Task

	slots, free int           // of the live workers that serve it
	run         time.Duration // mean run time in its lane; 0: unknown

	low, high time.Duration // high < 0: unknown
	said      *Start
}

func (e *estimate) start() *Start {
	e.said = &Start{Ahead: e.Line.Ahead}
	if !e.served() {
		e.said.Reason = fmt.Sprintf("no live worker runs tasks of type %s in queue %q", e.t.Type, text.OneLine(e.t.Queue, MaxNote))
		return e.said
	}
	_, e.run = sum(e.Lane, time.Time{})
	e.high = -1
	if !e.bySpeed(e.Lane, e.Line.Ahead) && !e.bySpeed(e.Queue, e.Line.Queue) {
		e.bySlots()
	}
	if e.high < 0 {
		e.said.Reason = e.unknown()
	}
	e.limits()
	if e.low > 0 || e.high >= 0 {
		e.said.Earliest = e.At.Add(e.low).Truncate(time.Second)
		if e.said.Earliest.Before(e.At) {
			e.said.Earliest = e.At
		}
	}
	switch {
	case e.said.Ahead.More:
		// The count is a lower bound, and so is the time.
	case e.high >= 0:
		e.said.Latest = e.At.Add(max(e.high, e.low)).Truncate(time.Second).Add(time.Second)
	}
	return e.said
}

// served counts the slots of the live workers that run its type in its queue.
func (e *estimate) served() (any bool) {
	for i := range e.Workers {
		w := &e.Workers[i]
		if w.Dead || w.Silent || !slices.Contains(w.Types, e.t.Type) || len(w.Queues) > 0 && !slices.Contains(w.Queues, e.t.Queue) ||
			slices.ContainsFunc(w.Troubles, func(tr store.Trouble) bool { return tr.TaskType == e.t.Type }) {
			continue
		}
		any = true
		e.slots += w.Slots
		e.free += max(0, w.Slots-w.Running.N)
	}
	return any
}

// sum returns the attempts that ended since an instant, and their mean run time.
func sum(slots []PaceSlot, since time.Time) (ended int64, run time.Duration) {
	total := 0.0
	for _, s := range slots {
		if !s.From.Before(since) {
			ended += s.Ended
			total += float64(s.Ended) * float64(s.Run)
		}
	}
	if ended == 0 {
		return 0, 0
	}
	return ended, max(time.Microsecond, time.Duration(total/float64(ended)))
}

// window returns the start of the time in which the line has not been empty, at most PaceSpan ago.
func (e *estimate) window() time.Time {
	from := e.At.Add(-PaceSpan)
	if e.Line.Since.After(from) {
		from = e.Line.Since
	}
	return store.SlotOf(from, store.StatsSlot)
}

// started counts the running tasks of its lane that started since an instant.
func (e *estimate) started(since time.Time) (n int64) {
	for i := range e.Running {
		if t := &e.Running[i]; t.Queue == e.t.Queue && !t.StartedAt.Before(since) {
			n++
		}
	}
	return n
}

// unknown says why nothing can be estimated.
func (e *estimate) unknown() string {
	queue, all := text.OneLine(e.t.Queue, MaxNote), text.Span(PaceSpan)
	switch {
	case e.run == 0 && e.started(e.At.Add(-PaceSpan)) == 0:
		return fmt.Sprintf("nothing of its type has started in queue %q in the last %s", queue, all)
	case e.slots == 0:
		return "its workers do not say how many tasks they run at once"
	case e.free > 0:
		return fmt.Sprintf("%s free, and nothing of its type has started in queue %q in the last %s", counted(e.free, "slot is", "slots are"), queue, text.Span(e.At.Sub(e.window())))
	}
	return fmt.Sprintf("no slot is free, and no attempt of its type has ended in queue %q in the last %s", queue, all)
}

// bySpeed estimates from the attempts that ended since there is a backlog: each freed a slot. It reports false if there
// is no backlog, or none has ended.
func (e *estimate) bySpeed(slots []PaceSlot, ahead store.Count) bool {
	from := e.window()
	if e.At.Sub(e.Line.Since) < backlogged {
		return false
	}
	for _, s := range slots { // a worker may have come later than the backlog
		if s.Ended > 0 && !s.From.Before(from) {
			from = s.From
			break
		}
	}
	each, n := e.speed(slots, from)
	if n == 0 {
		return false
	}
	off := 1.25 + 1/math.Sqrt(n) // the fewer attempts, the less they tell
	fast, slow := each/off, each*off
	switch took, last := e.At.Sub(from), store.SlotOf(e.At.Add(-time.Minute), store.StatsSlot); {
	case took > 2*time.Minute: // workers may have come or gone in between
		if each, n := e.speed(slots, last); n >= 10 {
			off := 1.25 + 1/math.Sqrt(n)
			fast, slow = min(fast, each/off), max(slow, each*off)
		}
	case took < time.Minute && e.run > 0 && e.slots > 0: // they may have come just now
		fast = min(fast, float64(e.run)/float64(e.slots)/1.25)
	}
	e.low, e.high = span(float64(ahead.N)*fast), span(float64(ahead.N+2)*slow)+startSlack
	e.said.Ahead, e.said.PerMinute = ahead, perMinute(each)
	e.said.Reason = fmt.Sprintf("%s before it and about %s per minute", tasksAre(ahead), starts(e.said.PerMinute))
	return true
}

// speed returns the time in which one attempt ended since an instant, and the number of them.
func (e *estimate) speed(slots []PaceSlot, since time.Time) (each, n float64) {
	ended, _ := sum(slots, since)
	n = float64(ended)
	return float64(e.At.Sub(since)) / max(n, 1), n
}

// bySlots estimates from the slots of the workers and the run times of the lane.
func (e *estimate) bySlots() {
	ahead := e.Line.Ahead.N
	switch {
	case e.free > e.Line.Queue.N:
		if e.At.Sub(e.Line.Since) >= backlogged {
			return // something else keeps it from starting
		}
		e.high = startSlack
		e.said.Reason = fmt.Sprintf("%s free and %s before it", counted(e.free, "slot is", "slots are"), tasksAre(e.Line.Queue))
	case e.run > 0 && e.slots > 0:
		each := float64(e.run) / float64(e.slots)
		e.low = span(float64(max(0, ahead-e.free)) * each / 2)
		e.high = span(float64(e.Line.Queue.N+2)*each*2) + e.run + startSlack
		e.said.PerMinute = perMinute(each)
		e.said.Reason = fmt.Sprintf("%s before it, and %s tasks that take about %s each", tasksAre(e.Line.Ahead),
			counted(e.slots, "slot runs", "slots run"), text.Took(e.run))
	}
}

// limits applies the limits of the lane.
func (e *estimate) limits() {
	measured := e.high >= 0
	for i := range e.Line.Limits {
		l := &e.Line.Limits[i]
		from, ahead := e.At, l.Ahead.N
		if l.RestUntil.After(from) {
			from = l.RestUntil
		}
		opens := from.Sub(e.At)
		if l.Starts > 0 {
			if l.Arrival.After(from) {
				from = l.Arrival
			}
			r := l.Rate()
			opens = max(opens, span(float64(from.Sub(e.At))+float64(r.Spacing())*float64(ahead-r.Burst+1)))
		}
		name := text.OneLine(l.Name, MaxNote)
		if opens > e.low {
			e.low = opens
			if l.Ahead.More {
				e.said.Ahead.More = true
			}
			// The rest of the line moves no slower than the limit lets it: a slot is free all the same.
			if measured || e.free > 0 {
				e.high = max(e.high, span(float64(opens)*1.2)+startSlack)
			}
			e.said.Reason = fmt.Sprintf("%s before it with the limit %s", tasksAre(l.Ahead), name)
			if l.Starts > 0 {
				e.said.PerMinute = perMinute(float64(l.Rate().Spacing()))
				e.said.Reason += fmt.Sprintf(", which lets %d start in %s", l.Starts, text.Setting(l.Per))
			} else {
				e.said.Reason += ", which a handler asked to rest"
			}
		}
		if l.Running > 0 && (!measured || e.At.Sub(e.Line.Since) < backlogged) && ahead >= l.Running-l.InUse {
			if e.run == 0 {
				e.high = -1
				e.said.Reason = fmt.Sprintf("the limit %s lets %d run at once, and how much time they take is unknown", name, l.Running)
				continue
			}
			each := float64(e.run) / float64(l.Running)
			e.low = max(e.low, span(float64(ahead-max(0, l.Running-l.InUse))*each/2))
			e.high = max(e.high, span(float64(ahead+2)*each*2)+e.run+startSlack)
			e.said.PerMinute = perMinute(each)
			e.said.Reason = fmt.Sprintf("%s before it with the limit %s, which lets %d run at once, for about %s each", tasksAre(l.Ahead), name, l.Running, text.Took(e.run))
		}
	}
}

// startNote words the estimate of a due task.
func (c Clock) startNote(s *Start) string {
	said := "When it will start is unknown: "
	switch {
	case s.Latest.IsZero() && !s.Earliest.IsZero():
		said = "It will probably not start before " + c.Abs(s.Earliest) + "; how much later is unknown: "
	case s.Latest.IsZero():
	case !s.Earliest.After(c.Now):
		said = fmt.Sprintf("It will probably start within %s (by %s): ", text.Span(s.Latest.Sub(c.Now)), c.Abs(s.Latest))
	default:
		said = fmt.Sprintf("It will probably start between %s and %s (in %s to %s): ", c.Abs(s.Earliest), c.Abs(s.Latest),
			text.Span(s.Earliest.Sub(c.Now)), text.Span(s.Latest.Sub(c.Now)))
	}
	return text.Stop(said + s.Reason)
}

func perMinute(each float64) float64 {
	n := float64(time.Minute) / max(each, 1)
	if n >= 10 {
		return math.Round(n)
	}
	return math.Round(n*100) / 100
}

func starts(perMinute float64) string {
	if perMinute == 1 {
		return "1 starts"
	}
	return fmt.Sprintf("%g start", perMinute)
}

// tasksAre returns the beginning of a sentence about counted tasks: "no task is", "1 task is", "more than 10000 tasks are".
func tasksAre(n store.Count) string {
	switch {
	case n.More:
		return fmt.Sprintf("more than %d tasks are", n.N)
	case n.N == 0:
		return "no task is"
	}
	return counted(n.N, "task is", "tasks are")
}

// span converts nanoseconds, with a bound below which sums of a few do not overflow.
func span(ns float64) time.Duration {
	return time.Duration(min(max(ns, 0), float64(100*366*24*time.Hour)))
}
