package sqlite_test

import (
	"context"
	"testing"
	"time"

	"github.com/goweaver/weaver/store"
)

// A lease counts from just before the transaction that granted it (R5). With a later start the
// worker would rely on it for too long. With an earlier start it would be over before its
// handler begins.
func TestWaitingClaimsSayWhenTheirTransactionBegan(t *testing.T) {
	t.Parallel()

	inWaitSuite(t, "not when it was committed", func(s *waitSuite) {
		ch := s.startClaim(s.Context(), time.Hour)
		time.Sleep(time.Minute)
		s.fail = func() error { time.Sleep(5 * time.Second); return nil } // a slow disk
		s.enqueue(1)
		a := <-ch
		s.got(a, 1)
		if a.Waited != time.Minute {
			s.Errorf("waited %s, want 1m: the lease began before its commit, which took 5s", a.Waited)
		}
		if got, want := a.Tasks[0].Task.LeaseExpiresAt, a.Now.Add(fixTTL); got.After(want) {
			s.Errorf("the lease expires at %s, a TTL after %s is %s", got, a.Now, want)
		}
	})

	inWaitSuite(t, "not when an earlier group ran the claim for nothing", func(s *waitSuite) {
		ch := s.startClaim(s.Context(), time.Hour, func(r *store.ClaimRequest) { r.Queues = map[string]int{"billing": 1} })
		s.enqueueIn("default")
		time.Sleep(10 * time.Minute)
		s.enqueueIn("default")
		time.Sleep(10 * time.Minute)
		s.enqueueIn("billing")
		a := <-ch
		s.got(a, 1)
		if a.Waited != 20*time.Minute {
			s.Errorf("waited %s, want 20m: the groups before had nothing for this claim", a.Waited)
		}
	})

	inWaitSuite(t, "the one that was committed, when the first was lost", func(s *waitSuite) {
		ch := s.startClaim(s.Context(), time.Hour)
		subs := []store.Submission{s.drafts(1), s.drafts(1)}
		commits := 0
		s.db.OnCommit(func(commit func() error) error {
			if commits++; commits == 2 { // 1: the leader
				time.Sleep(7 * time.Second)
				return errOwn
			}
			return commit()
		})
		grouped(s.T, s.db, func() { _ = s.submit(context.Background(), subs[0]) }, func() { _ = s.submit(context.Background(), subs[1]) })
		a := <-ch
		s.got(a, 1)
		if a.Waited < 7*time.Second {
			s.Errorf("waited %s, want the 7s of the transaction that was lost, too", a.Waited)
		}
	})
}

// enqueueIn stores a task in a queue.
func (s *waitSuite) enqueueIn(queue string) {
	s.Helper()
	sub := s.drafts(1)
	sub.Tasks[0].Queue = queue
	if err := s.submit(s.Context(), sub); err != nil {
		s.Fatal(err)
	}
}
