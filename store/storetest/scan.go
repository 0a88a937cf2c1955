package storetest

import (
	"cmp"
	"slices"

	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/task"
)

// scanAgrees compares the parts of the store with those of the snapshot and checks them. It applies to stores with a
// scanner.
func (e *env) scanAgrees(snap *store.Snapshot) {
	e.Helper()
	if !e.s.Capabilities().Has(store.CanScan) {
		return
	}
	var all store.Snapshot
	var jobs, keys int
	err := e.s.Scan(e.Context(), e.ns, func(p *store.Part) error {
		for _, v := range store.CheckPart(p) {
			e.Errorf("store.CheckPart of %s: %v", p.Of, v)
		}
		e.check(p.Generation == snap.Generation && !p.Now.Before(snap.Now), "a part is of generation %q at %v, the snapshot of %q at %v",
			p.Generation, p.Now, snap.Generation, snap.Now)
		switch p.Of {
		case store.PartOfTasks:
			all.Tasks = append(all.Tasks, p.Tasks...)
			all.Edges = append(all.Edges, p.Edges...)
			all.Attempts = append(all.Attempts, p.Attempts...)
			all.Decisions = append(all.Decisions, p.Decisions...)
			all.Steps = append(all.Steps, p.Steps...)
			all.Signals = append(all.Signals, p.Signals...)
			all.Checkpoints = append(all.Checkpoints, p.Checkpoints...)
			all.Dispatch = append(all.Dispatch, p.Dispatch...)
			all.Waiters = append(all.Waiters, p.Waiters...)
			all.Artifacts = append(all.Artifacts, p.Artifacts...)
			all.Blobs = append(all.Blobs, p.Blobs...)
		case store.PartOfJobs:
			all.Jobs = append(all.Jobs, p.Jobs...)
			for _, sum := range p.Sums {
				jobs += sum.Total
			}
		case store.PartOfKeys:
			all.Keys = append(all.Keys, p.Keys...)
			keys += len(p.Waiters)
			e.equal("the paused queues of a part", p.Paused, snap.Paused)
		default:
			e.Errorf("a part is of %q", p.Of)
		}
		return nil
	})
	e.require(err == nil, "Scan: %v", err)
	slices.SortFunc(all.Waiters, func(a, b store.WaiterRow) int {
		return cmp.Or(cmp.Compare(a.Key, b.Key), a.DueAt.Compare(b.DueAt), a.Task.Compare(b.Task))
	})
	e.sameReferred(all.Blobs, snap)
	e.sameRows("artifacts by part", all.Artifacts, snap.Artifacts)
	e.sameRows("tasks by part", all.Tasks, snap.Tasks)
	e.sameRows("edges by part", all.Edges, snap.Edges)
	e.sameRows("attempts by part", all.Attempts, snap.Attempts)
	e.sameRows("decisions by part", all.Decisions, snap.Decisions)
	e.sameRows("steps by part", all.Steps, snap.Steps)
	e.sameRows("signals by part", all.Signals, snap.Signals)
	e.sameRows("checkpoints by part", all.Checkpoints, snap.Checkpoints)
	e.sameRows("dispatch rows by part", all.Dispatch, snap.Dispatch)
	e.sameRows("waiters by part", all.Waiters, snap.Waiters)
	e.sameRows("jobs by part", all.Jobs, snap.Jobs)
	e.sameRows("keys by part", all.Keys, snap.Keys)
	e.equal("waiters with their keys", keys, len(snap.Waiters))
	e.equal("tasks with their jobs", jobs, len(of(snap.Tasks, func(t task.Task) bool { return !t.JobID.IsZero() })))
}

// sameReferred expects the parts to contain exactly the live blobs of the snapshot. A blob that several parts refer
// to is in each of them once. Blobs of drafts are in no part.
func (e *env) sameReferred(parts []store.BlobRow, snap *store.Snapshot) {
	e.Helper()
	rows := make(map[task.ID]store.BlobRow)
	for _, b := range parts {
		rows[b.ID] = b
	}
	for _, b := range snap.Blobs {
		got, found := rows[b.ID]
		e.check(found == (b.State == task.BlobLive) || len(snap.Chores) > 0, "the %s blob %v is in a part: %v", b.State, b.ID, found)
		e.check(!found || got == b, "a part has the blob %+v, the snapshot %+v", got, b)
		delete(rows, b.ID)
	}
	e.check(len(rows) == 0, "parts have blobs that the snapshot has not: %v", rows)
	if !e.s.Capabilities().Has(store.CanListBlobs) {
		return
	}
	uses, err := e.s.Blobs(e.Context(), e.ns, store.BlobFilter{Limit: len(snap.Blobs) + 1})
	e.require(err == nil && len(uses) == len(snap.Blobs), "Blobs: %d of %d, %v", len(uses), len(snap.Blobs), err)
	for i := range uses {
		e.equal("a blob that is read by itself", uses[i].BlobRow, snap.Blobs[i])
		for _, v := range store.CheckBlob(&uses[i]) {
			e.Errorf("store.CheckBlob: %v", v)
		}
	}
}
