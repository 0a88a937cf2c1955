package sqlite_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing/synctest"
	"time"

	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/store/sqlite"
	"github.com/goweaver/weaver/task"
)

// agrees compares the store's caches with the file while the clock stands.
func (m *memoryRig) agrees(at string) {
	m.Helper()
	defer m.forget()
	defer m.close()
	defer m.closeOther()
	defer m.stop()
	m.waitIdle()
	m.keepsItsLeases(at, m.db)
	m.findsWhatIsDue(at)
	m.secondProcess(at)
	m.endsItsClaims(at)
}

// forget drops the disk's history, which is not used here and would stay in memory until the
// end of the test.
func (m *memoryRig) forget() {
	m.hist, m.led.now = nil, nil
	if _, err := m.disk.Record(); err != nil {
		m.Fatal(err)
	}
}

// waitIdle waits until no call is running, including repetitions of failed claims.
func (m *memoryRig) waitIdle() {
	time.Sleep(2 * time.Millisecond)
	synctest.Wait()
}

func (m *memoryRig) snapshot() *store.Snapshot {
	m.Helper()
	snap, err := m.db.Snapshot(m.Context(), fixNS)
	if err != nil {
		m.Fatalf("Snapshot on a disk that works again: %v", err)
	}
	return snap
}

// keepsItsLeases checks that a heartbeat renews exactly the leases in the file.
func (m *memoryRig) keepsItsLeases(at string, db *sqlite.DB) {
	m.Helper()
	snap := m.snapshot()
	req := store.HeartbeatRequest{Worker: "w", TTL: hour}
	var want []bool
	for i := range snap.Tasks {
		t := &snap.Tasks[i]
		l := m.lease(t.ID)
		leased := t.State == task.Running
		if leased && (l.ID != t.LeaseID || l.Epoch != t.Epoch) {
			m.Errorf("%s: task %v runs under lease %v, and its last caller has %v", at, t.ID, t.LeaseID, l)
		}
		if l.ID.IsZero() {
			continue
		}
		req.Leases = append(req.Leases, l)
		want = append(want, leased && l.Generation == snap.Generation)
	}
	beats, err := db.Heartbeat(m.Context(), fixNS, req)
	if err != nil {
		m.Fatalf("%s: Heartbeat: %v", at, err)
	}
	for i, b := range beats {
		if b.Lost == want[i] {
			m.Errorf("%s: the heartbeat of %v says lost = %v; the file says leased = %v", at, req.Leases[i], b.Lost, want[i])
		}
	}
	m.mu.Lock()
	ended := slices.Clone(m.ended)
	m.mu.Unlock()
	for _, id := range ended {
		if i := slices.IndexFunc(snap.Tasks, func(t task.Task) bool { return t.ID == id }); i < 0 || !snap.Tasks[i].State.Terminal() {
			m.Errorf("%s: listeners were notified of the end of task %v, which the file does not have", at, id)
		}
	}
}

// due returns the claimable tasks of a queue, and the time until the next one; 0: there is no
// next one.
func due(snap *store.Snapshot, queue string) (ids []task.ID, next time.Duration) {
	queues := make(map[task.ID]string)
	for i := range snap.Tasks {
		queues[snap.Tasks[i].ID] = snap.Tasks[i].Queue
	}
	for _, row := range snap.Dispatch {
		wait := row.AvailableAt.Sub(snap.Now)
		switch {
		case queues[row.Task] != queue:
		case wait <= 0:
			ids = append(ids, row.Task)
		case next == 0 || wait < next:
			next = wait
		}
	}
	slices.SortFunc(ids, task.ID.Compare)
	return ids, next
}

// findsWhatIsDue checks that one claim takes every due task of the file, and returns the time
// of the next one. The waiting claim has taken its own tasks already.
func (m *memoryRig) findsWhatIsDue(at string) {
	m.Helper()
	snap := m.snapshot()
	if left, _ := due(snap, waitingQueue); len(left) > 0 {
		m.Errorf("%s: tasks %v are due, and the claim that waits for them is not answered", at, left)
	}
	want, next := due(snap, task.DefaultQueue)
	m.takesAll(at, want, next)
	if next > 0 {
		time.Sleep(next)
		want, next = due(m.snapshot(), task.DefaultQueue)
		m.takesAll(at+", a minute later", want, next)
	}
}

