package store

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"github.com/goweaver/weaver/task"
)

// needs checks a task's edges (I7). The count of open needs is meaningless once a task has ended: a
// retry recounts them. An edge is done exactly if its need has ended, except that a need may be
// retried after the task has started. A task that runs on a failed need waits for all of its needs
// until the first failure; a started task waits for none of them.
func (c *checker) needs(t *task.Task) {
	waits := t.State == task.Pending && t.Waiting == task.WaitDeps && t.Join == task.JoinNone // a task with a join has started
	startable := t.AttemptNo == 0 && (t.State == task.Pending || t.State == task.Ready)
	cancelling := c.pending[ChoreRow{Kind: ChoreCancelJob, Subject: t.JobID.String()}]
	inParts := len(c.unstored) > 0 && c.pending[ChoreRow{Kind: ChoreEnqueue, Subject: t.JobID.String()}]
	open, ifFailed, wrong := 0, 0, !waits && !startable
	for _, e := range c.edgesOf[t.ID] {
		if e.Awaited > 0 {
			continue
		}
		need, ok := c.byID[e.Needs]
		switch {
		case !ok && inParts: // the need is stored after its dependents
			open++
			continue
		case !ok:
			c.task("I7", t, "needs task %s, which does not exist", e.Needs)
			continue
		case !e.Done && need.State.Terminal() && !c.pending[ChoreRow{Kind: ChoreEdges, Subject: e.Needs.String()}]:
			c.task("I7", t, "its edge to task %s, which ended %s, is not done", e.Needs, need.State)
		case e.Done && !need.State.Terminal() && (waits || startable):
			c.task("I7", t, "its edge to task %s, which is %s and has not ended, is done", e.Needs, need.State)
		}
		holds, ended := e.Kind.Holds(need.End())
		switch {
		case e.Kind == task.OnFailed && e.Done:
			wrong = wrong || holds
		case e.Kind == task.OnFailed:
			ifFailed++
		case !e.Done:
			open++
		case ended && !holds && (waits || startable) && !cancelling:
			c.task("I7", t, "its edge to task %s, which ended %s, cannot be met", e.Needs, need.State)
		}
	}
	if !wrong {
		open += ifFailed
	}
	if t.Join != task.JoinNone {
		open = c.children(t)
		waits = t.State == task.Pending && t.Waiting != task.WaitUndo
	}
	if inParts && waits && t.RemainingDeps > open { // some edges are not stored yet
		open = t.RemainingDeps
	}
	switch {
	case !t.State.Terminal() && t.RemainingDeps != open:
		c.task("I7", t, "has remaining_deps %d with %d open needs", t.RemainingDeps, open)
	case waits && open == 0 && !cancelling:
		c.task("I7", t, "waits for its needs or children, which are all decided")
	case open > 0 && !waits && t.State != task.Cancelled:
		c.task("I7", t, "has %d open needs", open)
	}
}

