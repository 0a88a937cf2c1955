package rules_test

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/goweaver/weaver/internal/rules"
	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/task"
)

// graphOf returns n tasks in a random order, each with needs among earlier tasks.
func graphOf(rng *rand.Rand, ids *task.IDs, n int) []task.New {
	tasks := make([]task.New, n)
	for i := range tasks {
		tasks[i].ID = ids.New()
	}
	order := rng.Perm(n)
	for at, i := range order {
		for _, need := range order[:at] {
			if rng.IntN(4) == 0 {
				tasks[i].Needs = append(tasks[i].Needs, task.Edge{Needs: tasks[need].ID, Kind: task.OnSuccess})
			}
		}
	}
	return tasks
}

func TestParts_AreOrdered(t *testing.T) {
	t.Parallel()
	rng, ids := rand.New(rand.NewPCG(1, 2)), task.NewIDs(nil)
	for range 200 {
		tasks := graphOf(rng, ids, 1+rng.IntN(20))
		weight := 2 + rng.IntN(6)
		stored, edges := map[task.ID]int{}, make([]int, len(tasks))
		var roots []int
		at := 0
		for _, part := range rules.Parts(tasks, weight) {
			sum := 0
			for _, p := range part {
				n := &tasks[p.Task]
				if _, again := stored[n.ID]; again != p.More() {
					t.Fatalf("element %+v, stored before: %v", p, again)
				}
				if p.From != edges[p.Task] {
					t.Fatalf("element %+v comes after %d edges", p, edges[p.Task])
				}
				edges[p.Task] = p.To
				sum += p.To - p.From
				if p.More() {
					continue
				}
				sum += 2
				at++
				stored[n.ID] = at
				if len(n.Needs) == 0 {
					roots = append(roots, p.Task)
				} else if len(roots) > 0 {
					t.Fatal("a task with needs comes after one without")
				}
			}
			if sum > 2*weight {
				t.Errorf("a part weighs %d halves, want at most %d", sum, 2*weight)
			}
		}
		for i := range tasks {
			if stored[tasks[i].ID] == 0 || edges[i] != len(tasks[i].Needs) {
				t.Fatalf("task %d is stored at %d with %d of %d edges", i, stored[tasks[i].ID], edges[i], len(tasks[i].Needs))
			}
			for _, e := range tasks[i].Needs {
				if stored[e.Needs] < stored[tasks[i].ID] {
					t.Fatal("a need comes before its dependent")
				}
			}
		}
		if !slices.IsSorted(roots) {
			t.Errorf("the tasks without needs come in the order %v", roots)
		}
	}
}

func TestParts_RefusesOtherGraphs(t *testing.T) {
	t.Parallel()
	ids := task.NewIDs(nil)
	tasks := []task.New{{ID: ids.New()}, {ID: ids.New()}}
	tasks[0].Needs = []task.Edge{{Needs: ids.New()}}
	if got := rules.Parts(tasks, 10); got != nil {
		t.Errorf("an edge to another task: %v", got)
	}
	tasks[0].Needs = []task.Edge{{Needs: tasks[1].ID}}
	tasks[1].Needs = []task.Edge{{Needs: tasks[0].ID}}
	if got := rules.Parts(tasks, 10); got != nil {
		t.Errorf("a cycle: %v", got)
	}
}

func TestInParts(t *testing.T) {
	t.Parallel()
	large := func(change func(*store.Submission)) *store.Submission {
		sub := &store.Submission{Job: &task.NewJob{}, Tasks: make([]task.New, 11)}
		change(sub)
		return sub
	}
	for name, c := range map[string]struct {
		sub  *store.Submission
		want bool
	}{
		"a large job": {large(func(*store.Submission) {}), true},
		"a small job": {large(func(s *store.Submission) { s.Tasks = s.Tasks[:10] }), false},
		"many edges":  {large(func(s *store.Submission) { s.Tasks = s.Tasks[:2]; s.Tasks[0].Needs = make([]task.Edge, 18) }), true},
		"no job":      {large(func(s *store.Submission) { s.Job = nil }), false},
		"a key":       {large(func(s *store.Submission) { s.Tasks[10].IdempotencyKey = "k" }), false},
		"coalesces":   {large(func(s *store.Submission) { s.Tasks[10].Coalesce = true }), false},
		"large inputs": {large(func(s *store.Submission) {
			s.Tasks[0].Input, s.Tasks[1].Input = make([]byte, rules.MaxDraftBytes), make([]byte, 1)
		}), false},
	} {
		if got := rules.InParts(c.sub, 10); got != c.want {
			t.Errorf("%s is stored in parts: %v, want %v", name, got, c.want)
		}
	}
}
