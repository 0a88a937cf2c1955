package linearizability_test

import (
	"fmt"
	"strings"

	"github.com/anishathalye/porcupine"

	"github.com/goweaver/weaver/task"
)

// leaseVerb is the kind of a call on one task.
type leaseVerb string

const (
	leaseClaim  leaseVerb = "claim"
	leaseBeat   leaseVerb = "heartbeat"
	leaseFinish leaseVerb = "finish"
	leaseCancel leaseVerb = "cancel"
	leaseForce  leaseVerb = "force"
	leaseRetry  leaseVerb = "retry"
	leaseReap   leaseVerb = "reap"
	leaseRead   leaseVerb = "read"
)

// leaseCall is one operation on one task.
type leaseCall struct {
	verb    leaseVerb
	task    task.ID
	lease   task.Lease   // of a heartbeat and a finish; for a claim only the ID
	outcome task.Outcome // of a finish
	long    bool         // a claim or heartbeat for an hour: no reaper may take the lease
}

// leaseReply is the store's answer.
type leaseReply struct {
	err   leaseError
	none  bool       // a claim that did not get the task, or a reap that did not take its lease
	state task.State // after the call; for a read, the current state
	lease task.Lease // granted by a claim; for a read, the current epoch and ID
	asked bool       // the answer of a heartbeat or cancel: the task was asked to end
}

// leaseError is the sentinel of a refused call.
type leaseError string

const (
	leaseAccepted leaseError = ""
	leaseLost     leaseError = "lease lost"
	leaseConflict leaseError = "conflict"
	leaseState    leaseError = "state"
)

// taskState is the sequential model's state of a task. Before its first claim the task is ready with epoch 0.
type taskState struct {
	state task.State
	epoch int64
	lease task.LeaseID // zero: free
	long  bool         // the lease ends in an hour; otherwise it has already expired
	asked bool         // asked to end as cancelled
	over  string       // "id=outcome;" for every lease that its holder finished
}

// holds reports whether a lease is current: task, epoch and ID match.
func (s taskState) holds(l task.Lease) bool {
	return s.state == task.Running && s.epoch == l.Epoch && s.lease == l.ID
}

// freed returns the state after the lease ended, with the epoch raised by by.
func (s taskState) freed(to task.State, by int64) taskState {
	s.state, s.lease, s.long, s.asked = to, task.LeaseID{}, false, s.asked && !to.Terminal() && to != task.Ready
	s.epoch += by
	return s
}

// leaseStep is the sequential model. It reports whether the store may give this answer to this call in this state,
// and returns the next state.
func leaseStep(s taskState, c leaseCall, r leaseReply) (bool, taskState) {
	switch c.verb {
	case leaseClaim:
		return s.claim(c, r)
	case leaseBeat:
		if r.err == leaseLost || !s.holds(c.lease) {
			return r.err == leaseLost && !s.holds(c.lease), s
		}
		ok := r.asked == s.asked
		s.long = s.long || c.long
		return ok, s
	case leaseFinish:
		return s.finish(c, r)
	case leaseCancel, leaseForce:
		return s.cancel(c, r)
	case leaseRetry:
		if s.state != task.Cancelled && s.state != task.Failed {
			return r.err == leaseState, s
		}
		return r.err == leaseAccepted && r.state == task.Ready, s.freed(task.Ready, 1)
	case leaseReap:
		if s.state != task.Running || s.long || r.none {
			// An expired lease must be taken, and no other may be.
			return r.none && (s.state != task.Running || s.long), s
		}
		to := task.Ready
		if s.asked {
			to = task.Cancelled
		}
		return r.state == to, s.freed(to, 1)
	case leaseRead:
		return r.state == s.state && r.lease.Epoch == s.epoch && r.lease.ID == s.lease, s
	}
	panic("no verb: " + string(c.verb))
}

