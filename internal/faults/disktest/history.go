package disktest

import (
	"maps"
	"math/rand/v2"
	"slices"
)

// History is the sequence of operations on a disk. A position counts operations: the
// history up to position n consists of the first n.
type History struct {
	disk    *Disk
	base    map[string][]byte
	entries []entry
}

type entry struct {
	kind   Kind
	path   string
	off    int64
	data   []byte
	failed bool // Sync: it returned an error
	folder bool // Sync: of the folder too
}

// Len returns the position of the next operation.
func (h *History) Len() int {
	h.disk.mu.Lock()
	defer h.disk.mu.Unlock()
	return len(h.entries)
}

// Syncs returns the positions just before and just after every sync, at which a power
// failure matters most.
func (h *History) Syncs() []int {
	h.disk.mu.Lock()
	defer h.disk.mu.Unlock()
	at := []int{0}
	for i, e := range h.entries {
		if e.kind == Sync {
			at = append(at, i, i+1)
		}
	}
	return append(at, len(h.entries))
}

// Survival selects the unsynced changes that survive a power failure.
type Survival uint8

// The values of Survival.
const (
	Synced  Survival = iota // the synced changes only
	Arrived                 // everything, as after the end of only the process
	Ordered                 // a prefix of the unsynced changes, the last of them cut between sectors
	Torn                    // each sector of each change, or not
	Survivals
)

// String returns the value's name.
func (s Survival) String() string {
	return [...]string{"only what was synced", "everything", "a beginning", "any sectors", "survivals"}[s]
}

// Flaws are behaviours of a medium that SQLite does not expect.
type Flaws struct {
	// DropsPages makes the changes of a failed sync stay unsynced until they are written
	// again, as Linux does with pages that it could not write. Otherwise they become
	// durable with the next sync.
	DropsPages bool
	// ForgetsNames suppresses syncs of the folder, so that a deleted file can come back.
	// SQLite requires the folder to be synced with the first sync of a new log or
	// journal.
	ForgetsNames bool
}

// Platter holds the files on the medium at one position of a history, and the changes
// that are not yet synced.
type Platter struct {
	h     *History
	pos   int
	flaws Flaws
	files map[string]*medium
}

// medium is one file of a platter.
type medium struct {
	synced  []byte // nil if the file does not exist
	pending []entry
}

// Platter returns the medium at the beginning.
func (h *History) Platter(flaws Flaws) *Platter {
	p := &Platter{h: h, flaws: flaws, files: make(map[string]*medium)}
	for path, b := range h.base {
		p.files[path] = &medium{synced: slices.Clone(b)}
	}
	return p
}

// Advance moves to a later position.
func (p *Platter) Advance(to int) {
	for ; p.pos < to; p.pos++ {
		e := p.h.entries[p.pos]
		m := p.files[e.path]
		if m == nil {
			m = &medium{}
			p.files[e.path] = m
		}
		switch {
		case e.kind != Sync:
			m.pending = append(m.pending, e)
		case !e.failed:
			m.sync(len(m.pending))
			if e.folder && !p.flaws.ForgetsNames {
				p.syncFolder()
			}
		case p.flaws.DropsPages:
			m.pending = nil
		}
	}
}

// sync makes the first n changes durable.
func (m *medium) sync(n int) {
	m.synced = play(m.synced, m.pending[:n], false)
	m.pending = m.pending[n:]
}

// syncFolder makes deletions durable.
func (p *Platter) syncFolder() {
	for _, m := range p.files {
		for i := len(m.pending) - 1; i >= 0; i-- {
			if m.pending[i].kind == Delete {
				m.sync(i + 1)
				break
			}
		}
	}
}

// Image returns the files that a power failure leaves at this position, with random
// choices from rng. A missing file is absent from the map.
func (p *Platter) Image(s Survival, rng *rand.Rand) map[string][]byte {
	image := make(map[string][]byte, len(p.files))
	for _, path := range slices.Sorted(maps.Keys(p.files)) { // sorted, so that rng is reproducible
		m := p.files[path]
		var more []entry
		switch s {
		case Arrived:
			more = m.pending
		case Ordered:
			more = beginning(m.pending, rng)
		case Torn:
			more = sectors(m.pending, rng)
		}
		if b := play(m.synced, more, true); b != nil {
			image[path] = b
		}
	}
	return image
}

// play applies changes to a file's bytes; fresh makes it copy them first.
func play(b []byte, changes []entry, fresh bool) []byte {
	if fresh && len(changes) > 0 && b != nil {
		b = slices.Clone(b)
	}
	for _, e := range changes {
		switch e.kind {
		case Write:
			b = resized(b, max(len(b), int(e.off)+len(e.data)))
			copy(b[e.off:], e.data)
		case Truncate:
			b = resized(b, int(e.off))
		case Allocate:
			b = resized(b, max(len(b), int(e.off)))
		case Delete:
			b = nil
		}
	}
	return b
}

func resized(b []byte, size int) []byte {
	if b == nil {
		b = []byte{}
	}
	if size <= len(b) {
		return b[:size:size]
	}
	return append(b, make([]byte, size-len(b))...)
}

const sector = 512

// split cuts a change at the ends of sectors.
func split(e entry) (parts []entry) {
	if e.kind != Write {
		return []entry{e}
	}
	for len(e.data) > 0 {
		n := min(len(e.data), sector-int(e.off%sector))
		parts = append(parts, entry{kind: Write, path: e.path, off: e.off, data: e.data[:n]})
		e.off, e.data = e.off+int64(n), e.data[n:]
	}
	return parts
}

// beginning returns a random prefix of the changes, whose last change may be cut.
func beginning(changes []entry, rng *rand.Rand) []entry {
	n := rng.IntN(len(changes) + 1)
	kept := slices.Clone(changes[:n])
	if n == len(changes) {
		return kept
	}
	parts := split(changes[n])
	return append(kept, parts[:rng.IntN(len(parts))]...)
}

// sectors returns a random part of the changes: most of them completely or not at all,
// the others torn.
func sectors(changes []entry, rng *rand.Rand) (kept []entry) {
	for _, e := range changes {
		switch rng.IntN(4) {
		case 0:
		case 1:
			for _, part := range split(e) {
				if rng.IntN(2) == 0 {
					kept = append(kept, part)
				}
			}
		default:
			kept = append(kept, e)
		}
	}
	return kept
}
