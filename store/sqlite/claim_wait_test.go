package sqlite_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/task"
)

// waitSuite is a store in a bubble with waiting claims and counted commits.
type waitSuite struct {
	*fixture
	commits int
	fail    func() error // called before the next commit, once
}

func inWaitSuite(t *testing.T, name string, play func(s *waitSuite)) {
	t.Helper()
	t.Run(name, func(t *testing.T) {
		t.Parallel()
		synctest.Test(t, func(t *testing.T) {
			n := newNoteStore(t)
			s := &waitSuite{fixture: fixtureOn(t, n.db)}
			s.join("w")
			s.db.OnCommit(func(commit func() error) error {
				if fail := s.fail; fail != nil {
					s.fail = nil
					if err := fail(); err != nil {
						return err
					}
				}
				s.commits++
				return commit()
			})
			play(s)
		})
	})
}

// answer is the result of a waiting claim.
type answer struct {
	store.ClaimResult
	err error
	at  time.Time
}

// startClaim starts a claim for future work and returns when the claim waits.
func (s *waitSuite) startClaim(ctx context.Context, wait time.Duration, change ...func(*store.ClaimRequest)) <-chan answer {
	s.Helper()
	return s.startClaimUntil(ctx, wait, nil, change...)
}

// startClaimUntil is startClaim for a claim that wake ends early.
func (s *waitSuite) startClaimUntil(ctx context.Context, wait time.Duration, wake <-chan struct{}, change ...func(*store.ClaimRequest)) <-chan answer {
	s.Helper()
	req := fixClaim("w", 10)
	for _, c := range change {
		c(&req)
	}
	ch := make(chan answer, 1)
	go func() {
		req.Wait, req.Wake = wait, wake
		res, err := s.db.Claim(ctx, fixNS, req)
		ch <- answer{res, err, time.Now()}
	}()
	synctest.Wait()
	s.commits = 0
	return ch
}

func (s *waitSuite) got(a answer, n int) []store.Claimed {
	s.Helper()
	if a.err != nil || len(a.Tasks) != n {
		s.Fatalf("the claim got %d tasks, error %v; want %d", len(a.Tasks), a.err, n)
	}
	return a.Tasks
}