// children checks the edges to a task's children, and to a task that it asked for. The task waits for
// them while its Join is set; children returns the number it waits for. If the task has ended first,
// they have ended too or are asked to.
func (c *checker) children(t *task.Task) (open int) {
	waits := t.State == task.Pending && t.Waiting != task.WaitUndo
	if waits != (t.Waiting == t.Join.Waiting()) {
		c.task("I7", t, "waits for %q with the join %q", t.Waiting, t.Join)
	}
	reviving := c.pending[ChoreRow{Kind: ChoreReviveChildren, Subject: t.ID.String()}]
	ending := c.pending[ChoreRow{Kind: ChoreChildren, Subject: t.ID.String()}] ||
		c.pending[ChoreRow{Kind: ChoreCancelJob, Subject: t.JobID.String()}]
	for _, e := range c.edgesOf[t.ID] {
		if e.Awaited == 0 || e.Step != "" {
			continue
		}
		child, ok := c.byID[e.Needs]
		switch {
		case !ok:
			c.task("I7", t, "has the child %s, which does not exist", e.Needs)
			continue
		case !e.Done && child.State.Terminal() && !c.pending[ChoreRow{Kind: ChoreEdges, Subject: e.Needs.String()}]:
			c.task("I7", t, "its edge to its child %s, which ended %s, is not done", e.Needs, child.State)
		case e.Done && !child.State.Terminal() && (t.Waiting == task.WaitChildren || t.Waiting == task.WaitRepair) && e.Awaited == t.AttemptNo: // otherwise it was retried while its parent ran
			c.task("I7", t, "its edge to its child %s, which is %s and has not ended, is done", e.Needs, child.State)
		case !e.Done && !child.State.Terminal() && (t.State.Terminal() || t.Undo != nil) && e.Kind == task.OnDone && !child.CancelRequested && child.Undo == nil && !ending:
			c.task("I7", t, "its child %s is %s and was not asked to end", e.Needs, child.State)
		}
		if e.Done == (e.EndedState == "") {
			c.task("I7", t, "its edge to its child %s has done %v and the end %q", e.Needs, e.Done, e.EndedState)
		}
		comesBack := child.State == task.Cancelled && child.CancelKind == task.KindParentEnded || child.State.Terminal() && child.End().Kind == task.KindBudget
		if waits && (!e.Done || reviving && comesBack) {
			open++
		}
	}
	if waits {
		open += c.unstored[t.ID.String()]
	}
	if reviving && t.RemainingDeps >= open {
		return t.RemainingDeps // those of a deadline cannot be told apart
	}
	return open
}

// rowsOf returns the minimum and maximum number of dispatch or waiter rows of a task, which depend on
// whether it is claimable.
func rowsOf(t *task.Task) (least, most int) {
	switch t.State {
	case task.Ready:
		return 1, 1
	case task.Pending:
		switch t.Waiting {
		case task.WaitDeps, task.WaitRepair:
			return 0, 0
		case task.WaitSignal, task.WaitChildren:
			if t.Join != task.JoinNone || t.ReadyAt.IsZero() {
				return 0, 0
			}
		}
		return 1, 1
	}
	return 0, 0
}

// claimable checks that a task's claimability and its rows agree (I9).
func (c *checker) claimable(t *task.Task) {
	ds, ws := c.dispatchOf[t.ID], c.waitersOf[t.ID]
	parked := 0
	for _, p := range c.pausedOf[t.ID] {
		if !p.DueAt.IsZero() {
			parked++
		}
		if len(ds)+len(ws) > 0 {
			c.task("I9", t, "is paused, with %d dispatch rows and %d waiter rows", len(ds), len(ws))
		}
	}
	least, most := rowsOf(t)
	if c.pending[ChoreRow{Kind: ChoreRevive, Root: t.ID}] {
		least = 0
	}
	// rest checks finished tasks.
	if n := len(ds) + len(ws) + parked; !t.State.Terminal() && (n < least || n > most) {
		c.task("I9", t, "waits for %q, with %d dispatch rows and %d waiter rows, parked %d times", t.Waiting, len(ds), len(ws), parked)
	}
	if t.CancelRequested && t.State != task.Running && !t.State.Terminal() && t.Undo == nil {
		c.task("I9", t, "was asked to cancel, which only tasks are that run or are being undone")
	}
	for _, d := range ds {
		if d.Queue != t.Queue || d.Group != LaneGroup(t.Options, t.Labels) || d.Type != t.Type || d.Priority != t.Priority || d.ConcurrencyKey != t.DispatchKey() {
			c.task("I9", t, "its dispatch row is of another lane: queue %q, type %q, priority %d, key %q instead of %q, %q, %d, %q",
				d.Queue, d.Type, d.Priority, d.ConcurrencyKey, t.Queue, t.Type, t.Priority, t.DispatchKey())
		}
		if t.State == task.Ready && d.AvailableAt.After(c.Now) {
			c.task("I9", t, "its dispatch row is only due at %v", d.AvailableAt)
		}
	}
	for _, w := range ws {
		if w.Key != t.DispatchKey() {
			c.task("I9", t, "waits for the key %q instead of %q", w.Key, t.DispatchKey())
		}
		if group := LaneGroup(t.Options, t.Labels); w.Queue != t.Queue || w.Type != t.Type || w.Group != group {
			c.task("I9", t, "waits in the lane of queue %q, type %q, group %q instead of %q, %q, %q", w.Queue, w.Type, w.Group, t.Queue, t.Type, group)
		}
		if w.DueAt.After(c.Now) {
			c.task("I9", t, "waits for its key and is only due at %v", w.DueAt)
		}
	}
}

