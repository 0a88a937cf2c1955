package soak_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/goweaver/weaver"
	"github.com/goweaver/weaver/store/sqlite"
)

// TestKillStorm kills workers of 8 slots, and producers, at any moment. That includes their start, the functions of
// steps, calls to the store before and after the commit, and drains. At times two workers share the file. After the
// last kill a worker runs to the end. All acknowledged work must then be done correctly.
func TestKillStorm(t *testing.T) {
	if testing.Short() {
		t.Skip("make test runs this")
	}
	t.Parallel()
	s := newStorm(t, sizeOfStorm(t), seedOfStorm(t))
	for s.kills < s.size.kills {
		s.round()
	}
	s.finish()
	e := s.evidence()
	for _, v := range e.check() {
		t.Errorf("violation: %s", v)
	}
	t.Logf("seed %d\n%s", s.seed, e.figures())
	if t.Failed() {
		t.Logf("the stderr of the processes:\n%s", e.stderrTails())
	}
}

// storm runs a producer, a worker and at times a second worker, and kills them.
type storm struct {
	testing.TB
	dir  string
	size stormSize
	seed uint64
	rng  *rand.Rand
	log  *stepLog // of this process: starts and kills

	lives    int
	kills    int // of workers
	pids     map[int]int
	kinds    []int // of the kills to come
	producer *process
	second   *process
}

func newStorm(t testing.TB, size stormSize, seed uint64) *storm {
	t.Helper()
	s := &storm{TB: t, dir: t.ArtifactDir(), size: size, seed: seed, rng: rand.New(rand.NewPCG(seed, 0)), pids: make(map[int]int)}
	var err error
	if s.log, err = openStepLog(s.dir, 0); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("the storm of seed %d", seed)
		}
		if err := s.log.close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

func (s *storm) start(role string, p plan, visits int) *process {
	s.lives++
	s.sayOf(s.lives, lineBorn, role)
	proc := startProcess(s, childConfig{
		Role: role, Dir: s.dir, Life: s.lives, Plan: p, Pause: s.size.pause, Tasks: s.size.tasks, Nodes: s.size.nodes, Visits: visits,
	})
	s.pids[proc.life] = proc.cmd.Process.Pid
	return proc
}

func (s *storm) sayOf(life int, what, name string) {
	s.log.write(line{life: life, what: what, task: "-", name: name})
}

// kill logs a kill and kills the process like kill -9. It returns false when the process had ended by itself.
func (s *storm) kill(p *process, why string) bool {
	if !p.gone() {
		s.sayOf(p.life, lineKill, why)
	}
	p.kill()
	// The exit code of a kill differs between systems.
	if said := stderrOf(s.dir, p.life); endedByItself(said) {
		s.Fatalf("the %s of life %d ended by itself: %v\n%s", p.role, p.life, p.cmd.ProcessState, said)
	}
	return !p.cmd.ProcessState.Success()
}

// killing is the kind of kill in a round.
type killing struct {
	name  string
	plan  plan
	after time.Duration // after its start or, with drain, after the request to end
	drain bool
}

// choose draws the next kill. Each kind hits a situation that the others hit only by chance; ten in a row include
// every kind.
func (s *storm) choose() killing {
	if len(s.kinds) == 0 {
		s.kinds = s.rng.Perm(10)
	}
	card := s.kinds[0]
	s.kinds = s.kinds[1:]
	p := plan{Nth: 1 + s.rng.IntN(25), After: s.rng.IntN(2) == 0, Delay: s.upTo(2 * time.Millisecond)}
	switch card {
	case 0:
		return killing{name: "after-a-while", after: s.upTo(600 * time.Millisecond)}
	case 1:
		return killing{name: "at-start-up", after: s.upTo(100 * time.Millisecond)}
	case 2:
		return killing{name: "after-lines", plan: plan{Lines: 1 + s.rng.Int64N(150)}, after: lastMoment}
	case 3:
		return killing{name: "in-a-drain", plan: plan{Lines: 1 + s.rng.Int64N(100)}, after: s.upTo(40 * time.Millisecond), drain: true}
	case 4:
		p.Call = "Claim"
	case 5:
		p.Call = "Finish"
	case 6:
		p.Call = "Record"
	case 7, 8:
		p.Call, p.Nth, p.After = "StepTx", 1+s.rng.IntN(4), card == 7 // there are few
	case 9:
		p.Call, p.Nth = []string{"Reap", "Join"}[s.rng.IntN(2)], 1 // there may be only one
	}
	return killing{name: "in-a-call", plan: p, after: lastMoment}
}

