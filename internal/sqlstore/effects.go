package sqlstore

import (
	"sync"
	"time"

	"github.com/goweaver/weaver/internal/lane"
	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/task"
)

// Effects is what follows from an operation once it is committed: what
// listeners are notified of, and what the caches of this process learn.
type Effects struct {
	NS     string
	Notice store.Notice
	Lanes  []lane.Seen

	memory  *Memory // nil in a transaction of a caller
	claimed []claimMade
	ended   []leaseEnds // tasks that left running, by lease
	answer  bool        // the waiting claim that this is of need not get tasks to be answered
}

// NewEffects returns those of an operation that begins. memory is nil in a
// transaction of a caller, which claims and ends nothing.
func NewEffects(ns string, memory *Memory) Effects { return Effects{NS: ns, memory: memory} }

// Answer has a waiting claim answered by the commit whether or not it got tasks.
func (fx *Effects) Answer() { fx.answer = true }

// Answered reports whether the operation was a claim that got tasks, or that
// should be answered all the same.
func (fx *Effects) Answered() bool { return len(fx.claimed) > 0 || fx.answer }

// Memory is what a process remembers of the claims that it made and whose tasks
// still run: how many, so that the last finish can delete the claim's row, and
// what their attempts have in common; and of the store's generations. It only
// saves work: rows that it misses are deleted by the reaper.
type Memory struct {
	// Forgetful keeps no generation: nothing says when another process changes one.
	Forgetful bool

	mu          sync.Mutex
	claims      map[claimKey]Claim
	generations map[string]string // by namespace
	mixed       map[mixedKey]time.Time
	restoring   bool // an operation of the open transaction changes one
}

// claimKey names a claim: ids are unique in a namespace.
type claimKey struct {
	ns    string
	lease task.LeaseID
}

// mixedKey names a lane of a namespace.
type mixedKey struct {
	ns  string
	key lane.Key
}

// mixedFor is how long a lane is taken to have due rows of tasks that were leased before.
const mixedFor = time.Second

// Mixed reports whether a claim met such a row at the head of a lane lately.
func (fx *Effects) Mixed(k lane.Key) bool {
	m := fx.memory
	m.mu.Lock()
	defer m.mu.Unlock()
	at, ok := m.mixed[mixedKey{fx.NS, k}]
	return ok && time.Since(at) < mixedFor
}

// NoteMixed remembers that a claim met one.
func (fx *Effects) NoteMixed(k lane.Key) {
	m := fx.memory
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.mixed == nil || len(m.mixed) >= maxClaims {
		m.mixed = make(map[mixedKey]time.Time)
	}
	m.mixed[mixedKey{fx.NS, k}] = time.Now()
}

// Claim is what the tasks of one claim call have in common.
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

// maxClaims bounds what is remembered: claims that other processes reaped
// never end here.
const maxClaims = 1 << 16

// Apply remembers what a committed operation did.
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

// claim returns what is known of a claim whose tasks run.
func (m *Memory) claim(key claimKey) (Claim, bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	c, ok := m.claims[key]
	return c, ok
}

// ForgetGenerations forgets the remembered generations: another connection
// commits, or one of them was changed.
func (m *Memory) ForgetGenerations() {
	m.mu.Lock()
	defer m.mu.Unlock()
	clear(m.generations)
}

// Begun is called before the operations of a transaction: what the one before
// changed is known now, whether it was committed or not.
func (m *Memory) Begun() {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.restoring {
		clear(m.generations)
		m.restoring = false
	}
}

// Claimed notes a claim that got tasks.
func (fx *Effects) Claimed(lease task.LeaseID, c Claim) {
	fx.claimed = append(fx.claimed, claimMade{lease, c})
}

// Claim returns what is known of a claim whose tasks run.
func (fx *Effects) Claim(lease task.LeaseID) (Claim, bool) {
	return fx.memory.claim(claimKey{fx.NS, lease})
}

// Ended notes that a task of a claim left running. It reports whether it was
// the last one: not, when more of them run or another process claimed it.
func (fx *Effects) Ended(lease task.LeaseID) (last bool) {
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

// Generation returns the remembered generation of a namespace, or "".
func (fx *Effects) Generation() string {
	m := fx.memory
	if m == nil {
		return ""
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.generations[fx.NS]
}

// RememberGeneration remembers what was read, until another connection commits
// or an operation changes it.
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

// ChangeGeneration forgets the remembered generations. Until the next
// transaction none is remembered: this one may yet be rolled back.
func (fx *Effects) ChangeGeneration() {
	m := fx.memory
	m.mu.Lock()
	defer m.mu.Unlock()
	clear(m.generations)
	m.restoring = true
}