// orphans checks that every row belongs to an existing task.
func (c *checker) orphans() {
	orphan := func(invariant, what string, id task.ID) {
		if _, ok := c.byID[id]; !ok {
			c.report(invariant, id.String(), "%s is of task %s, which does not exist", what, id)
		}
	}
	for _, a := range c.Attempts {
		orphan("I4", "an attempt", a.TaskID)
	}
	for _, d := range c.Decisions {
		orphan("I4", "a decision", d.TaskID)
		if (d.Kind == task.DecideDecompose || d.Kind == task.DecideRepair) != (len(d.ChildIDs) > 0) {
			c.report("I4", d.TaskID.String(), "the decision %s after attempt %d of task %s names %d children", d.Kind, d.AttemptNo, d.TaskID, len(d.ChildIDs))
		}
	}
	for _, s := range c.Steps {
		orphan("I6", "a step", s.TaskID)
	}
	for _, e := range c.Edges {
		orphan("I7", "an edge", e.Task)
	}
	for _, d := range c.Dispatch {
		orphan("I9", "a dispatch row", d.Task)
	}
	for _, w := range c.Waiters {
		orphan("I9", "a waiter row", w.Task)
	}
	for _, p := range c.PausedTasks {
		orphan("I9", "a pause", p.Task)
	}
}

// idempotency checks that an idempotency key names one task of a type (I11).
func (c *checker) idempotency() {
	type named struct{ taskType, key string }
	first := map[named]task.ID{}
	for _, t := range c.Tasks {
		n := named{t.Type, t.IdempotencyKey}
		if t.IdempotencyKey == "" {
			continue
		}
		if other, ok := first[n]; ok {
			c.report("I11", t.ID.String(), "tasks %s and %s of type %s have the same idempotency key %q", other, t.ID, t.Type, t.IdempotencyKey)
			continue
		}
		first[n] = t.ID
	}
}

// keyUse collects the tasks and rows of one key in a snapshot.
type keyUse struct {
	row     *KeyRow
	running []string         // tasks
	due     map[keyLane]bool // lanes with a due dispatch row
	waiting map[keyLane]int  // waiters by lane
}

// keyLane is a lane of a key: waiters of all priorities share one queue.
type keyLane struct{ queue, taskType, group string }

// keys checks concurrency keys (I11): the holders are running tasks, or tasks that hold the key while
// they are undone. Under a key with free room, each lane with waiters has a due dispatch row: a row
// that no worker takes, of another type or a paused queue, then holds up only its own lane. A row of
// tomorrow does not count. Held may exceed the cap after a claim that lowered it.
func (c *checker) keys() {
	uses := c.keyUses()
	for _, key := range sortedKeys(uses) {
		u := uses[key]
		held, limit := 0, 1
		if u.row != nil {
			held, limit = u.row.Held, u.row.Cap
		}
		if held != len(u.running) {
			c.report("I11", key, "key %q is held %d times, and %d tasks run, or are undone, with it: [%s]", key, held, len(u.running), strings.Join(u.running, " "))
		}
		if held > 0 && held >= limit || c.pending[ChoreRow{Kind: ChoreWakeKey, Subject: key}] {
			continue
		}
		lanes := slices.SortedFunc(maps.Keys(u.waiting), func(a, b keyLane) int {
			return cmp.Or(strings.Compare(a.queue, b.queue), strings.Compare(a.taskType, b.taskType), strings.Compare(a.group, b.group))
		})
		for _, l := range lanes {
			if !u.due[l] {
				c.report("I11", key, "key %q has waiters of type %q, group %q in queue %q (%d) and no due dispatch row of that lane, though %d hold it, of %d",
					key, l.taskType, l.group, l.queue, u.waiting[l], held, limit)
			}
		}
	}
}