func (s *storm) upTo(d time.Duration) time.Duration { return time.Duration(s.rng.Int64N(int64(d))) }

// round starts a worker and kills it.
func (s *storm) round() {
	s.keepProducer()
	k := s.choose()
	w := s.start("worker", k.plan, s.size.visits)
	s.secondWorker()
	s.carryOut(w, k)
}

// carryOut waits for the moment of a kill and kills.
func (s *storm) carryOut(w *process, k killing) {
	if k.drain {
		s.await(w, lastMoment)
		w.askToEnd()
		timer := time.NewTimer(k.after)
		defer timer.Stop()
		select {
		case <-timer.C:
		case <-w.ended:
		}
	} else {
		s.await(w, k.after)
	}
	if s.kill(w, k.name) {
		s.kills++
	}
}

// await waits for the moment of the worker's plan, up to a limit.
func (s *storm) await(w *process, longest time.Duration) {
	timer := time.NewTimer(longest)
	defer timer.Stop()
	select {
	case <-w.moment:
	case <-w.ended: // it killed itself
	case <-timer.C:
	}
}

// secondWorker starts a second worker at times, and ends it by a kill or a drain.
func (s *storm) secondWorker() {
	switch {
	case s.second == nil && s.rng.IntN(4) == 0:
		s.second = s.start("worker", plan{}, s.size.visits)
	case s.second != nil && s.rng.IntN(3) == 0:
		s.second.askToEnd()
		s.second.end()
		s.second = nil
	case s.second != nil && s.rng.IntN(3) == 0 && s.kills < s.size.kills-1:
		if s.kill(s.second, "the-second") {
			s.kills++
		}
		s.second = nil
	}
}

// keepProducer keeps a producer running that enqueues a little faster than the kills progress, so that workers always
// have work. Each producer kills itself just after it recorded acknowledgements.
func (s *storm) keepProducer() {
	if s.producer != nil && s.producer.gone() {
		s.kill(s.producer, "") // fails the test if the producer should not have ended
		s.producer = nil
	}
	if s.producer == nil {
		most := max(1, s.size.tasks/bundle/8)
		s.producer = s.start("producer", plan{Lines: 1 + s.rng.Int64N(int64(most)), Delay: s.upTo(2 * time.Millisecond)}, s.size.visits)
	}
	s.producer.send(fmt.Sprint((s.kills + 2) * s.size.tasks / s.size.kills))
}

// finish has the remaining tasks enqueued and run.
func (s *storm) finish() {
	s.sayOf(0, lineProcess, "calm")
	if s.producer != nil {
		s.kill(s.producer, "the-producer")
	}
	last := s.start("producer", plan{}, 0)
	last.send(fmt.Sprint(s.size.tasks))
	last.askToEnd()
	w := s.start("worker", plan{}, 0)
	last.end()
	done := s.untilDone()
	for _, p := range []*process{s.second, w} {
		switch {
		case p == nil:
		case done:
			p.askToEnd()
			p.end()
		default:
			s.kill(p, "in-the-end") // the evidence has the details
		}
	}
}

// untilDone waits until every task has ended. It returns false on a timeout.
func (s *storm) untilDone() bool {
	s.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), timeout+s.size.calm)
	defer cancel()
	db, err := sqlite.Open(ctx, databasePath(s.dir))
	if err != nil {
		s.Fatal(err)
	}
	defer db.Close()
	client, err := weaver.NewClient(db, weaver.ClientConfig{Logger: stderrLog()})
	if err != nil {
		s.Fatal(err)
	}
	for {
		if ctx.Err() != nil {
			s.Error("the tasks do not come to an end")
			return false
		}
		open, _, err := client.List(ctx, weaver.Filter{
			States: []weaver.State{weaver.StatePending, weaver.StateReady, weaver.StateRunning}, Types: servedTypes(), Limit: 200,
		})
		if err != nil {
			s.Fatalf("while waiting for the end: %v\n%s", err, stderrOf(s.dir, s.lives))
		}
		if len(open) == 0 {
			return true
		}
		for _, task := range open {
			_, err := client.Wait(ctx, task.ID)
			if ctx.Err() != nil {
				s.Errorf("task %s is %s and does not end", task.ID, task.State)
				return false
			}
			if _, failed := errors.AsType[*weaver.TaskError](err); err != nil && !failed && !errors.Is(err, weaver.ErrBlocked) {
				s.Fatal(err)
			}
		}
	}
}
