package delivery_test

import (
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/goweaver/weaver/delivery"
	"github.com/goweaver/weaver/delivery/deliverytest"
	"github.com/goweaver/weaver/task"
)

func TestMemory(t *testing.T) {
	t.Parallel()
	deliverytest.Run(t, func(*testing.T) delivery.Transport { return delivery.NewMemory() })
}

var mail = delivery.Lane{Queue: "default", Type: "mail"}

func hint(l delivery.Lane, n byte) delivery.Hint { return delivery.Hint{Lane: l, Task: task.ID{15: n}} }

// Waiting Pops are served in the order of their calls, each once, and only with lanes that they serve.
func TestMemory_WaitingPopsTakeTurns(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		m := delivery.NewMemory()
		got := make([][]task.ID, 4)
		for i, lanes := range [][]delivery.Lane{{{Queue: "default", Type: "other"}}, {mail}, {{Type: "mail"}}, {mail}} {
			go func() { got[i], _ = m.Pop(t.Context(), "ns", lanes, 2, time.Hour) }()
			synctest.Wait()
		}
		start := time.Now()
		err := m.Push(t.Context(), "ns", []delivery.Hint{hint(mail, 1), hint(mail, 2), hint(mail, 3)})
		synctest.Wait()
		if want := [][]task.ID{nil, {{15: 1}, {15: 2}}, {{15: 3}}, nil}; err != nil || !slices.EqualFunc(got, want, slices.Equal) {
			t.Errorf("Push = %v, popped %v, want %v", err, got, want)
		}
		if waited := time.Since(start); waited != 0 {
			t.Errorf("the Pops returned after %v", waited)
		}
		if err := m.Close(); err != nil {
			t.Error(err)
		}
	})
}

func TestMemory_WaitsForTheWholeWait(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		ids, err := delivery.NewMemory().Pop(t.Context(), "ns", []delivery.Lane{mail}, 1, 3*time.Second)
		if waited := time.Since(start); ids != nil || err != nil || waited != 3*time.Second {
			t.Errorf("Pop = %v, %v after %v; want nothing after 3 s", ids, err, waited)
		}
	})
}

// A full lane keeps its oldest hints, and other lanes are not affected.
func TestMemory_DropsOverflow(t *testing.T) {
	t.Parallel()
	m := delivery.NewMemory()
	other := delivery.Lane{Queue: "other", Type: "mail"}
	hints := make([]delivery.Hint, delivery.MaxPerLane+5)
	for i := range hints {
		hints[i] = delivery.Hint{Lane: mail, Task: task.ID{0: byte(i >> 16), 1: byte(i >> 8), 2: byte(i)}}
	}
	if err := m.Push(t.Context(), "ns", append(hints, hint(other, 1))); err != nil {
		t.Fatal(err)
	}
	ids, err := m.Pop(t.Context(), "ns", []delivery.Lane{mail}, 2*delivery.MaxPerLane, 0)
	if err != nil || len(ids) != delivery.MaxPerLane || ids[0] != hints[0].Task || ids[len(ids)-1] != hints[len(ids)-1].Task {
		t.Errorf("popped %d hints, %v; want the first %d", len(ids), err, delivery.MaxPerLane)
	}
	if ids, err = m.Pop(t.Context(), "ns", []delivery.Lane{mail, other}, 10, 0); err != nil || len(ids) != 1 {
		t.Errorf("popped %v, %v; want the hint of the other lane", ids, err)
	}
}