func (m *memoryRig) takesAll(at string, want []task.ID, next time.Duration) {
	m.Helper()
	req := fixClaim("w", 1000)
	req.LeaseID, req.TTL = m.leaseID(), hour
	res, err := m.db.Claim(m.Context(), fixNS, req)
	if err != nil {
		m.Fatalf("%s: Claim on a disk that works again: %v", at, err)
	}
	m.took(res.Tasks)
	var got []task.ID
	for i := range res.Tasks {
		got = append(got, res.Tasks[i].Task.ID)
	}
	slices.SortFunc(got, task.ID.Compare)
	if !slices.Equal(got, want) {
		m.Errorf("%s: a claim got the tasks %v, and due are %v", at, got, want)
	}
	if next > 0 && (res.Next < 0 || res.Next > next) {
		m.Errorf("%s: a claim says that the next task is due in %v, and it is in %v", at, res.Next, next)
	}
}

// secondProcess checks that another process sees the same leases, and that each process
// notices the other's enqueues.
func (m *memoryRig) secondProcess(at string) {
	m.Helper()
	if m.other == nil {
		m.openOther()
	}
	m.keepsItsLeases(at+", by another process", m.other)
	f := fixtureOn(m.T, m.other)
	f.ids = m.ids
	if extra := f.claim("v", 1000); len(extra) > 0 {
		m.Errorf("%s: another process finds %d due tasks more", at, len(extra))
	}
	m.takesAll(at+", after an enqueue of another process", f.enqueue(1), 0)
	f.db = m.db
	woken := f.enqueue(1, onWaitingQueue)[0]
	m.waitIdle()
	if m.lease(woken).ID.IsZero() {
		m.Errorf("%s: a claim that waits is not answered when a task is enqueued", at)
	}
}

// endsItsClaims checks that the row of a claim exists exactly while one of its tasks runs,
// regardless of failed calls. Leases from before a restore end with a cancel.
func (m *memoryRig) endsItsClaims(at string) {
	m.Helper()
	for {
		snap := m.snapshot()
		running := make(map[string]bool) // lease IDs
		var next *task.Task
		for i := range snap.Tasks {
			if t := &snap.Tasks[i]; t.State == task.Running {
				running[strings.ToUpper(fmt.Sprintf("%x", t.LeaseID[:]))] = true
				next = t
			}
		}
		rows, err := column(m, m.db.DB(), "SELECT hex(lease_id) FROM weaver_claims ORDER BY 1")
		if err != nil {
			m.Fatal(err)
		}
		if want := slices.Sorted(maps.Keys(running)); !slices.Equal(rows, want) {
			m.Errorf("%s: the file has the claims %v, and tasks run under %v", at, rows, want)
			return
		}
		if next == nil {
			break
		}
		m.end(at, snap, next)
		m.waitIdle() // the waiting claim may have got a dependent
		if left, _ := due(m.snapshot(), task.DefaultQueue); len(left) > 0 {
			m.takesAll(at+", at the end", left, 0)
		}
	}
	if _, bad, err := m.view(); err != nil || len(bad) > 0 {
		m.Errorf("%s: the file is not in order: %v %v", at, err, bad)
	}
}

func (m *memoryRig) end(at string, snap *store.Snapshot, t *task.Task) {
	m.Helper()
	l := m.lease(t.ID)
	if l.Generation != snap.Generation {
		res, err := m.db.Operate(m.Context(), fixNS, store.CancelTask{Task: t.ID, Force: true})
		if err != nil || res[0].Err != nil {
			m.Fatalf("%s: cancel of a task whose lease a restore ended: %+v, %v", at, res, err)
		}
		return
	}
	res, err := m.db.Finish(m.Context(), fixNS, store.Finish{Lease: l, Outcome: task.OutcomeSuccess, Output: json.RawMessage(`1`), CodeVersion: 1})
	if err != nil || res[0].Err != nil {
		m.Fatalf("%s: Finish under a lease that the file has: %+v, %v", at, res, err)
	}
}
