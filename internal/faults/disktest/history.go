package disktest

import (
	"maps"
	"math/rand/v2"
	"slices"
)

// History is the operations that a disk got, in order. Positions in it count
// operations: the history up to position n are the first n.
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
	failed bool // Sync: the caller got an error
	folder bool // Sync: of the folder, too
}

// Len returns the position of what comes next.
func (h *History) Len() int {
	h.disk.mu.Lock()
	defer h.disk.mu.Unlock()
	return len(h.entries)
}

// Syncs returns the positions just before and just behind every sync: where a
// power failure matters most.
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

// Survival says which unsynced changes a power failure leaves.
type Survival uint8

// What can survive.
const (
	Synced  Survival = iota // what was synced, and nothing else
	Arrived                 // everything, as after the end of only the process
	Ordered                 // a beginning of what came after the sync, its last write cut between sectors
	Torn                    // each sector of each change, or not
	Survivals
)

// String names it.
func (s Survival) String() string {
	return [...]string{"only what was synced", "everything", "a beginning", "any sectors", "survivals"}[s]
}

// Flaws are what a medium does that SQLite does not expect of it.
type Flaws struct {
	// DropsPages: what a failed sync was to make last never will, unless it is
	// written again. That is what Linux does with pages that it could not
	// write. Otherwise they wait for the next sync.
	DropsPages bool
	// ForgetsNames: the folder is never synced, so that a file that was deleted
	// can come back. SQLite wants it synced with the first sync of a new log or
	// journal.
	ForgetsNames bool
}

// Platter holds the files as they are on the medium at one position of a
// history, and what is on its way there.
type Platter struct {
	h     *History
	pos   int
	flaws Flaws
	files map[string]*medium
}

// medium is one file of a platter.
type medium struct {
	synced  []byte // nil: there is no such file
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

// sync makes the first n changes last.
func (m *medium) sync(n int) {
	m.synced = play(m.synced, m.pending[:n], false)
	m.pending = m.pending[n:]
}

// syncFolder makes deletions last.
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

// Image returns the files that a power failure leaves at this position. Random
// choices are rng's. A file that is not there is missing.
func (p *Platter) Image(s Survival, rng *rand.Rand) map[string][]byte {
	image := make(map[string][]byte, len(p.files))
	for _, path := range slices.Sorted(maps.Keys(p.files)) { // so that rng gives the same again
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

// play applies changes to a file's bytes; with fresh it leaves those alone.
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

// split cuts a change where sectors end.
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

// beginning keeps some changes from the first on, and a part of the last.
func beginning(changes []entry, rng *rand.Rand) []entry {
	n := rng.IntN(len(changes) + 1)
	kept := slices.Clone(changes[:n])
	if n == len(changes) {
		return kept
	}
	parts := split(changes[n])
	return append(kept, parts[:rng.IntN(len(parts))]...)
}

// sectors keeps any part of the changes: most of them wholly or not at all,
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
