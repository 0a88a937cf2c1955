// Package storetest is what every store must do, as a test suite: the executable
// form of package store and docs/leases.md. A store that passes Run may be used.
//
// What the suite promises:
//
//   - Every case starts from an empty store, in a testing/synctest bubble, so
//     that hours cost nothing and no result depends on how fast a machine is.
//     Stores must therefore take their time from time.Now and be opened by
//     Harness.Open inside the bubble.
//   - Every case ends with a snapshot of all namespaces it used, on which
//     store.Check finds nothing, in which every acknowledged task exists, and
//     which the Reader shows exactly as store.Derive says.
//   - Cases named R-… are the interleavings of docs/leases.md: ordered ones
//     run step by step, the concurrent ones many times over with real
//     goroutines. Run them with -race.
//   - Nothing is skipped, unless Harness.Sample or Share asks for a part. Cases of an optional interface (store.StepTxer,
//     store.Notifier, store.WaitingClaimer, store.JobCounter, store.OrphanReader, store.TypeReader) belong to the suite of the stores
//     that implement it.
//
// Instants and durations are compared to the microsecond where they are handed
// through, and with a tolerance where the store's clock made them.
//
// The files are named after the verbs of the port; each holds the cases of a
// verb beside the helpers that only they need. What several verbs share is in
// env.go (the fixture of a case), env_worker.go, draft.go and assert.go.
//
// The suite asks for behaviour only: no case knows a table, a statement or a
// field of a store. The package needs the standard library, task and store.
package storetest

import (
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/goweaver/weaver/store"
)

// Harness opens stores of one kind.
type Harness struct {
	// Name of the kind, for messages.
	Name string

	// Open returns a fresh, empty, migrated store that t.Cleanup closes. It is
	// called inside a synctest bubble.
	Open func(t *testing.T) store.Store

	// Second returns another handle on the data of first, as another process
	// would have it, closed by t.Cleanup. Nil: first serves as the second too.
	Second func(t *testing.T, first store.Store) store.Store

	// Live returns two handles on a fresh store in real time, outside of a bubble, for a
	// kind whose handles are not notified of each other in one. Nil: they do.
	Live func(t *testing.T) (first, second store.Store)

	// SQLTx: the functions of StepTx get a *sql.Tx if they want one, and something else if
	// not.
	SQLTx bool

	// Kill makes the process of worker w, which joined through s, look dead at
	// once. Nil: in this kind of store only an expired lease shows it.
	Kill func(t *testing.T, s store.Store, w store.WorkerID)

	// ShiftClock makes the machine's clock jump by d for this handle, back if d
	// is negative. Nil: this kind of store does not read this machine's clock.
	ShiftClock func(t *testing.T, s store.Store, d time.Duration)

	// Repeat is how often a concurrent case runs. 0: 200.
	Repeat int

	// Sample plays the core topics whole and one case in so many of the others,
	// always the same ones: for a quick look while one works. 0: all, which alone
	// shows that a store may be used.
	Sample int

	// Share plays one case in so many of those, Part which one. 0: all.
	Share, Part int
}

// Large sets how many dependents or children the large cases make, 1,250 if it is not
// called: more than one transaction of the store moves. Tests of a store whose
// transactions move fewer rows than usual call it before they run.
func Large(n int) { fanned = n }

// testCase is one statement about stores, and what shows it on an empty store.
type testCase struct {
	name string
	run  func(e *env)
}

// suite is a topic.
type suite struct {
	name  string
	cases []testCase
}

// Run runs the whole suite against the stores that h opens.
func Run(t *testing.T, h Harness) {
	if h.Repeat == 0 {
		h.Repeat = 200
	}
	core, others := suites(t, h)
	n, seen := 0, 0
	for i, s := range slices.Concat(core, others) {
		t.Run(s.name, func(t *testing.T) {
			for _, c := range s.cases {
				if i >= len(core) {
					if seen++; h.Sample > 1 && seen%h.Sample != 0 {
						continue
					}
				}
				if n++; h.Share > 1 && n%h.Share != h.Part {
					continue
				}
				t.Run(c.name, func(t *testing.T) {
					if s.name == betweenHandles && h.Live != nil {
						playLive(t, h)
						return
					}
					synctest.Test(t, func(t *testing.T) {
						e := newEnv(t, h)
						c.run(e)
						e.verify()
					})
				})
			}
		})
	}
}

// playLive is what one handle hears of another in real time.
func playLive(t *testing.T, h Harness) {
	first, second := h.Live(t)
	h.Open = func(*testing.T) store.Store { return first }
	h.Second = func(*testing.T, store.Store) store.Store { return second }
	e := newEnv(t, h)
	e.isTold()
	e.verify()
}

// betweenHandles is the topic of what one handle hears of another.
const betweenHandles = "NotifyOthers"

