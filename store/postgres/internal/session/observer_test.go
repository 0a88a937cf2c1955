package session

import (
	"context"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/goweaver/weaver/store"
)

// fakeLooker looks at a fake server.
type fakeLooker struct {
	s    *server
	life int
}

// observe opens a session that ends with the server's life.
func (s *server) observe(context.Context) (Looker, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.away {
		return nil, errCut
	}
	return fakeLooker{s, s.life}, nil
}

func (l fakeLooker) Look(_ context.Context, namespaces []string) ([]Seen, error) {
	l.s.mu.Lock()
	defer l.s.mu.Unlock()
	if l.life != l.s.life || l.s.away {
		return nil, errCut
	}
	l.s.looks++
	var seen []Seen
	for k, last := range l.s.seen {
		for _, ns := range namespaces {
			if ns == k.ns {
				seen = append(seen, Seen{NS: k.ns, ID: k.id, LastSeen: last, Grace: l.s.grace, Held: l.s.locks[k.lock()] != 0})
			}
		}
	}
	return seen, nil
}

func (fakeLooker) Close() {}

// restart ends all sessions of the server.
func (s *server) restart() {
	s.cut()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.life++
}

// set changes the server.
func (s *server) set(change func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	change()
}

// observing plays a test with an Observer of a server on which the worker holds its lock and
// has claims.
func observing(t *testing.T, test func(t *testing.T, s *server, o *Observer, found *atomic.Int64)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		s := newServer()
		found := new(atomic.Int64)
		o := Observe(ObserverConfig{
			Dial: s.observe, Log: slog.New(slog.DiscardHandler),
			Own:   func(_ string, id store.WorkerID) bool { return id == "mine" },
			Found: func(string) { found.Add(1) },
		})
		defer func() {
			if err := o.Close(); err != nil {
				t.Error(err)
			}
		}()
		s.seen[testWorker] = 1
		s.locks[testWorker.lock()] = 7
		o.Watch(testNS)
		test(t, s, o, found)
	})
}

// diesAfter returns the time until the worker is found dead, or 0 if it is not within a
// minute.
func diesAfter(found *atomic.Int64) time.Duration {
	began := time.Now()
	for time.Since(began) < time.Minute {
		if found.Load() > 0 {
			return time.Since(began)
		}
		time.Sleep(time.Millisecond)
	}
	return 0
}

func TestDeathIsFoundAfterTheGraceAndASecond(t *testing.T) {
	for _, grace := range []time.Duration{testGrace, 3 * time.Second, time.Second / 3} {
		for phase := range 8 {
			observing(t, func(t *testing.T, s *server, o *Observer, found *atomic.Int64) {
				s.set(func() { s.grace = grace })
				time.Sleep(5*time.Second + time.Duration(phase)*100*time.Millisecond)
				if dead := o.Dead(t.Context(), testNS); found.Load() != 0 || len(dead.IDs()) != 0 {
					t.Fatal("a worker whose lock is held is found dead")
				}
				s.cut()
				after := diesAfter(found)
				if want := grace + time.Second; after < want || after > want+lookEvery+time.Millisecond {
					t.Errorf("found dead after %s, want %s and a look", after, want)
				}
				if ids := o.Dead(t.Context(), testNS).IDs(); len(ids) != 1 || ids[0] != "w" {
					t.Errorf("dead are %v", ids)
				}
				if ids := o.Dead(t.Context(), "other").IDs(); len(ids) != 0 {
					t.Errorf("dead of another namespace are %v", ids)
				}
			})
		}
	}
}

func TestNoProofByASession(t *testing.T) {
	for name, happens := range map[string]func(s *server){
		"held": func(*server) {},
		"held again after less than the grace": func(s *server) {
			s.cut()
			time.Sleep(testGrace)
			s.set(func() { s.locks[testWorker.lock()] = 8 })
		},
		"held again for a moment, each time": func(s *server) {
			s.cut()
			for range 12 {
				time.Sleep(testGrace / 2)
				s.set(func() { s.locks[testWorker.lock()] = 8 })
				time.Sleep(lookEvery + time.Millisecond) // at least one look sees it
				s.cut()
			}
		},
		"held again between two looks": func(s *server) {
			s.cut()
			for range 6 {
				time.Sleep(testGrace)
				s.set(func() { s.seen[testWorker]++ }) // recorded by a session that ended at once
			}
		},
		"the server restarted": func(s *server) {
			time.Sleep(time.Second)
			s.restart()
		},
		"the server restarted a moment later": func(s *server) {
			s.cut()
			time.Sleep(testGrace)
			s.restart()
		},
		"the server was away": func(s *server) {
			s.cut()
			s.set(func() { s.away = true })
			time.Sleep(testGrace)
			s.set(func() { s.away = false })
		},
		"it keeps no session": func(s *server) {
			s.set(func() { s.grace = 0 })
			s.cut()
		},
		"it is our own": func(s *server) {
			s.set(func() { delete(s.seen, testWorker); s.seen[key{testNS, "mine"}] = 1 })
			s.cut()
		},
		"it has no claims any more": func(s *server) {
			s.cut()
			time.Sleep(testGrace)
			s.set(func() { delete(s.seen, testWorker) })
			time.Sleep(time.Second)
			s.set(func() { s.seen[testWorker] = 1 })
		},
	} {
		t.Run(name, func(t *testing.T) {
			observing(t, func(t *testing.T, s *server, o *Observer, found *atomic.Int64) {
				time.Sleep(5 * time.Second)
				happens(s)
				time.Sleep(testGrace + 500*time.Millisecond) // less than it takes to find it dead
				if name != "held again for a moment, each time" && name != "held again between two looks" {
					time.Sleep(time.Minute)
				}
				if ids := o.Dead(t.Context(), testNS).IDs(); found.Load() != 0 || len(ids) != 0 {
					t.Errorf("found dead: %v", ids)
				}
			})
		})
	}
}