func (c *checker) keyUses() map[string]*keyUse {
	uses := map[string]*keyUse{}
	use := func(key string) *keyUse {
		if uses[key] == nil {
			uses[key] = &keyUse{due: map[keyLane]bool{}, waiting: map[keyLane]int{}}
		}
		return uses[key]
	}
	for i := range c.Keys {
		use(c.Keys[i].Key).row = &c.Keys[i]
	}
	for _, t := range c.Tasks {
		if t.HoldsKey() {
			u := use(t.ConcurrencyKey)
			u.running = append(u.running, t.ID.String())
		}
	}
	for _, d := range c.Dispatch {
		if d.ConcurrencyKey != "" && !d.AvailableAt.After(c.Now) {
			use(d.ConcurrencyKey).due[keyLane{d.Queue, d.Type, d.Group}] = true
		}
	}
	for _, w := range c.Waiters {
		use(w.Key).waiting[keyLane{w.Queue, w.Type, w.Group}]++
	}
	return uses
}

func sortedKeys(uses map[string]*keyUse) []string {
	var keys []string
	for k := range uses {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}

// jobs checks that the counters of jobs are the sums of their tasks (I12).
func (c *checker) jobs() {
	sums := c.sums
	if sums == nil {
		sums = map[task.ID]task.JobCounters{}
	}
	known := map[task.ID]bool{}
	of := map[task.ID][]*task.Task{}
	for _, j := range c.Jobs {
		known[j.ID] = true
	}
	for i := range c.Tasks {
		t := &c.Tasks[i]
		sums[t.JobID] = sums[t.JobID].Add(task.Count(t.End(), t.Waiting, t.Join, !t.ReadyAt.IsZero()))
		of[t.JobID] = append(of[t.JobID], t)
		if len(c.unstored) > 0 {
			n := c.unstored[t.ID.String()]
			sums[t.JobID] = sums[t.JobID].Add(task.JobCounters{Total: n, Unfinished: n, Movable: n})
		}
		if !t.JobID.IsZero() && !known[t.JobID] {
			c.task("I12", t, "belongs to job %s, which does not exist", t.JobID)
		}
	}
	for i := range c.Jobs {
		j := &c.Jobs[i]
		if c.pending[ChoreRow{Kind: ChoreDeleteJob, Subject: j.ID.String()}] {
			continue
		}
		if !c.partial {
			c.budget(j, of[j.ID])
		}
		id := j.ID.String()
		if n := c.unstored[id]; n > 0 {
			sum := sums[j.ID].Add(task.JobCounters{Total: n, Unfinished: n}) // which of them can move is unknown
			sum.Movable = min(max(sum.Movable, j.Counters.Movable), sum.Movable+n)
			sums[j.ID] = sum
		}
		if j.Counters != sums[j.ID] {
			c.report("I12", id, "job %s counts %+v, and its tasks are %+v", id, j.Counters, sums[j.ID])
		}
		if want := task.JobStateOf(j.Counters, j.CancelRequested); j.State != want {
			c.report("I12", id, "job %s is %s, and its counters say %s", id, j.State, want)
		}
		if j.State.Terminal() == j.FinishedAt.IsZero() {
			c.report("I12", id, "job %s is %s with finished_at %v", id, j.State, j.FinishedAt)
		}
	}
}
