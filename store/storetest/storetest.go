// Package storetest is what every store must do, as a test suite: the
// executable form of the contracts in package store and of the project's
// lease law. A store that passes Run may be put under an engine.
//
// What the suite promises:
//
//   - Every scene starts from an empty store, in a testing/synctest bubble, so
//     that hours cost nothing and no result depends on how fast a machine is.
//     Stores must therefore take their time from time.Now and be opened by
//     Harness.Open inside the bubble.
//   - Every scene ends with a snapshot of all namespaces it used, on which
//     store.Check finds nothing, in which every acknowledged task exists, and
//     which the Reader shows exactly as store.Derive says.
//   - Scenes named R-… are the interleavings of the lease law: the ordered ones
//     are played step by step, the concurrent ones many times over with real
//     goroutines. Run them with -race.
//   - Nothing is skipped. Scenes of an optional interface (store.StepTxer,
//     store.Notifier) belong to the suite of the stores that implement it.
//
// Instants and durations are compared to the microsecond where they are handed
// through, and with a tolerance where the store's clock made them.
//
// The suite asks for behaviour only: no scene knows a table, a statement or a
// field of a store. The package needs the standard library, task and store.
package storetest

import (
	"testing"
	"testing/synctest"

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

	// Kill makes the process of worker w, which joined through s, look dead at
	// once. Nil: in this kind of store only an expired lease tells.
	Kill func(t *testing.T, s store.Store, w store.WorkerID)

	// Repeat is how often a concurrent scene is played. 0: 200.
	Repeat int
}

// scene is one story, told to an empty store.
type scene struct {
	name string
	play func(e *env)
}

// Run plays the whole suite against the stores that h opens.
func Run(t *testing.T, h Harness) {
	if h.Repeat == 0 {
		h.Repeat = 200
	}
	for _, act := range acts(t, h) {
		t.Run(act.name, func(t *testing.T) {
			for _, sc := range act.scenes {
				t.Run(sc.name, func(t *testing.T) {
					synctest.Test(t, func(t *testing.T) {
						e := newEnv(t, h)
						sc.play(e)
						e.verify()
					})
				})
			}
		})
	}
}

// act is a topic of the suite.
type act struct {
	name   string
	scenes []scene
}

// acts returns the topics that stores of this kind have to pass: all, less
// those of the optional interfaces that they do not implement.
func acts(t *testing.T, h Harness) []act {
	all := []act{
		{"Enqueue", enqueueScenes},
		{"Values", valueScenes},
		{"Idempotency", idempotencyScenes},
		{"Job", jobScenes},
		{"Edge", edgeScenes},
		{"Namespace", namespaceScenes},
		{"Moves", moveScenes},
		{"Claim", claimScenes},
		{"Order", orderScenes},
		{"Suspect", suspectScenes},
		{"Heartbeat", heartbeatScenes},
		{"Finish", finishScenes},
		{"FinishGuard", finishGuardScenes},
		{"FinishCancelled", finishCancelledScenes},
		{"Batch", batchScenes},
		{"Many", manyScenes},
		{"Record", recordScenes},
		{"RecordGuard", recordGuardScenes},
		{"Cancel", cancelScenes},
		{"Retry", retryScenes},
		{"Operate", operateScenes},
		{"Key", keyScenes},
		{"KeyWake", keyWakeScenes},
		{"KeyCap", keyCapScenes},
		{"Reap", reapScenes},
		{"Worker", workerScenes},
		{"Deadline", deadlineScenes},
		{"Read", readScenes},
		{"List", listScenes},
		{"Race", raceScenes},
		{"Concurrent", concurrentScenes},
		{"Crossing", crossingScenes},
		{"Walk", walkScenes},
		{"Guard", guardScenes},
		{"GuardMore", guardMoreScenes},
		{"GuardTwin", guardTwinScenes},
		{"TwinRow", twinRowScenes},
	}
	synctest.Test(t, func(t *testing.T) {
		s := h.Open(t)
		if _, ok := s.(store.StepTxer); ok {
			all = append(all, act{"StepTx", stepTxScenes}, act{"GuardStepTx", guardStepTxScenes})
		}
		if _, ok := s.(store.Notifier); ok {
			all = append(all, act{"Notify", notifyScenes}, act{"GuardNotify", guardNotifyScenes})
		}
	})
	return all
}
