package sqlite_test

import (
	"context"
	"fmt"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/goweaver/weaver/internal/faults/disktest"
	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/store/sqlite"
	"github.com/goweaver/weaver/task"
)

// A process's caches (lanes, claims, generations, waiting claims) change only after the
// commit. After a disk failure at any one operation they therefore agree with the file. The
// store finds each due task without another enqueue, answers waiting claims, and keeps exactly
// the leases in the file. A second process sees the same.
func TestMemoryAgreesWithTheFileAfterADiskFault(t *testing.T) {
	if testing.Short() {
		t.Skip("make test runs this")
	}
	t.Parallel()
	for name, df := range map[string]diskFault{
		"a write fails":                    {err: syscall.EIO, torn: true},
		"a write inside a statement fails": {err: syscall.EIO, cache: smallCache},
		"writes fail until it is mended":   {err: syscall.ENOSPC, lasts: true, cache: smallCache},
		"a sync fails":                     {counts: disktest.Sync, err: syscall.EIO},
		"syncs fail until it is mended":    {counts: disktest.Sync, err: syscall.EIO, lasts: true},
		"a truncation fails":               {counts: disktest.Truncate, err: syscall.EIO},
		"no space to allocate":             {counts: disktest.Allocate, err: syscall.ENOSPC},
	} {
		for _, beside := range []string{"alone", "beside transactions of the user", "beside another process"} {
			t.Run(name+"/"+beside, func(t *testing.T) {
				inBubble(t, func(t *testing.T) { df.sweepMemory(t, beside) })
			})
		}
	}
}

// sweepMemory plays the script with a fault at each point, or at some points.
func (df diskFault) sweepMemory(t *testing.T, beside string) {
	t.Helper()
	dry := startMemory(t, df, nil, beside)
	dry.memoryScript()
	for _, err := range dry.led.errs() {
		t.Fatalf("on a disk that works: %v", err)
	}
	points, played, faults, errs := dry.disk.Count(df.counts), 0, 0, 0
	dry.agrees("on a disk that works")
	sample := memoryPoints
	if diskFull {
		sample = points
	}
	step := spread(points, sample)
	for n := 1 + step/2; n <= points; n += step {
		m := startMemory(t, df, df.plan(n), beside)
		m.memoryScript()
		faults += m.disk.Faults()
		m.disk.Fail(nil)
		errs += len(m.led.errs())
		m.agrees(fmt.Sprintf("%s %d fails (%v), lasts %v, %s", df.counts, n, df.err, df.lasts, beside))
		played++
	}
	t.Logf("%d of %d points, %d faults, %d errors reported", played, points, faults, errs)
	if faults == 0 && points > 1 {
		t.Error("no operation failed: the test sees nothing")
	}
	if errs == 0 && df.lasts { // a single fault may affect only a waiting claim
		t.Error("the disk failed until it was mended, and no caller got an error")
	}
}

// memoryRig is a rig whose callers remember their answers.
type memoryRig struct {
	*rig
	beside string
	other  *sqlite.DB // another process on the file, or nil

	mu     sync.Mutex
	leases map[task.ID]task.Lease // the last lease that a caller got for a task
	ended  []task.ID              // ended tasks in the listeners' notices
	wake   chan struct{}          // of the waiting claims, as in the engine
	stop   func()
}

const waitingQueue = "waiting"

// startMemory opens a database for a fault, with a claimer that waits in the store for tasks
// of waitingQueue.
func startMemory(t *testing.T, df diskFault, plan disktest.Plan, beside string) *memoryRig {
	t.Helper()
	m := &memoryRig{rig: df.start(t, nil), beside: beside, leases: make(map[task.ID]task.Lease), wake: make(chan struct{}, 1)}
	if beside == "beside another process" {
		m.openOther()
	}
	if err := m.db.Join(t.Context(), fixNS, store.WorkerInfo{ID: "w", Name: "host:1", TTL: hour}); err != nil {
		t.Fatal(err)
	}
	unlisten, _ := m.db.Notify(fixNS, nil, m.notified)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		m.claimWaiting(ctx)
	}()
	m.stop = sync.OnceFunc(func() {
		cancel()
		<-done
		unlisten()
	})
	synctest.Wait()
	m.disk.Fail(plan)
	return m
}

func (m *memoryRig) openOther() {
	m.Helper()
	var err error
	if m.other, err = sqlite.Open(m.Context(), m.path); err != nil {
		m.Fatalf("open the file as another process does: %v", err)
	}
	m.Cleanup(m.closeOther)
}

func (m *memoryRig) closeOther() {
	if m.other == nil {
		return
	}
	if err := m.other.Close(); err != nil {
		m.Errorf("Close of the other process: %v", err)
	}
	m.other = nil
}

