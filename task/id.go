package task

import (
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/oklog/ulid/v2"
)

// ID identifies a task or a job: a ULID, 16 bytes in stores and 26 characters
// for people. IDs sort by creation time (millisecond, then order of creation
// inside one process), so "newest first" is descending ID order.
type ID [16]byte

// ParseID reads the 26-character form. It accepts lower case.
func ParseID(s string) (ID, error) {
	u, err := ulid.ParseStrict(s)
	if err != nil {
		return ID{}, fmt.Errorf("%q is not an id: want its 26 characters, as they were printed", s)
	}
	return ID(u), nil
}

// String returns the 26-character form, or "" for the zero ID.
func (id ID) String() string {
	if id.IsZero() {
		return ""
	}
	return ulid.ULID(id).String()
}

// IsZero reports whether id is unset.
func (id ID) IsZero() bool { return id == ID{} }

// Time returns the time of creation, in milliseconds.
func (id ID) Time() time.Time { return ulid.Time(ulid.ULID(id).Time()).UTC() }

// FirstID returns the smallest ID created at or after an instant. Every ID with an earlier Time sorts before it. It
// returns false if the instant is too late for an ID.
func FirstID(at time.Time) (ID, bool) {
	if at.Before(time.UnixMilli(0)) {
		return ID{}, true
	}
	if at.After(ulid.Time(ulid.MaxTime())) {
		return ID{}, false
	}
	ms := ulid.Timestamp(at)
	if ulid.Time(ms).Before(at) {
		ms++
	}
	var id ulid.ULID
	if err := id.SetTime(ms); err != nil {
		return ID{}, false
	}
	return ID(id), true
}

// Compare orders ids by creation: -1, 0 or +1.
func (id ID) Compare(other ID) int { return ulid.ULID(id).Compare(ulid.ULID(other)) }

// MarshalText implements encoding.TextMarshaler.
func (id ID) MarshalText() ([]byte, error) { return []byte(id.String()), nil }

// UnmarshalText implements encoding.TextUnmarshaler. Empty text is the zero ID.
func (id *ID) UnmarshalText(b []byte) error {
	if len(b) == 0 {
		*id = ID{}
		return nil
	}
	parsed, err := ParseID(string(b))
	if err != nil {
		return err
	}
	*id = parsed
	return nil
}

// IDs generates IDs. One source per process keeps IDs of the same millisecond in order of creation. The zero value is
// not usable; see NewIDs.
type IDs struct {
	mu      sync.Mutex
	entropy *ulid.MonotonicEntropy
}

// NewIDs returns a source that reads randomness from r; nil means crypto/rand. A seeded r makes IDs repeatable if the
// clock is repeatable too (testing/synctest).
func NewIDs(r io.Reader) *IDs {
	if r == nil {
		r = rand.Reader
	}
	return &IDs{entropy: ulid.Monotonic(r, 0)}
}

// New returns a new ID with the time of time.Now.
func (s *IDs) New() ID {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := ulid.Now()
	id, err := ulid.New(now, s.entropy)
	if err != nil {
		// The monotonic entropy overflowed within one millisecond, 2^80 IDs after its random start. Continue with the
		// next millisecond.
		id = ulid.MustNew(now+1, s.entropy)
	}
	return ID(id)
}

// LeaseID is the random half of a lease. Two claims never share one, even
// when a restored store hands out the same epoch twice.
type LeaseID [16]byte

// NewLeaseID returns a random lease id.
func NewLeaseID() LeaseID {
	var id LeaseID
	if _, err := rand.Read(id[:]); err != nil {
		panic("crypto/rand: " + err.Error()) // never happens, as documented
	}
	return id
}

// IsZero reports whether id is unset.
func (id LeaseID) IsZero() bool { return id == LeaseID{} }

// String returns 32 hexadecimal characters, or "" for the zero value.
func (id LeaseID) String() string {
	if id.IsZero() {
		return ""
	}
	return hex.EncodeToString(id[:])
}

// MarshalText implements encoding.TextMarshaler.
func (id LeaseID) MarshalText() ([]byte, error) { return []byte(id.String()), nil }

// UnmarshalText implements encoding.TextUnmarshaler. It accepts the format of String.
func (id *LeaseID) UnmarshalText(text []byte) error {
	var read LeaseID
	if len(text) == 0 {
		*id = read
		return nil
	}
	if n, err := hex.Decode(read[:], text[:min(len(text), 2*len(read))]); err != nil || n != len(read) || len(text) != 2*n {
		return fmt.Errorf("%.40q is not a lease ID: want %d hexadecimal characters", text, 2*len(read))
	}
	*id = read
	return nil
}

// Lease is the right to run one attempt of a task. Epoch gives order and is
// shown to handlers; ID gives uniqueness; Generation names the life of the
// store that granted it (it changes when a store is restored from a backup).
// Stores compare all of them before a lease holder writes (R1, R2 and R17 of docs/leases.md).
type Lease struct {
	Task       ID      `json:"task_id"`
	Epoch      int64   `json:"epoch"`
	ID         LeaseID `json:"lease_id"`
	Generation string  `json:"generation"`
}
