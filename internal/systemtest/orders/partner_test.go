package orders_test

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"path"
	"sync"
	"testing"
	"time"
)

// timeout is BROKER_TIMEOUT_MS.
const timeout = 100 * time.Millisecond

// partner executes orders, deduplicated by key. A repeated key is answered 409.
type partner struct {
	url string

	mu       sync.Mutex
	executed map[string]bool
	said     map[string]int // answers, by kind
}

func newPartner(t *testing.T) *partner {
	t.Helper()
	p := &partner{executed: make(map[string]bool), said: make(map[string]int)}
	srv := httptest.NewUnstartedServer(p)
	srv.Config.ErrorLog = quiet
	srv.Start()
	t.Cleanup(srv.Close)
	p.url = srv.URL + "/orders"
	return p
}

// ServeHTTP takes an order by POST. 20 % of the orders are executed without an answer in time, 10 % get 500 and 5 % a
// dropped connection, half of these after the execution. GET asks for a key, with the same 500s and drops.
func (p *partner) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	luck := rand.IntN(100)
	key, found := r.Header.Get("Idempotency-Key"), false
	switch {
	case r.Method == http.MethodGet:
		key = path.Base(r.URL.Path)
		found = p.knows(key)
		if luck < 20 || luck >= 35 {
			p.answer(w, found, map[bool]int{true: http.StatusOK, false: http.StatusNotFound}[found])
			return
		}
	case luck >= 20 && luck < 35 && luck%2 == 0:
		// not executed
	default:
		found = p.execute(key)
	}
	switch {
	case luck < 20:
		p.count("timeout")
		wait := time.NewTimer(2 * timeout)
		defer wait.Stop()
		select {
		case <-r.Context().Done():
		case <-wait.C:
		}
	case luck < 30:
		p.answer(w, false, http.StatusInternalServerError)
	case luck < 35:
		p.count("drop")
		panic(http.ErrAbortHandler)
	case found:
		p.answer(w, false, http.StatusConflict)
	default:
		p.answer(w, true, http.StatusCreated)
	}
}

func (p *partner) answer(w http.ResponseWriter, result bool, status int) {
	p.count(fmt.Sprint(status))
	w.WriteHeader(status)
	if result {
		fmt.Fprintf(w, `{"fills":[{"px":"100","qty":"0.5","ts":%q}],"executed_qty":"0.5","order_ref":"ref"}`, time.Now().UTC().Format(time.RFC3339))
	}
}

// execute executes a key, and reports whether it had been executed before.
func (p *partner) execute(key string) (before bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	before, p.executed[key] = p.executed[key], true
	return before
}

func (p *partner) knows(key string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.executed[key]
}

func (p *partner) count(kind string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.said[kind]++
}

// state returns copies of the executed and answered requests.
func (p *partner) state() (executed map[string]bool, said string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	executed = make(map[string]bool, len(p.executed))
	for k := range p.executed {
		executed[k] = true
	}
	return executed, fmt.Sprint(p.said)
}