func TestClaimsThatWait(t *testing.T) {
	t.Parallel()

	inWaitSuite(t, "are answered by the commit of the enqueue", func(s *waitSuite) {
		ch := s.startClaim(s.Context(), time.Hour)
		time.Sleep(time.Minute)
		ids := s.enqueue(2)
		a := <-ch
		tasks := s.got(a, 2)
		if s.commits != 1 {
			s.Errorf("%d commits for an enqueue and its claim, want 1", s.commits)
		}
		if a.Waited != time.Minute {
			s.Errorf("waited %s, want 1m: a lease must not count from before", a.Waited)
		}
		s.finish(tasks...)
		s.sound(ids...)
	})

	inWaitSuite(t, "are answered by the commit of the finish that makes a dependent ready", func(s *waitSuite) {
		first, second := s.draft(), s.draft()
		second.Needs = []task.Edge{{Needs: first.ID, Kind: task.OnSuccess}}
		if err := s.submit(s.Context(), store.Submission{Tasks: []task.New{first, second}}); err != nil {
			s.Fatal(err)
		}
		running := s.claim("w", 1)
		ch := s.startClaim(s.Context(), time.Hour)
		s.finish(running...)
		s.finish(s.got(<-ch, 1)...)
		if s.commits != 2 {
			s.Errorf("%d commits for two finishes and a claim, want 2", s.commits)
		}
		s.sound(first.ID, second.ID)
	})

	inWaitSuite(t, "take what their filter allows, and leave the rest to others", func(s *waitSuite) {
		one := func(r *store.ClaimRequest) { r.Limit, r.Queues = 1, map[string]int{"billing": 1} }
		billing := s.startClaim(s.Context(), time.Hour, one)
		other := s.startClaim(s.Context(), time.Hour)
		ids := s.enqueue(2)
		s.got(<-other, 2)
		ids = append(ids, s.enqueue(2, func(n *task.New) { n.Queue = "billing" })...)
		s.got(<-billing, 1)
		s.sound(ids...)
	})

	inWaitSuite(t, "end with nothing when their time is over, and then get nothing", func(s *waitSuite) {
		began := time.Now()
		ch := s.startClaim(s.Context(), time.Minute)
		a := <-ch
		if s.got(a, 0); a.at.Sub(began) != time.Minute || a.Waited != time.Minute {
			s.Errorf("it waited %s and says %s, want 1m", a.at.Sub(began), a.Waited)
		}
		ids := s.enqueue(1)
		if got := s.claim("w", 1); len(got) != 1 {
			s.Errorf("the task was given to a claim that has ended")
		}
		s.sound(ids...)
	})

	inWaitSuite(t, "end in time for a row that is due later", func(s *waitSuite) {
		ids := s.enqueue(1, func(n *task.New) { n.Delay = time.Minute })
		began := time.Now()
		a := <-s.startClaim(s.Context(), time.Hour)
		if s.got(a, 0); a.at.Sub(began) != time.Minute {
			s.Errorf("it ended after %s, want 1m", a.at.Sub(began))
		}
		s.sound(ids...)
	})

	inWaitSuite(t, "are not kept when something is due that they may not take", func(s *waitSuite) {
		ids := s.enqueue(1)
		began := time.Now()
		a := <-s.startClaim(s.Context(), time.Hour, func(r *store.ClaimRequest) { r.Limit = 0 })
		if s.got(a, 0); !a.at.Equal(began) || a.Next != 0 || a.Waited != 0 {
			s.Errorf("answered after %s, next %s, waited %s; want at once", a.at.Sub(began), a.Next, a.Waited)
		}
		s.sound(ids...)
	})

	inWaitSuite(t, "end when they are woken, and say that they waited", func(s *waitSuite) {
		wake := make(chan struct{}, 1)
		ch := s.startClaimUntil(s.Context(), time.Hour, wake)
		wake <- struct{}{}
		a := <-ch
		if s.got(a, 0); a.Waited == 0 {
			s.Error("the claim does not say that it waited: its caller would wait once more")
		}
	})

	inWaitSuite(t, "end with their context, with nothing and without an error", func(s *waitSuite) {
		ctx, cancel := context.WithCancel(s.Context())
		ch := s.startClaim(ctx, time.Hour)
		cancel()
		s.got(<-ch, 0)
		ids := s.enqueue(1)
		s.got(answer{ClaimResult: store.ClaimResult{Tasks: s.claim("w", 1)}}, 1)
		s.sound(ids...)
	})

	inWaitSuite(t, "are unknown when their context ends during the commit", func(s *waitSuite) {
		ctx, cancel := context.WithCancel(s.Context())
		req := fixClaim("w", 1)
		ch := s.startClaim(ctx, time.Hour, func(r *store.ClaimRequest) { r.LeaseID = req.LeaseID })
		release := make(chan struct{})
		s.fail = func() error { cancel(); <-release; return nil }
		enqueued := make(chan error, 1)
		sub := s.drafts(1)
		go func() { enqueued <- s.submit(s.Context(), sub) }()
		a := <-ch
		says(s.T, a.err, store.ErrUnknown)
		close(release)
		if err := <-enqueued; err != nil {
			s.Fatal(err)
		}
		req.Again = true
		res, err := s.db.Claim(s.Context(), fixNS, req)
		s.finish(s.got(answer{ClaimResult: res, err: err}, 1)...)
		s.sound(idsOf(sub)...)
	})

	inWaitSuite(t, "go on waiting when the commit fails, and get nothing of it", func(s *waitSuite) {
		ch := s.startClaim(s.Context(), time.Hour)
		full := errors.New("disk full")
		s.fail = func() error { return full }
		sub := s.drafts(1)
		says(s.T, s.submit(s.Context(), sub), full)
		select {
		case a := <-ch:
			s.Fatalf("answered with %d tasks, error %v", len(a.Tasks), a.err)
		case <-time.After(time.Minute):
		}
		ids := s.enqueue(1)
		s.got(<-ch, 1)
		s.sound(ids...)
	})

	inWaitSuite(t, "fail when the commit ended in a panic", func(s *waitSuite) {
		ch := s.startClaim(s.Context(), time.Hour)
		s.fail = func() error { panic("boom") }
		if err := s.submit(s.Context(), s.drafts(1)); err == nil {
			s.Fatal("the enqueue succeeded")
		}
		a := <-ch
		says(s.T, a.err, store.ErrUnknown)
		s.sound()
	})

	inWaitSuite(t, "do not make the write fail that they share a commit with", func(s *waitSuite) {
		// A claim that cannot write its row, because its lease ID exists.
		ids := s.enqueue(1)
		claimed := s.claim("w", 1)
		ch := s.startClaim(s.Context(), time.Minute, func(r *store.ClaimRequest) { r.LeaseID = claimed[0].Lease.ID })
		ids = append(ids, s.enqueue(1)...)
		s.got(<-ch, 0)
		s.finish(claimed...)
		if got := s.claim("w", 1); len(got) != 1 {
			s.Error("the claim that failed left its task leased")
		}
		s.sound(ids...)
	})

	inWaitSuite(t, "are answered when the store is closed", func(s *waitSuite) {
		ch := s.startClaim(s.Context(), time.Hour)
		if err := s.db.Close(); err != nil {
			s.Fatal(err)
		}
		says(s.T, (<-ch).err, store.ErrClosed)
	})
}