// suites returns the topics that stores of this kind have to pass: all, less
// those of the optional interfaces that they do not implement. The core topics are
// about the life of a task without needs, calls or a job, which reaches most
// statements of a store in little time, and about concurrent calls.
func suites(t *testing.T, h Harness) (core, others []suite) {
	core = []suite{
		{"Enqueue", enqueueCases},
		{"Claim", claimCases},
		{"ClaimSchema", claimSchemaCases},
		{"Heartbeat", heartbeatCases},
		{"Finish", finishCases},
		{"FinishLease", finishLeaseCases},
		{"FinishMany", finishManyCases},
		{"Record", recordCases},
		{"RecordLease", recordLeaseCases},
		{"Cancel", cancelCases},
		{"KeysWaiting", keyWaitingCases},
		{"Concurrent", concurrentCases},
		{"ConcurrentSubmit", concurrentSubmitCases},
		{"ConcurrentGraph", concurrentGraphCases},
		{"ConcurrentWaits", concurrentWaitCases},
	}
	others = []suite{
		{"EnqueueAgain", enqueueAgainCases},
		{"EnqueueJob", enqueueJobCases},
		{"Values", valueCases},
		{"Texts", textCases},
		{"ClaimLanes", claimLaneCases},
		{"ClaimQuarantine", claimQuarantineCases},
		{"ClaimBound", claimBoundCases},
		{"FinishBatch", finishBatchCases},
		{"Checkpoint", checkpointCases},
		{"Reap", reapCases},
		{"ReapCrash", reapCrashCases},
		{"ReapEligible", reapEligibleCases},
		{"ReapDeadline", reapDeadlineCases},
		{"Operate", operateCases},
		{"OperateSeen", operateSeenCases},
		{"Cleanup", cleanupCases},
		{"KeepSteps", keepStepsCases},
		{"UndoPhase", undoPhaseCases},
		{"Undo", undoCases},
		{"UndoChildren", undoChildrenCases},
		{"UndoVerbs", undoVerbsCases},
		{"UndoTasks", undoTaskCases},
		{"Retry", retryCases},
		{"RetryEdges", retryEdgeCases},
		{"Reschedule", rescheduleCases},
		{"Pause", pauseCases},
		{"PauseType", pauseTypeCases},
		{"PauseTask", pauseTaskCases},
		{"Rerun", rerunCases},
		{"Coalesce", coalesceCases},
		{"Bounded", boundedCases},
		{"Retain", retainCases},
		{"RetainEdges", retainEdgeCases},
		{"RetainValues", retainValueCases},
		{"DeleteJob", deleteJobCases},
		{"Forget", forgetCases},
		{"Expiry", expiryCases},
		{"Bucket", bucketCases},
		{"Redact", redactCases},
		{"Read", readCases},
		{"ReadQueues", readQueueCases},
		{"ReadGraph", readGraphCases},
		{"ReadAudit", readAuditCases},
		{"ReadWorkers", readWorkerCases},
		{"ReadCounts", readCountCases},
		{"List", listCases},
		{"ListFilters", listFilterCases},
		{"Keys", keyCases},
		{"KeysWake", keyWakeCases},
		{"KeysLanes", keyLaneCases},
		{"Edges", edgeCases},
		{"IfFailed", ifFailedCases},
		{"IfFailedRetry", ifFailedRetryCases},
		{"AllowFailure", allowFailureCases},
		{"Decompose", decomposeCases},
		{"DecomposeEnds", decomposeEndCases},
		{"DecomposeRetry", decomposeRetryCases},
		{"AddDependency", dependencyCases},
		{"Decision", decisionCases},
		{"Repair", repairCases},
		{"Blobs", blobCases},
		{"BlobsCollect", blobCollectCases},
		{"Signals", signalCases},
		{"Calls", callCases},
		{"CallEnds", callEndCases},
		{"CallRetries", callRetryCases},
		{"Jobs", jobCases},
		{"BudgetAttempts", budgetAttemptCases},
		{"BudgetCost", budgetCostCases},
		{"BudgetIdle", budgetIdleCases},
		{"BudgetRaise", budgetRaiseCases},
		{"Together", togetherCases},
		{"Namespaces", namespaceCases},
		{"NamespaceWorkers", namespaceWorkerCases},
		{"Verbs", verbCases},
		{"Walk", walkCases},
	}
	if h.ShiftClock != nil {
		others = append(others, suite{"Clock", clockCases})
	}
	synctest.Test(t, func(t *testing.T) {
		s := h.Open(t)
		if _, ok := s.(store.WaitingClaimer); ok {
			others = append(others, suite{"ClaimWait", claimWaitCases})
		}
		if _, ok := s.(store.StepTxer); ok {
			others = append(others, suite{"StepTx", stepTxCases}, suite{"StepTxJob", stepTxJobCases}, suite{"UndoTx", undoTxCases})
			if h.SQLTx {
				others = append(others, suite{"StepTxSQL", inSQLTx(stepTxCases)})
			}
		}
		if _, ok := s.(store.Notifier); ok {
			others = append(others, suite{"Notify", notifyCases}, suite{betweenHandles, notifyOtherCases})
		}
		if _, ok := s.(store.JobCounter); ok {
			others = append(others, suite{"CountJob", countJobCases})
		}
		if _, ok := s.(store.EventReader); ok {
			others = append(others, suite{"Events", eventCases})
		}
		if _, ok := s.(store.EventFeed); ok {
			others = append(others, suite{"Feed", feedCases})
		}
		if _, ok := s.(store.ValueWalker); ok {
			others = append(others, suite{"WalkValues", valueWalkCases})
		}
		if _, ok := s.(store.OrphanReader); ok {
			others = append(others, suite{"ReadOrphans", readOrphanCases})
		}
		if _, ok := s.(store.StatsKeeper); ok {
			others = append(others, suite{"Stats", statCases}, suite{"StatsMerge", statMergeCases})
		}
		if _, ok := s.(store.TypeReader); ok {
			others = append(others, suite{"Types", typeCases})
		}
		if _, ok := s.(store.BlobReader); ok {
			others = append(others, suite{"ReadBlobs", readBlobCases})
		}
	})
	return core, others
}
