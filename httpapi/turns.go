package httpapi

import (
	"cmp"
	"slices"
	"sync"
	"time"
)

// lane groups the reads of the hub that share slots, so that slow reads do not delay fast ones.
type lane int

const (
	laneRows   lane = iota // rows by id
	lanePages              // pages and counts
	laneSearch             // queries that need more than an index
	lanes
)

// Slots of the lanes, out of hubReads.
const (
	hubSearches = 1            // concurrent searches
	hubPages    = hubReads - 1 // concurrent searches and pages: one slot is reserved for rows
)

// lane returns the lane of a topic.
func (t *topicName) lane() lane {
	switch {
	case t.search:
		return laneSearch
	case t.kind.every == pageEvery:
		return lanePages
	}
	return laneRows
}

// reading counts the running reads.
type reading [lanes]int

// room reports whether one more read may begin.
func (r *reading) room(l lane) bool {
	pages := r[lanePages] + r[laneSearch]
	switch {
	case r[laneRows]+pages >= hubReads:
		return false
	case l == laneRows:
		return true
	case l == laneSearch && r[laneSearch] >= hubSearches:
		return false
	}
	return pages < hubPages
}

// dueTopic is a topic that is due for a read.
type dueTopic struct {
	*topic
	since time.Time
}

// batches groups due topics into reads, the longest due first.
func batches(due []dueTopic) (reads [][]*topic) {
	slices.SortFunc(due, func(a, b dueTopic) int {
		return cmp.Or(a.since.Compare(b.since), cmp.Compare(a.order, b.order))
	})
	growing := make(map[*topicKind]int) // reads with room
	for _, t := range due {
		i, found := growing[t.kind]
		if !found || len(reads[i]) >= t.kind.most {
			i = len(reads)
			growing[t.kind] = i
			reads = append(reads, nil)
		}
		reads[i] = append(reads[i], t.topic)
	}
	return reads
}

// searching counts the watched searches.
type searching struct {
	mu     sync.Mutex
	byName map[string]map[string]int // streams, by the principal's name and the topic
}

// take counts the searches among topics, until release is called. A search that a principal already
// watches, in any stream, counts once.
func (s *searching) take(cfg *Config, name string, topics []topicName) (release func(), err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	has := s.byName[name]
	var taken []string
	more := 0
	for i := range topics {
		if t := &topics[i]; t.search {
			taken = append(taken, t.text)
			if has[t.text] == 0 {
				more++
			}
		}
	}
	if n := len(has) + more; more > 0 && n > cfg.MaxSearchesPerPrincipal {
		return nil, tooManySearches.of("%q would watch %d searches, and may watch %d. Close some, or use only terms with an index: states, types, a queue, labels, times.", name, n, cfg.MaxSearchesPerPrincipal)
	}
	if len(taken) == 0 {
		return func() {}, nil
	}
	if s.byName == nil {
		s.byName = make(map[string]map[string]int)
	}
	if has == nil {
		has = make(map[string]int)
		s.byName[name] = has
	}
	for _, text := range taken {
		has[text]++
	}
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		for _, text := range taken {
			if has[text]--; has[text] == 0 {
				delete(has, text)
			}
		}
		if len(has) == 0 {
			delete(s.byName, name)
		}
	}, nil
}