func TestClaimsThatWaitForAGroup(t *testing.T) {
	inWaitSuite(t, "are answered once, although the group is done again one by one", func(s *waitSuite) {
		ch := s.startClaim(s.Context(), time.Hour)
		subs := []store.Submission{s.drafts(1), s.drafts(1)}
		failed := 0
		s.db.OnCommit(func(commit func() error) error {
			if failed++; failed == 2 { // 1: the leader
				return errOwn
			}
			return commit()
		})
		var errs [2]error
		grouped(s.T, s.db, func() { errs[0] = s.submit(context.Background(), subs[0]) }, func() { errs[1] = s.submit(context.Background(), subs[1]) })
		if err := errors.Join(errs[:]...); err != nil {
			s.Fatal(err)
		}
		got := s.got(<-ch, 1)
		if n := s.count("SELECT count(*) FROM weaver_tasks WHERE state = 'running'"); n != 1 {
			s.Errorf("%d tasks are leased, and one was handed out", n)
		}
		s.finish(got...)
		s.sound(append(idsOf(subs[0]), idsOf(subs[1])...)...)
	})

	inWaitSuite(t, "get nothing of a group whose commit failed", func(s *waitSuite) {
		ch := s.startClaim(s.Context(), time.Hour)
		failed := 0
		s.db.OnCommit(func(commit func() error) error {
			if failed++; failed > 1 { // the group, and each by itself
				return errOwn
			}
			return commit()
		})
		grouped(s.T, s.db,
			func() { says(s.T, s.submit(context.Background(), s.drafts(1)), errOwn) },
			func() { says(s.T, s.submit(context.Background(), s.drafts(1)), errOwn) })
		s.db.OnCommit(nil)
		select {
		case a := <-ch:
			s.Fatalf("answered with %d tasks, error %v", len(a.Tasks), a.err)
		case <-time.After(time.Minute):
		}
		s.enqueue(1)
		s.got(<-ch, 1)
	})

	inWaitSuite(t, "do not wait for what hints name, nor to look a lease up", func(s *waitSuite) {
		for name, change := range map[string]func(*store.ClaimRequest){
			"a hint":    func(r *store.ClaimRequest) { r.IDs = []task.ID{task.NewIDs(nil).New()} },
			"a look-up": func(r *store.ClaimRequest) { r.Again = true },
		} {
			began := time.Now()
			s.got(<-s.startClaim(s.Context(), time.Hour, change), 0)
			if waited := time.Since(began); waited != 0 {
				s.Errorf("%s waited %v", name, waited)
			}
		}
	})
}
