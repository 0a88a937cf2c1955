// Package storetest is the conformance suite for stores: the executable form of package store and docs/leases.md. A
// store that passes Run may be used.
//
// The suite guarantees:
//
//   - Every case starts from an empty store, in a testing/synctest bubble. Hours
//     cost nothing, and results do not depend on the speed of the machine. Stores
//     must take their time from time.Now, and Harness.Open must open them inside
//     the bubble.
//   - Every case ends with a snapshot of all namespaces it used. store.Check finds
//     no error in it, every acknowledged task exists in it, and the Reader agrees
//     with store.Derive.
//   - Cases named R-… are the interleavings of docs/leases.md: ordered
//     interleavings run step by step, concurrent ones many times with real
//     goroutines. Run them with -race.
//   - No case is skipped, unless Harness.Sample or Share selects a part. Cases of a
//     capability (store.Capabilities) apply to the stores that have it.
//
// Times and durations that the store passes through are compared to the microsecond. Those that depend on the store's
// clock are compared with a tolerance.
//
// The files are named after the verbs of the port; each holds the cases of a verb and their helpers. Shared helpers
// are in env.go (the fixture of a case), env_worker.go, draft.go and assert.go.
//
// The suite tests behaviour only: no case knows a table, a statement or a field of a store. The package depends on
// the standard library, task and store.
package storetest

import (
	"flag"
	"hash/fnv"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/goweaver/weaver/store"
)

// Harness opens stores of one kind.
type Harness struct {
	// Name of the kind, for messages.
	Name string

	// Open returns a new, empty, migrated store that t.Cleanup closes. It is called inside a synctest bubble.
	Open func(t *testing.T) store.Store

	// Second returns another handle on the data of first, as another process would open it, closed by t.Cleanup. Nil:
	// first serves as the second too.
	Second func(t *testing.T, first store.Store) store.Store

	// Live returns two handles on a new store in real time, outside a bubble, for stores whose handles do not notify
	// each other in a bubble. Nil: they do.
	Live func(t *testing.T) (first, second store.Store)

	// SQLTx: StepTx passes a *sql.Tx to functions that want one, and another type otherwise.
	SQLTx bool

	// Kill makes the process of worker w, which joined through s, look dead at once. Nil: this kind of store detects
	// death only by an expired lease.
	Kill func(t *testing.T, s store.Store, w store.WorkerID)

	// Alone: only one process can open the store, as in a browser, so it knows all workers that live.
	Alone bool

	// ShiftClock makes the machine's clock jump by d for this handle; negative d moves it back. Nil: this kind of
	// store does not read this machine's clock.
	ShiftClock func(t *testing.T, s store.Store, d time.Duration)

	// Repeat is the number of runs of a concurrent case; default 200.
	Repeat int

	// Sample runs the core topics completely and one of every Sample cases of the others, always the same ones. Use
	// it for quick feedback. The default runs all cases; only that qualifies a store.
	Sample int

	// Share divides the cases selected by Sample into that many parts by their names; Part selects the part that
	// runs. Default: all cases.
	Share, Part int
}

// Large sets the number of dependents or children in the large cases, by default 1,250: more than one transaction of
// the store moves. Tests of a store with smaller transactions call it before Run.
func Large(n int) { fanned = n }

// testCase is one requirement on stores, and a test of it on an empty store.
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
	seen := 0
	for i, s := range slices.Concat(core, others) {
		t.Run(s.name, func(t *testing.T) {
			for _, c := range s.cases {
				if i >= len(core) {
					if seen++; h.Sample > 1 && seen%h.Sample != 0 {
						continue
					}
				}
				if h.Share > 1 && partOf(s.name+"/"+c.name, h.Share) != h.Part {
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

// Named reports whether -run names topics of the suite.
func Named() bool { return strings.Contains(flag.Lookup("test.run").Value.String(), "/") }

// partOf returns the part, of share parts, in which a case runs.
func partOf(name string, share int) int {
	h := fnv.New32a()
	_, _ = h.Write([]byte(name)) // never an error
	return int(h.Sum32() % uint32(share))
}

// playLive runs the cases between handles in real time.
func playLive(t *testing.T, h Harness) {
	first, second := h.Live(t)
	h.Open = func(*testing.T) store.Store { return first }
	h.Second = func(*testing.T, store.Store) store.Store { return second }
	e := newEnv(t, h)
	e.isTold()
	e.verify()
}

// betweenHandles is the topic of notices between handles.
const betweenHandles = "NotifyOthers"

// suites returns the topics for stores of this kind: all except those of capabilities that the store does not
// have. The core topics cover the life of a task without needs, calls or a job, which reaches most statements of
// a store in little time, and concurrent calls.
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
		can := h.Open(t).Capabilities()
		if can.Has(store.CanWait) {
			others = append(others, suite{"ClaimWait", claimWaitCases})
		}
		if can.Has(store.CanStepTx) {
			others = append(others, suite{"StepTx", stepTxCases}, suite{"StepTxJob", stepTxJobCases}, suite{"UndoTx", undoTxCases})
			if h.SQLTx {
				others = append(others, suite{"StepTxSQL", inSQLTx(stepTxCases)})
			}
		}
		if can.Has(store.CanNotify) {
			others = append(others, suite{"Notify", notifyCases}, suite{betweenHandles, notifyOtherCases})
		}
		if can.Has(store.CanCountJobs) {
			others = append(others, suite{"CountJob", countJobCases})
		}
		if can.Has(store.CanKeepEvents) {
			others = append(others, suite{"Events", eventCases})
		}
		if can.Has(store.CanKeepFeed) {
			others = append(others, suite{"Feed", feedCases})
		}
		if can.Has(store.CanRewriteValues) {
			others = append(others, suite{"WalkValues", valueWalkCases})
		}
		if can.Has(store.CanFindOrphans) {
			others = append(others, suite{"ReadOrphans", readOrphanCases})
		}
		if can.Has(store.CanPublish) {
			others = append(others, suite{"Publish", publishCases})
		}
		if can.Has(store.CanSchedule) {
			others = append(others, suite{"Schedules", scheduleCases})
		}
		if can.Has(store.CanLimit) {
			others = append(others, suite{"Limits", limitCases}, suite{"Line", lineCases})
		}
		if can.Has(store.CanKeepStats) {
			others = append(others, suite{"Stats", statCases}, suite{"StatsMerge", statMergeCases})
		}
		if can.Has(store.CanKeepTypes) {
			others = append(others, suite{"Types", typeCases})
		}
		if can.Has(store.CanListBlobs) {
			others = append(others, suite{"ReadBlobs", readBlobCases})
		}
	})
	return core, others
}
