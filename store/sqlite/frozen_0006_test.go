package sqlite_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/goweaver/weaver"
	"github.com/goweaver/weaver/store"
)

// work0006 was written by a program whose last migration is 0006. WEAVER_FROZEN=write writes
// it anew only while there is no later migration.
var work0006 = frozenWork{
	file:   "testdata/0006.db",
	handle: handle0006,
	fills:  fill0006,
	goOn: func(p *frozenProgram) {
		ctx := p.Context()
		if err := errors.Join(
			frozenSignal.Send(ctx, p.eng, p.found["waits for a signal"], "key", "late"),
			frozenSignal.Send(ctx, p.eng, p.found["races"], "key", "late"),
			p.eng.ResumeTask(ctx, p.found["is paused"]),
			p.eng.ResumeType(ctx, pausedType.Name()),
		); err != nil {
			p.Error(err)
		}
		err := frozenSignal.Send(ctx, p.eng, p.found["has a signal"], "key", "another")
		says(p.T, err, weaver.ErrConflict)
	},
	states: map[string]string{
		"ends": "succeeded ", "ends again": "succeeded ", "waits for a signal": "pending signal", "has a signal": "pending sleep",
		"is answered": "succeeded ", "times out": "pending signal", "races": "pending signal", "calls": "pending children",
		"piece that ends": "succeeded ", "piece that sleeps": "pending sleep", "is called": "running ", "calls on": "pending children",
		"is paused": "pending delay", "its type is paused": "ready ", "spends": "pending sleep", "comes after": "pending deps",
	},
	ends: map[string]string{
		"ends": "old old", "ends again": "old old", "waits for a signal": "old late new", "has a signal": "old early new",
		"is answered": "old early old", "times out": "old nothing new", "races": "old late new", "calls": "old (old old) (old new) new",
		"piece that ends": "old old", "piece that sleeps": "old new", "is called": "old new", "calls on": "old (old new) new",
		"is paused": "new new", "its type is paused": "new new", "spends": "old new", "comes after": "new new",
	},
	check: func(p *frozenProgram, snap *store.Snapshot) {
		if j := snap.Jobs[0]; len(snap.Jobs) != 1 || j.Cost != 80 || j.Budget.MaxCost != 100 || j.AttemptsUsed == 0 {
			p.Errorf("the job has spent %d of %d, and %d attempts", j.Cost, j.Budget.MaxCost, j.AttemptsUsed)
		}
		for i := range snap.Tasks {
			if u := &snap.Tasks[i]; inputOf(u) == "ends again" && u.RerunOf != p.found["ends"] {
				p.Errorf("%q is a rerun of %v", inputOf(u), u.RerunOf)
			}
		}
	},
}

var frozenSignal = weaver.DefineSignal[string]("word")

// A file of 0006, with waits for signals, running calls, pauses and a partly used budget,
// upgrades and continues.
func TestFrozenWorkOf0006(t *testing.T) {
	t.Parallel()
	work0006.test(t)
}

func fill0006(p *frozenProgram) {
	ctx := p.Context()
	ok := func(err error) {
		p.Helper()
		if err != nil {
			p.Fatal(err)
		}
	}
	ends := p.enqueue("ends")
	early := []weaver.TaskID{p.enqueue("has a signal"), p.enqueue("is answered", weaver.Delay(time.Millisecond))}
	for _, kind := range []string{"waits for a signal", "times out", "races", "calls", "calls on"} {
		p.enqueue(kind)
	}
	for _, id := range early {
		ok(frozenSignal.Send(ctx, p.eng, id, "key", "early"))
	}
	ok(p.eng.PauseTask(ctx, p.enqueue("is paused", weaver.Delay(time.Minute)), weaver.By("ann")))
	ok(p.eng.PauseType(ctx, pausedType.Name(), weaver.By("ann")))
	_, err := pausedType.Enqueue(ctx, p.eng, "its type is paused")
	ok(err)
	time.Sleep(time.Second)
	_, err = p.eng.Rerun(ctx, ends, weaver.RerunInput("ends again"))
	ok(err)
	j := weaver.NewJob("nightly", weaver.Budget{MaxTotalAttempts: 10, MaxCost: 100})
	j.Add("after", frozenType.With("comes after"), weaver.Needs(j.Add("first", frozenType.With("spends"))))
	_, err = p.eng.Submit(ctx, j)
	ok(err)
}

func handle0006(ctx context.Context, p *frozenProgram, kind string) (string, error) {
	spend := func(name string) error {
		return weaver.Do(ctx, name, func(ctx context.Context) error { return weaver.Spend(ctx, 40) })
	}
	called := func(kinds ...string) (text string, err error) {
		outs, err := weaver.CallAll(ctx, "pieces", frozenType, kinds)
		for _, out := range outs {
			text += " (" + out + ")"
		}
		return text, err
	}
	switch kind {
	case "has a signal":
		if err := weaver.Sleep(ctx, "nap", time.Hour); err != nil {
			return "", err
		}
		return p.word(ctx, 0)
	case "waits for a signal", "is answered":
		return p.word(ctx, 0)
	case "times out":
		return p.word(ctx, 30*time.Minute)
	case "races":
		var word string
		first, err := weaver.Race(ctx, "which", weaver.OnSleep(2*time.Hour), weaver.OnSignal(frozenSignal, &word))
		if err == nil && first != 1 {
			err = weaver.Permanent(fmt.Errorf("%d came first", first))
		}
		return " " + word, err
	case "calls":
		return called("piece that ends", "piece that sleeps")
	case "calls on":
		return called("is called")
	case "is called":
		return handle0005(ctx, p, "runs")
	case "piece that sleeps":
		return handle0005(ctx, p, "sleeps")
	case "spends":
		if err := errors.Join(spend("before"), weaver.Sleep(ctx, "nap", time.Hour)); err != nil {
			return "", err
		}
		return "", spend("after")
	}
	return "", nil
}

// word waits for a signal.
func (p *frozenProgram) word(ctx context.Context, timeout time.Duration) (string, error) {
	word, ok, err := frozenSignal.Wait(ctx, "approval", timeout)
	if err == nil && !ok {
		word = "nothing"
	}
	return " " + word, err
}