// claim takes a claimable task only, and raises the epoch by one.
func (s taskState) claim(c leaseCall, r leaseReply) (bool, taskState) {
	if s.state != task.Ready || r.none {
		return s.state != task.Ready && r.none, s
	}
	ok := r.lease.Epoch == s.epoch+1 && r.lease.ID == c.lease.ID
	s.state, s.epoch, s.lease, s.long = task.Running, r.lease.Epoch, r.lease.ID, c.long
	return ok, s
}

// forgedEpoch is added to the epoch of a lease to forge a lease that was never granted: both ID and epoch must match.
// No task of a history reaches this many epochs.
const forgedEpoch = 1_000

// finish is accepted from the lease holder and again when repeated unchanged. Another finish under the same lease is
// a conflict; all other leases are lost.
func (s taskState) finish(c leaseCall, r leaseReply) (bool, taskState) {
	if !s.holds(c.lease) {
		mine := c.lease.ID.String() + "="
		switch {
		case c.lease.Epoch >= forgedEpoch && strings.Contains(s.over, mine):
			return true, s // the rules allow either answer for a repeated report
		case strings.Contains(s.over, mine+string(c.outcome)+";"):
			return r.err == leaseAccepted, s
		case strings.Contains(s.over, mine):
			return r.err == leaseConflict, s
		}
		return r.err == leaseLost, s
	}
	to, by := task.Ready, int64(0)
	switch {
	case c.outcome == task.OutcomeSuccess:
		to = task.Succeeded
	case s.asked:
		to = task.Cancelled
	case c.outcome == task.OutcomeReleased:
		by = 1
	}
	ok := r.err == leaseAccepted && r.state == to
	s.over += c.lease.ID.String() + "=" + string(c.outcome) + ";"
	return ok, s.freed(to, by)
}

// cancel leaves an ended task unchanged. A running task is asked to end, or its lease is revoked by force. Any other
// task ends at once.
func (s taskState) cancel(c leaseCall, r leaseReply) (bool, taskState) {
	switch {
	case s.state.Terminal():
		return r.err == leaseState, s
	case s.state == task.Running && c.verb == leaseCancel:
		s.asked = true
		return r.err == leaseAccepted && r.asked, s
	case s.state == task.Running:
		return r.err == leaseAccepted && r.state == task.Cancelled, s.freed(task.Cancelled, 1)
	}
	return r.err == leaseAccepted && r.state == task.Cancelled, s.freed(task.Cancelled, 0)
}

// leaseModel is the model in porcupine's form, checked task by task.
var leaseModel = porcupine.Model{
	Partition: leasePartition,
	Init:      func() any { return taskState{state: task.Ready} },
	Step: func(state, in, out any) (bool, any) {
		return leaseStep(state.(taskState), in.(leaseCall), out.(leaseReply))
	},
	DescribeOperation: func(in, out any) string { return describeLease(in.(leaseCall), out.(leaseReply)) },
}

func leasePartition(history []porcupine.Operation) [][]porcupine.Operation {
	var parts [][]porcupine.Operation
	index := map[task.ID]int{}
	for _, o := range history {
		id := o.Input.(leaseCall).task
		i, ok := index[id]
		if !ok {
			i = len(parts)
			index[id] = i
			parts = append(parts, nil)
		}
		parts[i] = append(parts[i], o)
	}
	return parts
}

func describeLease(c leaseCall, r leaseReply) string {
	text := string(c.verb)
	if !c.lease.ID.IsZero() {
		text += fmt.Sprintf(" lease %.6s of epoch %d", c.lease.ID, c.lease.Epoch)
	}
	if c.outcome != task.OutcomeNone {
		text += " as " + string(c.outcome)
	}
	if c.long {
		text += " for long"
	}
	switch {
	case r.err != leaseAccepted:
		return text + ": " + string(r.err)
	case r.none:
		return text + ": nothing"
	}
	text += ": ok " + string(r.state)
	if !r.lease.ID.IsZero() || r.lease.Epoch > 0 {
		text += fmt.Sprintf(", lease %.6s of epoch %d", r.lease.ID, r.lease.Epoch)
	}
	if r.asked {
		text += ", asked to end"
	}
	return text
}
