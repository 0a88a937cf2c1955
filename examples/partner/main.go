// Command partner calls a partner for several tenants. The partner allows 50 calls per second and answers 429 now and
// then; one tenant has far more to send than the others:
//
//	go run ./examples/partner
//
// All tenants share the partner's rate, whatever processes call it, and take turns at it. A 429 makes all of them
// rest. It takes about 4 seconds and leaves nothing behind.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/goweaver/weaver"
	"github.com/goweaver/weaver/store/sqlite"
)

// What the partner allows.
const (
	rate  = 50 // calls per second
	burst = 5
)

// Send is the contract: the input is the number of the message.
var Send = weaver.Define[int, weaver.None]("example.partner.send.v1",
	weaver.FairBy("tenant"), weaver.RateLimit("partner", rate, time.Second, burst))

// partner calls the API of the partner.
type partner struct{ url string }

func (p partner) send(ctx context.Context, n int) (_ weaver.None, err error) {
	url := fmt.Sprintf("%s/messages/%d", p.url, n)
	req, err := http.NewRequestWithContext(ctx, http.MethodPut, url, http.NoBody)
	if err != nil {
		return weaver.None{}, err
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return weaver.None{}, err
	}
	defer func() { err = errors.Join(err, resp.Body.Close()) }()
	switch resp.StatusCode {
	case http.StatusNoContent:
		return weaver.None{}, nil
	case http.StatusTooManyRequests:
		wait, err := time.ParseDuration(resp.Header.Get("Retry-After") + "s")
		if err != nil {
			wait = time.Minute
		}
		return weaver.None{}, weaver.SlowDown("partner", wait) // no task with the key starts meanwhile
	}
	return weaver.None{}, fmt.Errorf("the partner answered %s", resp.Status)
}

// api is the partner: it wants a rest at every 60th call.
type api struct{ calls, refused atomic.Int64 }

// ServeHTTP answers one call.
func (a *api) ServeHTTP(w http.ResponseWriter, _ *http.Request) {
	if a.calls.Add(1)%60 == 0 {
		a.refused.Add(1)
		w.Header().Set("Retry-After", "0.3") // a whole number at a real partner
		w.WriteHeader(http.StatusTooManyRequests)
		return
	}
	w.WriteHeader(http.StatusNoContent)
}

// tenant is who sends, and how much.
type tenant struct {
	name  string
	tasks int
}

// starts are the starts of a tenant's tasks, retries included.
type starts struct {
	tenant
	at []time.Time
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	dir, err := os.MkdirTemp("", "weaver-partner")
	if err != nil {
		log.Fatal(err)
	}
	all, err := run(ctx, dir, []tenant{{"big", 150}, {"ada", 5}, {"bob", 5}, {"eve", 5}})
	if err == nil {
		err = show(os.Stdout, all)
	}
	if err := errors.Join(err, os.RemoveAll(dir)); err != nil {
		log.Fatal(err)
	}
}

// run enqueues the tasks of the tenants, one tenant after another, and works on them until all have ended.
func run(ctx context.Context, dir string, tenants []tenant) (all []starts, err error) {
	var remote api
	server := httptest.NewServer(&remote)
	defer server.Close()
	db, err := sqlite.Open(ctx, filepath.Join(dir, "weaver.db"))
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	eng, err := weaver.New(db, weaver.Config{Handlers: []weaver.Handler{Send.Handler(partner{server.URL}.send)}, Concurrency: 8})
	if err := errors.Join(err, db.Migrate(ctx)); err != nil {
		return nil, err
	}
	handles := make([][]*weaver.Handle[weaver.None], len(tenants))
	for i, t := range tenants {
		messages := make([]int, t.tasks)
		for n := range messages {
			messages[n] = n + 1
		}
		handles[i], err = Send.EnqueueMany(ctx, eng, messages, weaver.Label("tenant", t.name))
		if err != nil {
			return nil, err
		}
	}

	work, stop := context.WithCancel(ctx)
	var running sync.WaitGroup
	var runErr error
	running.Go(func() { runErr = eng.Run(work) })
	defer func() {
		stop()
		running.Wait()
		err = errors.Join(err, runErr)
	}()
	for i, t := range tenants {
		s := starts{tenant: t}
		for _, h := range handles[i] {
			if _, err := h.Wait(ctx); err != nil {
				return nil, err
			}
			history, err := eng.History(ctx, h.ID())
			if err != nil {
				return nil, err
			}
			for _, a := range history.Attempts {
				s.at = append(s.at, a.StartedAt)
			}
		}
		slices.SortFunc(s.at, time.Time.Compare)
		all = append(all, s)
	}
	fmt.Printf("the partner got %d calls and answered 429 to %d of them\n", remote.calls.Load(), remote.refused.Load())
	return all, nil
}

// show prints when the last task of each tenant started, and the most starts in a second. More than the partner allows
// are an error.
func show(out io.Writer, all []starts) error {
	var merged []time.Time
	for _, s := range all {
		merged = append(merged, s.at...)
	}
	slices.SortFunc(merged, time.Time.Compare)
	for _, s := range all {
		last := s.at[len(s.at)-1]
		fmt.Fprintf(out, "%s: %3d tasks, the last one started after %.1f s\n", s.name, s.tasks, last.Sub(merged[0]).Seconds())
	}
	most, first := 0, 0
	for i, at := range merged {
		for at.Sub(merged[first]) > time.Second {
			first++
		}
		most = max(most, i-first+1)
	}
	fmt.Fprintf(out, "at most %d calls started within a second; %d are allowed\n", most, rate+burst)
	if most > rate+burst {
		return errors.New("too many calls")
	}
	return nil
}
