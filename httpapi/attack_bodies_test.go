package httpapi_test

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/goweaver/weaver/httpapi"
)

// heapPeak records the largest heap at the calls of seen.
type heapPeak struct {
	mu   sync.Mutex
	most uint64
}

func (h *heapPeak) seen() {
	sample := []metrics.Sample{{Name: "/memory/classes/heap/objects:bytes"}}
	metrics.Read(sample)
	h.mu.Lock()
	defer h.mu.Unlock()
	h.most = max(h.most, sample[0].Value.Uint64())
}

// The memory of 200 concurrent large bodies does not grow with their number. The test is not
// parallel, because it measures the heap.
func TestAttackBodies(t *testing.T) {
	if testing.Short() {
		t.Skip("make test runs this")
	}
	const (
		charge = `{"task_type":"acme.billing.charge.v1","input":`
	)
	defer debug.SetGCPercent(debug.SetGCPercent(100)) // as a server with such a heap has it
	keys := make([]string, 88_000)
	for i := range keys {
		keys[i] = fmt.Sprintf(`"k%d":0`, i)
	}
	dict := "{" + strings.Join(keys, ",") + "}"
	text := func(n int) string { return `"` + strings.Repeat("x", n) + `"` }
	many := func(n int, unit string) string { return "[" + strings.Repeat(unit+",", n-1) + unit + "]" }
	s := newServer(t, serverOptions{config: func(cfg *httpapi.Config) {
		cfg.Authorize = func(r *http.Request) (httpapi.Principal, error) {
			return httpapi.Principal{Name: r.Header.Get("Who"), Access: httpapi.Full}, nil
		}
	}})
	for _, a := range []struct {
		name, path string
		body       func() string
		requests   int
		want       int
	}{
		{"login, many keys", "/login", func() string { return `{"token":"x","more":` + dict + `}` }, 200, http.StatusRequestEntityTooLarge},
		{"login, chunked", "/login", func() string { return `{"token":` + strings.Repeat("[", 900_000) }, 200, http.StatusBadRequest},
		{"a reason", "/v1/queues/q/pause", func() string { return `{"reason":` + text(900_000) + `}` }, 200, http.StatusRequestEntityTooLarge},
		{"one text", "/v1/tasks", func() string { return charge + text(7_700_000) + `}` }, 10, http.StatusRequestEntityTooLarge},
		{"many keys", "/v1/tasks", func() string { return charge + dict + `}` }, 20, http.StatusRequestEntityTooLarge},
		{"small objects", "/v1/tasks", func() string { return charge + many(30_000, `{"a":1}`) + `}` }, 40, http.StatusRequestEntityTooLarge},
		{"small bodies", "/v1/tasks", func() string { return charge + many(15_000, `{}`) + `}` }, 100, http.StatusUnprocessableEntity},
		{"no end", "/v1/jobs", func() string { return `{"name":"x","tasks":[` + charge + text(7_700_000) }, 10, http.StatusBadRequest},
		{"too many values", "/v1/jobs", func() string { return `{"name":"x","tasks":` + many(1_000_000, "[]") }, 100, http.StatusUnprocessableEntity},
		{"many tasks", "/v1/jobs", func() string {
			return `{"name":"x","tasks":` + many(10_000, `{"task_type":"nothing.v1","labels":{"a":"b","c":"d"},"needs":["a","b"]}`) + `}`
		}, 10, http.StatusUnprocessableEntity},
	} {
		runtime.GC() // what earlier tests left is not the attack's
		var peak heapPeak
		var sent sync.WaitGroup
		answers := make(map[int]int)
		text := a.body()
		for i := range max(4, a.requests/attackShare) {
			sent.Go(func() {
				var body io.Reader = strings.NewReader(text)
				if strings.Contains(a.name, "chunked") {
					body = io.MultiReader(body)
				}
				peak.seen()
				r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, s.url+a.path, body)
				if err != nil {
					t.Error(err)
					return
				}
				r.Header.Set("Who", fmt.Sprint("p", i%10))
				r.Header.Set("Content-Type", "application/json")
				res, err := http.DefaultClient.Do(r)
				if err != nil {
					return // it was cut, because it sent more than is read
				}
				_, _ = io.Copy(io.Discard, res.Body)
				_ = res.Body.Close()
				peak.seen()
				peak.mu.Lock()
				answers[res.StatusCode]++
				peak.mu.Unlock()
			})
		}
		sent.Wait()
		if peak.most > attackHeap {
			t.Errorf("%s: the heap had %d MiB, want at most %d", a.name, peak.most>>20, uint64(attackHeap)>>20)
		}
		if answers[a.want] == 0 {
			t.Errorf("%s: the answers are %v, want %d", a.name, answers, a.want)
		}
	}
}

// A principal that reaches its limits of bodies and values in progress waits, and then is rejected;
// another principal is not affected.
func TestAttackBodies_OfOnePrincipal(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		config      func(*httpapi.Config)
		first, next string
	}{
		"bodies": {func(cfg *httpapi.Config) { cfg.MaxBodiesPerPrincipal = 1 }, "{}", "{}"},
		"values": {func(cfg *httpapi.Config) { cfg.MaxValues = 100 }, repeat(60, "0"), repeat(60, "0")},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				s := newServer(t, serverOptions{direct: true, config: func(cfg *httpapi.Config) {
					cfg.Authorize = func(r *http.Request) (httpapi.Principal, error) {
						return httpapi.Principal{Name: r.Header.Get("Who"), Access: httpapi.Full}, nil
					}
					c.config(cfg)
				}})
				leave := make(chan struct{})
				h := s.api.Guard("tools", httpapi.Read, func(_ http.ResponseWriter, r *http.Request, _ httpapi.Principal) {
					if r.Header.Get("Stay") != "" {
						<-leave
					}
				})
				send := func(who, body, stay string) int {
					r := httptest.NewRequest(http.MethodPost, "/", strings.NewReader(body))
					r.Header.Set("Who", who)
					r.Header.Set("Stay", stay)
					w := httptest.NewRecorder()
					h.ServeHTTP(w, r)
					return w.Code
				}
				var first sync.WaitGroup
				first.Go(func() { send("ann", c.first, "yes") })
				synctest.Wait()
				if own, other := send("ann", c.next, ""), send("bob", c.next, ""); own != http.StatusTooManyRequests || other != http.StatusOK {
					t.Errorf("the next body of ann is answered with %d, and one of bob with %d; want 429 and 200", own, other)
				}
				close(leave)
				first.Wait()
				if again := send("ann", c.next, ""); again != http.StatusOK {
					t.Errorf("a body after that is answered with %d", again)
				}
			})
		})
	}
}