// notified handles a notice like the engine.
func (m *memoryRig) notified(n store.Notice) {
	m.mu.Lock()
	m.ended = append(m.ended, n.Tasks...)
	m.mu.Unlock()
	if n.Due || n.External {
		select {
		case m.wake <- struct{}{}:
		default:
		}
	}
}

// claimWaiting claims the tasks of waitingQueue like an engine. It waits in the store, claims
// again when it is woken, and looks up a claim whose answer is an error. It does not poll.
func (m *memoryRig) claimWaiting(ctx context.Context) {
	for ctx.Err() == nil {
		req := fixClaim("w", 10)
		req.LeaseID, req.TTL, req.Queues = m.leaseID(), hour, map[string]int{waitingQueue: 10}
		req.Wait, req.Wake = 24*hour, m.wake
		res, err := m.db.Claim(ctx, fixNS, req)
		for err != nil && ctx.Err() == nil {
			time.Sleep(time.Millisecond) // short, where the engine's pause is long
			req.Again = true
			res, err = m.db.Claim(ctx, fixNS, req)
		}
		m.took(res.Tasks)
	}
}

func (m *memoryRig) took(claimed []store.Claimed) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for i := range claimed {
		m.leases[claimed[i].Task.ID] = claimed[i].Lease
	}
}

func (m *memoryRig) lease(id task.ID) task.Lease {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.leases[id]
}

// grab claims up to n tasks of the default queue.
func (m *memoryRig) grab(n int) (claimed []store.Claimed) {
	req := fixClaim("w", n)
	req.LeaseID, req.TTL, req.Queues = m.leaseID(), hour, map[string]int{task.DefaultQueue: n}
	_ = m.led.do(fmt.Sprint("claim ", n), nil, func() error {
		res, err := m.db.Claim(m.Context(), fixNS, req)
		claimed = res.Tasks
		return err
	})
	m.took(claimed)
	return claimed
}

func onWaitingQueue(n *task.New) { n.Queue = waitingQueue }

// memoryScript plays every kind of call whose commit changes the caches, alone and in groups
// in which one call reads the writes of another.
func (m *memoryRig) memoryScript() {
	m.enqueue("five", m.submission(5))
	m.enqueue("a later one", m.submission(1, func(n *task.New) { n.Delay = time.Minute }))
	a := m.grab(3)
	m.enqueue("two for the claim that waits", m.submission(2, onWaitingQueue))
	synctest.Wait()
	m.beat(a)
	m.neighbour("first")
	job := m.jobOf(3)
	job.Tasks[1].Queue = waitingQueue
	m.enqueue("a job", job)
	b := m.grab(10)                                                     // no row of the lane is left
	gone := m.submission(1, long, func(n *task.New) { n.Priority = 7 }) // the only row of its lane
	m.enqueue("one that is cancelled in a group", gone)
	m.neighbour("second") // so the claim of the group reads the lanes again, without that lane
	m.together(
		func() { m.cancel(gone.Tasks[0].ID) },
		func() { m.grab(10) },
		func() { m.enqueue("one in a group", m.submission(1, func(n *task.New) { n.Priority = 3 })) },
		func() { m.enqueue("one that waits, in a group", m.submission(1, onWaitingQueue)) },
	)
	if len(a) == 3 {
		m.finish(task.OutcomeSuccess, task.Succeeded, a[0])
		m.together(
			func() { m.finish(task.OutcomeSuccess, task.Succeeded, b...) }, // of the job: the waiting claim has one of its tasks
			func() { m.finish(task.OutcomeFailure, task.Failed, a[1]) },
			func() { m.grab(1) },
		)
		m.beat(a[2:])
	}
	m.checkpoint()
	m.together(
		func() { m.restore() },
		func() { m.grab(10) },
		func() { m.enqueue("two after the restore", m.submission(2)) },
	)
	m.enqueue("the last", m.submission(2, long))
	m.grab(1)
	synctest.Wait()
}

// neighbour commits on another connection, after which lanes are read again.
func (m *memoryRig) neighbour(note string) {
	switch {
	case m.other != nil:
		f := fixtureOn(m.T, m.other)
		f.ids = m.ids
		err := f.submit(m.Context(), f.drafts(1))
		if err != nil {
			m.Errorf("the other process, whose disk works: %v", err)
		}
	case m.beside != "alone":
		m.inTx(note)
		if held := m.grab(1); len(held) == 1 {
			m.stepTx(held[0], note+", a step's")
		}
	}
}

// restore ends all earlier leases.
func (m *memoryRig) restore() {
	_ = m.led.do("a restore", nil, func() error {
		res, err := m.db.Operate(m.Context(), fixNS, store.Restored{})
		if err == nil {
			err = res[0].Err
		}
		return err
	})
}
