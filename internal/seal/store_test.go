package seal_test

import (
	"encoding/json"
	"reflect"
	"runtime"
	"slices"
	"testing"
	"time"

	"github.com/goweaver/weaver/codec/aesgcm"
	"github.com/goweaver/weaver/internal/seal"
	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/store/memstore"
	"github.com/goweaver/weaver/store/storetest"
	"github.com/goweaver/weaver/task"
)

// A sealing store conforms to the port. Behaviour that depends on values, above all on whether
// two are equal, is the same as without a codec.
func TestStore(t *testing.T) {
	times, share := 20, casesShare
	if testing.Short() {
		times, share = 2, 10
	}
	below := map[store.Store]*memstore.Store{}
	storetest.Run(t, storetest.Harness{
		Name:   "sealed memstore",
		Repeat: times,
		Share:  share,
		Open: func(t *testing.T) store.Store {
			s := memstore.New()
			c := seal.Store(s, sealer(t, keys(t, "k1")...))
			below[c] = s
			return c
		},
		Kill:       func(_ *testing.T, s store.Store, w store.WorkerID) { below[s].Kill(w) },
		ShiftClock: func(_ *testing.T, s store.Store, d time.Duration) { below[s].ShiftClock(d) },
	})
}

const ns = "acme-test"

func keys(t testing.TB, ids ...string) (all []aesgcm.Key) {
	t.Helper()
	for _, id := range ids {
		k, err := aesgcm.NewKey(id)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, k)
	}
	return all
}

func sealer(t testing.TB, keys ...aesgcm.Key) *seal.Sealer {
	t.Helper()
	c, err := aesgcm.New(keys...)
	if err != nil {
		t.Fatal(err)
	}
	return &seal.Sealer{Codec: c, Namespace: ns}
}

// running returns a store with one running task, and its lease.
func running(t *testing.T, s store.Store) task.Lease {
	t.Helper()
	n := task.New{
		ID: task.NewIDs(nil).New(), Type: "acme.test.seal.v1", Queue: task.DefaultQueue, Input: json.RawMessage(`1`), SchemaVersion: 1,
		Priority: task.DefaultPriority, MaxAttempts: 5,
	}
	if _, err := s.Enqueue(t.Context(), ns, nil, store.Submission{Tasks: []task.New{n}}); err != nil {
		t.Fatal(err)
	}
	got, err := s.Claim(t.Context(), ns, store.ClaimRequest{Worker: "w", LeaseID: task.NewLeaseID(), TTL: time.Minute, Limit: 1, Types: map[string]int{n.Type: 1}})
	if err != nil || len(got.Tasks) != 1 {
		t.Fatalf("Claim = %v, %v", got.Tasks, err)
	}
	return got.Tasks[0].Lease
}

// After a change of keys the sealed form of a value changes. Comparisons use the value.
func TestEqualAcrossKeys(t *testing.T) {
	t.Parallel()
	k := keys(t, "k1", "k2")
	below := memstore.New()
	before, after := seal.Store(below, sealer(t, k[0])), seal.Store(below, sealer(t, k...))
	lease := running(t, before)

	send := func(s store.Store, payload string) store.CommandResult {
		t.Helper()
		got, err := s.Operate(t.Context(), ns, store.SendSignal{Task: lease.Task, Name: "go", Key: "1", Payload: json.RawMessage(payload)})
		if err != nil {
			t.Fatal(err)
		}
		return got[0]
	}
	if got := send(before, `"a"`); got.Err != nil || got.Existing {
		t.Fatalf("the first signal: %+v", got)
	}
	if got := send(after, `"a"`); got.Err != nil || !got.Existing || got.State != task.Running {
		t.Errorf("the same signal under another key: %+v, want Existing", got)
	}
	if got := send(after, `"b"`); got.Err == nil {
		t.Errorf("another payload under another key: %+v, want ErrConflict", got)
	}

	record := func(s store.Store, value string) store.RecordResult {
		t.Helper()
		got, err := s.Record(t.Context(), ns, store.Record{Lease: lease, Step: &task.Step{
			Name: "s", Kind: task.KindStep, State: task.StepCompleted, AttemptNo: 1, Try: 1, Value: json.RawMessage(value),
		}})
		if err != nil {
			t.Fatal(err)
		}
		return got[0]
	}
	if got := record(before, `"a"`); got.Err != nil {
		t.Fatal(got.Err)
	}
	if got := record(after, `"a"`); got.Err != nil || string(got.Step.Value) != `"a"` {
		t.Errorf("the same step under another key: %s, %v", got.Step.Value, got.Err)
	}
	if got := record(after, `"b"`); got.Err == nil {
		t.Error("another value of the step was taken")
	}
}

// keeper is a store whose workers have sessions.
type keeper struct{ store.Store }

func (keeper) Session(_ string, id store.WorkerID) (store.Session, bool) {
	return store.Session{Last: time.Unix(int64(len(id)), 0)}, true
}

// An engine with sealed values must not rely on leases longer than other engines do.
func TestSessionsOfTheStoreBelow(t *testing.T) {
	below := memstore.New()
	if _, ok := seal.Store(below, nil).Session(ns, "w"); ok {
		t.Error("the store below keeps no sessions")
	}
	if got, ok := seal.Store(keeper{below}, nil).Session(ns, "w"); !ok || !got.Last.Equal(time.Unix(1, 0)) {
		t.Errorf("the session is %v, %v", got, ok)
	}
}

// plain lists the methods of the port that go to the store below unchanged: they have no
// values, or callers use the store below.
var plain = []string{
	"Ready", "Join", "Leave", "Heartbeat", "Reap", // Core
	"Transient", "Jobs", "Graph", "Needs", // Flow
	"Blobs", "RewriteValues", "Types", "Scan", "Scrub", // Data: see Capabilities
	"Collect", "Publish", "Session", "Migrate", "MigrationStatus", "Warnings", // Ops
	"Overview", "Audit", "Orphans", "WriteStats", "ReadStats", "Limits", "Notify", "Wake", // Observe
}

// A new method of the port must be sealed, or listed as one without values.
func TestEachMethodIsSealedOrPlain(t *testing.T) {
	sealed := reflect.TypeOf(seal.Store(memstore.New(), nil))
	for i := range sealed.NumMethod() {
		m := sealed.Method(i)
		pc := m.Func.Pointer()
		file, _ := runtime.FuncForPC(pc).FileLine(pc)
		if promoted := file == "<autogenerated>"; promoted != slices.Contains(plain, m.Name) {
			t.Errorf("%s goes straight to the store below: %v; want it in the list of those that do, or not", m.Name, promoted)
		}
	}
}