// A lock that was never seen held proves nothing.
func TestNeverSeenHeld(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer()
		s.seen[testWorker] = 1
		o := Observe(ObserverConfig{Dial: s.observe, Own: func(string, store.WorkerID) bool { return false }, Found: func(string) { t.Error("found dead") }, Log: slog.New(slog.DiscardHandler)})
		o.Watch(testNS)
		time.Sleep(time.Minute)
		if ids := o.Dead(t.Context(), testNS).IDs(); len(ids) != 0 {
			t.Errorf("dead: %v", ids)
		}
		if err := o.Close(); err != nil {
			t.Error(err)
		}
		if ids := o.Dead(t.Context(), testNS).IDs(); len(ids) != 0 {
			t.Errorf("dead after Close: %v", ids)
		}
	})
}

func TestLooksWithoutClaimsOfOthers(t *testing.T) {
	observing(t, func(t *testing.T, s *server, _ *Observer, _ *atomic.Int64) {
		time.Sleep(time.Minute)
		busy := s.lookedAt()
		s.set(func() { delete(s.seen, testWorker) })
		time.Sleep(time.Minute)
		if idle := s.lookedAt() - busy; busy < 60 || idle > busy/2 {
			t.Errorf("%d looks in a minute beside a worker with claims, %d without", busy, idle)
		}
	})
}

func (s *server) lookedAt() int { s.mu.Lock(); defer s.mu.Unlock(); return s.looks }

// Regardless of the fate of a worker's session, its leases are not taken as of a dead worker
// while the worker trusts them. They are taken when its process is dead.
func TestNoTrustedLeaseIsTaken(t *testing.T) {
	taken, kept := 0, 0
	for seed := range uint64(60) {
		keeping(t, func(t *testing.T, s *server, k *Keeper) {
			r := rand.New(rand.NewPCG(seed, 1))
			s.set(func() { s.seen[testWorker] = 1 })
			granted := time.Now() // when the claim of the worker's leases was requested
			trusted := func() error {
				session, _ := k.Session(testNS, "w")
				if silence := time.Since(session.Last); silence < testGrace && !granted.Before(session.Since) {
					return fmt.Errorf("seed %d: its last answer was %s ago", seed, silence)
				}
				return nil
			}
			o := Observe(ObserverConfig{Dial: s.observe, Own: func(string, store.WorkerID) bool { return false }, Found: func(string) {}, Log: slog.New(slog.DiscardHandler)})
			defer func() { _ = o.Close() }()
			o.Watch(testNS)
			k.Leased(24 * time.Hour)
			for range 40 {
				switch r.IntN(6) {
				case 0, 1: // it loses its session for a moment, or for some time
					s.cut()
					s.refuse(true)
					time.Sleep(time.Duration(r.IntN(14000)) * time.Millisecond)
					s.refuse(false)
				case 2: // it loses its session unnoticed, with the data in flight
					s.swallow(true)
					s.cut()
					time.Sleep(time.Duration(r.IntN(14000)) * time.Millisecond)
					s.swallow(false)
				case 3: // it has a session for a moment only, between two looks
					for range 5 {
						s.cut()
						s.refuse(true)
						time.Sleep(time.Duration(r.IntN(4000)) * time.Millisecond)
						s.refuse(false)
						time.Sleep(time.Duration(r.IntN(600)) * time.Millisecond)
					}
				case 4:
					s.restart()
				}
				for range 20 {
					time.Sleep(time.Duration(r.IntN(300)) * time.Millisecond)
					dead := o.Dead(t.Context(), testNS)
					for id, base := range dead.sessions {
						if s.seenOf(key{testNS, id}) != base {
							continue // as in Confirm
						}
						if err := trusted(); err != nil {
							t.Error(err)
						}
						taken++
					}
					dead.Close()
				}
				if trusted() == nil {
					granted = time.Now() // it claims again
				} else {
					kept++
				}
			}
		})
	}
	if taken == 0 || kept == 0 {
		t.Errorf("leases were taken %d times, kept %d times: the test shows nothing", taken, kept)
	}
}
