package sqlstore

import (
	"sync"
	"time"

	"github.com/goweaver/weaver/internal/lane"
	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/task"
)

// Effects collects the consequences of an operation after its commit: the notices for
// listeners and the updates of this process's caches.
type Effects struct {
	NS     string
	Notice store.Notice
	Lanes  []lane.Seen
	Closed []Closed // lanes closed by limits
	Opens  bool     // a running task of a limit has ended

	memory  *Memory // nil in a transaction of a caller
	claimed []claimMade
	ended   []leaseEnds // tasks that left the state running, by lease
	answer  bool        // the waiting claim is answered even without tasks
}

// Closed is a lane whose limits let no task start before an instant.
type Closed struct {
	Key   lane.Key
	Until int64
	Full  bool // it waits for the end of a running task
}

// ApplyLanes records in the cache of the lanes what the committed operation saw.
func (fx *Effects) ApplyLanes(c *lane.Cache) {
	c.Observe(fx.NS, fx.Lanes)
	if fx.Opens {
		c.OpenFull(fx.NS)
	}
	for i := range fx.Closed {
		c.Close(fx.NS, fx.Closed[i].Key, fx.Closed[i].Until, fx.Closed[i].Full)
	}
}

// NewEffects returns the effects of an operation that begins. memory is nil in a transaction
// of a caller, which claims and ends nothing.
func NewEffects(ns string, memory *Memory) Effects { return Effects{NS: ns, memory: memory} }

// Answer makes the commit answer a waiting claim even without tasks.
func (fx *Effects) Answer() { fx.answer = true }

// Answered reports whether the operation was a claim that got tasks, or that must be answered
// without tasks.
func (fx *Effects) Answered() bool { return len(fx.claimed) > 0 || fx.answer }

// Memory caches facts about this process's claims with running tasks, and the store's
// generations. For each claim it has the number of running tasks, so that the last finish can
// delete the claim's row, and the shared columns of its attempts. The cache only saves work:
// the reaper deletes rows that it misses.
type Memory struct {
	// Forgetful disables the cache of generations: no signal announces changes by other
	// processes.
	Forgetful bool

	mu          sync.Mutex
	claims      map[claimKey]Claim
	generations map[string]string // by namespace
	mixed       map[mixedKey]time.Time
	restoring   bool               // an operation of the open transaction changes a generation
	limited     map[string]*limits // by namespace
}

