package storetest

import (
	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/task"
)

var operateSeenCases = []testCase{
	{"R16 a command acts on the epoch that was seen, and on every epoch without one", func(e *env) {
		for _, c := range seenCommands {
			for _, seen := range []func(epoch int64) int64{func(epoch int64) int64 { return epoch }, func(int64) int64 { return 0 }} {
				id := c.reach(e)
				e.operate(c.cmd(id, store.Seen{Epoch: seen(e.task(id).Epoch)}))
			}
		}
	}},
	{"R16 a command on another epoch than the one that was seen changes nothing", func(e *env) {
		for _, c := range seenCommands {
			id := c.reach(e)
			for _, d := range []int64{-1, 1, 1000} {
				e.commandRefused(c.cmd(id, store.Seen{Epoch: e.task(id).Epoch + d}), store.ErrChanged)
			}
		}
	}},
	{"R16 a command on a task that another worker claimed since changes nothing", func(e *env) {
		id := e.one()
		e.finish(retry(e.a.take(id), 0))
		seen := store.Seen{Epoch: e.task(id).Epoch}
		c := e.b.take(id)
		for _, force := range []bool{false, true} {
			e.commandRefused(store.CancelTask{Audit: admin, Seen: seen, Task: id, Force: force}, store.ErrChanged)
		}
		e.finish(success(c))
		e.commandRefused(store.DeleteTask{Audit: admin, Seen: seen, Task: id}, store.ErrChanged)
	}},
	{"R16 an unknown task is not found, whatever epoch was seen", func(e *env) {
		for _, c := range seenCommands {
			e.commandRefused(c.cmd(e.newID(), store.Seen{Epoch: 7}), store.ErrNotFound)
		}
	}},
}

// seenCommands are the commands that name the epoch on which the operator
// decided, each with a task on which it acts.
var seenCommands = []struct {
	reach func(e *env) task.ID
	cmd   func(id task.ID, seen store.Seen) store.Command
}{
	{ranOnce(func(c store.Claimed) store.Finish { return retry(c, 0) }), func(id task.ID, seen store.Seen) store.Command {
		return store.CancelTask{Audit: admin, Seen: seen, Task: id}
	}},
	{runs, func(id task.ID, seen store.Seen) store.Command {
		return store.CancelTask{Audit: admin, Seen: seen, Task: id}
	}},
	{runs, func(id task.ID, seen store.Seen) store.Command {
		return store.CancelTask{Audit: admin, Seen: seen, Task: id, Force: true}
	}},
	{ranOnce(dead), func(id task.ID, seen store.Seen) store.Command {
		return store.RetryTask{Audit: admin, Seen: seen, Task: id}
	}},
	{ranOnce(block), func(id task.ID, seen store.Seen) store.Command {
		return store.UnblockTask{Audit: admin, Seen: seen, Task: id}
	}},
	{ranOnce(success), func(id task.ID, seen store.Seen) store.Command {
		return store.DeleteTask{Audit: admin, Seen: seen, Task: id}
	}},
}

// runs returns a running task of epoch two.
func runs(e *env) task.ID {
	id := ranOnce(func(c store.Claimed) store.Finish { return retry(c, 0) })(e)
	e.a.take(id)
	return id
}

// ranOnce returns a task whose second attempt ended, so that an epoch before
// its own is none of the special ones.
func ranOnce(end func(store.Claimed) store.Finish) func(e *env) task.ID {
	return func(e *env) task.ID {
		id := e.one()
		e.finish(retry(e.a.take(id), 0))
		e.finish(end(e.a.take(id)))
		return id
	}
}
