package saga_test

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"
)

// partner is the service that charges and ships, and undoes both. It deduplicates effects by key, and undos by the
// key of the undone effect. A key that was undone is void: later calls with it have no effect.
type partner struct {
	url string

	mu     sync.Mutex
	done   map[string]*effect // by key
	calms  bool               // always succeeds at once
	failed int
	late   int
}

// effect is the state of a key.
type effect struct {
	verb, order string
	there, void bool
	undoneBy    string // the key of the undo
}

func newPartner(t *testing.T) *partner {
	t.Helper()
	p := &partner{done: make(map[string]*effect)}
	srv := httptest.NewServer(p)
	t.Cleanup(srv.Close)
	p.url = srv.URL
	return p
}

func (p *partner) calm() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.calms = true
}

// ServeHTTP takes a verb, an order, a key, and for an undo the key of the undone effect. Three in ten calls fail,
// half of them after their effect; one in ten is late.
func (p *partner) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	q := r.URL.Query()
	p.mu.Lock()
	luck, calms := rand.IntN(100), p.calms
	if calms {
		luck = 99
	}
	p.mu.Unlock()
	switch {
	case luck < 15:
		p.fails(w)
		return
	case luck >= 30 && luck < 40:
		p.mu.Lock()
		p.late++
		p.mu.Unlock()
		time.Sleep(time.Duration(100+rand.IntN(400)) * time.Millisecond) // a caller killed meanwhile does not see the effect
	}
	answer := p.effect(q.Get("verb"), q.Get("order"), q.Get("key"), q.Get("of"))
	if luck < 30 {
		p.fails(w)
		return
	}
	http.Error(w, answer, map[bool]int{true: http.StatusOK, false: http.StatusGone}[answer == ""])
}

func (p *partner) fails(w http.ResponseWriter) {
	p.mu.Lock()
	p.failed++
	p.mu.Unlock()
	http.Error(w, "not now", http.StatusServiceUnavailable)
}

// effect carries out a call; it returns "" if the effect exists.
func (p *partner) effect(verb, order, key, of string) string {
	p.mu.Lock()
	defer p.mu.Unlock()
	at := key
	if of != "" {
		at = of
	}
	e := p.done[at]
	if e == nil {
		e = &effect{verb: verb, order: order}
		p.done[at] = e
	}
	switch {
	case of != "" && e.undoneBy != "" && e.undoneBy != key:
		return fmt.Sprintf("%s was undone under the key %s, not %s", of, e.undoneBy, key)
	case of != "":
		e.void, e.undoneBy = true, key
	case e.void:
		return key + " is void"
	default:
		e.verb, e.there = verb, true
	}
	return ""
}

// stands returns the number of effects of a verb for an order, without the undone ones.
func (p *partner) stands(verb, order string) (n int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, e := range p.done {
		if e.verb == verb && e.order == order && e.there && !e.void {
			n++
		}
	}
	return n
}

// undone returns the number of undone effects.
func (p *partner) undone() (n int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, e := range p.done {
		if e.there && e.void {
			n++
		}
	}
	return n
}