// limits returns the cached limits of a namespace at a revision, or nil.
func (m *Memory) limits(ns string, revision int64) *limits {
	if revision == 0 {
		return new(limits)
	}
	if m == nil {
		return nil
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if l := m.limited[ns]; l != nil && l.revision == revision {
		return l
	}
	return nil
}

func (m *Memory) setLimits(ns string, l *limits) {
	if m == nil {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.limited == nil {
		m.limited = make(map[string]*limits)
	}
	m.limited[ns] = l
}

// countsRunning reports whether a limit that this process knows counts running tasks.
func (m *Memory) countsRunning(ns string) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	l := m.limited[ns]
	return l != nil && l.counts
}

// claimKey identifies a claim: lease IDs are unique in a namespace.
type claimKey struct {
	ns    string
	lease task.LeaseID
}

// mixedKey identifies a lane of a namespace.
type mixedKey struct {
	ns  string
	key lane.Key
}

// mixedFor is the time for which a lane is assumed to have due rows of tasks that were leased
// before.
const mixedFor = time.Second

// Mixed reports whether a claim recently met such a row at the head of a lane.
func (fx *Effects) Mixed(k lane.Key) bool {
	m := fx.memory
	m.mu.Lock()
	defer m.mu.Unlock()
	at, ok := m.mixed[mixedKey{fx.NS, k}]
	return ok && time.Since(at) < mixedFor
}

// NoteMixed records that a claim met such a row.
func (fx *Effects) NoteMixed(k lane.Key) {
	m := fx.memory
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.mixed == nil || len(m.mixed) >= maxClaims {
		m.mixed = make(map[mixedKey]time.Time)
	}
	m.mixed[mixedKey{fx.NS, k}] = time.Now()
}

// Claim holds the shared facts of the tasks of one claim call.
type Claim struct {
	Tasks     int
	Worker    string
	StartedAt int64 // in microseconds
}

type claimMade struct {
	lease task.LeaseID
	claim Claim
}

type leaseEnds struct {
	lease task.LeaseID
	tasks int
}

// maxClaims bounds the cache, because claims reaped by other processes never end here.
const maxClaims = 1 << 16

// Apply records the results of a committed operation.
func (m *Memory) Apply(fx *Effects) {
	if len(fx.claimed)+len(fx.ended) == 0 {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if len(m.claims) >= maxClaims {
		clear(m.claims)
	}
	if m.claims == nil {
		m.claims = make(map[claimKey]Claim)
	}
	for i := range fx.claimed {
		m.claims[claimKey{fx.NS, fx.claimed[i].lease}] = fx.claimed[i].claim
	}
	for _, e := range fx.ended {
		key := claimKey{fx.NS, e.lease}
		if claim, ok := m.claims[key]; ok && claim.Tasks > e.tasks {
			claim.Tasks -= e.tasks
			m.claims[key] = claim
		} else {
			delete(m.claims, key)
		}
	}
}

// claim returns the cached claim whose tasks run.
func (m *Memory) claim(key claimKey) (Claim, bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	c, ok := m.claims[key]
	return c, ok
}

// ForgetGenerations clears the cached generations, because another connection committed or an
// operation changed one.
func (m *Memory) ForgetGenerations() {
	m.mu.Lock()
	defer m.mu.Unlock()
	clear(m.generations)
}

// Begun is called before the operations of a transaction. By then the outcome of the previous
// transaction is known, whether it was committed or not.
func (m *Memory) Begun() {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.restoring {
		clear(m.generations)
		m.restoring = false
	}
}

// Claimed records a claim that got tasks.
func (fx *Effects) Claimed(lease task.LeaseID, c Claim) {
	fx.claimed = append(fx.claimed, claimMade{lease, c})
}

// Claim returns the cached claim whose tasks run.
func (fx *Effects) Claim(lease task.LeaseID) (Claim, bool) {
	return fx.memory.claim(claimKey{fx.NS, lease})
}

// Ended records that a task of a claim left the state running. It reports whether it was the
// last running task. It returns false if another process made the claim.
func (fx *Effects) Ended(lease task.LeaseID) (last bool) {
	if !fx.Opens && fx.memory.countsRunning(fx.NS) {
		fx.Opens, fx.Notice.Due = true, true
	}
	claim, ok := fx.Claim(lease)
	for i := len(fx.ended) - 1; i >= 0; i-- {
		if e := &fx.ended[i]; e.lease == lease {
			e.tasks++
			return ok && e.tasks >= claim.Tasks
		}
	}
	fx.ended = append(fx.ended, leaseEnds{lease, 1})
	return ok && claim.Tasks <= 1
}

// Generation returns the cached generation of a namespace, or "".
func (fx *Effects) Generation() string {
	m := fx.memory
	if m == nil {
		return ""
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.generations[fx.NS]
}

// RememberGeneration caches a generation until another connection commits or an operation
// changes it.
func (fx *Effects) RememberGeneration(gen string) {
	m := fx.memory
	if m == nil || m.Forgetful {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.restoring {
		return
	}
	if m.generations == nil {
		m.generations = make(map[string]string)
	}
	m.generations[fx.NS] = gen
}

// ChangeGeneration clears the cached generations. Nothing is cached until the next
// transaction, because this transaction may be rolled back.
func (fx *Effects) ChangeGeneration() {
	m := fx.memory
	m.mu.Lock()
	defer m.mu.Unlock()
	clear(m.generations)
	m.restoring = true
}
