package soak_test

import (
	"fmt"
	"hash/fnv"
	"math/rand/v2"

	"github.com/goweaver/weaver/task"
)

// The job of TestLayers is a graph in layers. A seed determines the graph and the outcome of each attempt of each
// task. This file computes the final state of every task sequentially, without code of the engine.

// Probabilities in a layered job, in percent.
const (
	chanceFail     = 20 // per attempt
	chanceIfFailed = 12 // a task waits for failures
	chanceIfDone   = 25 // a task waits for ends
	chanceMayFail  = 10
)

const (
	layerAttempts = 3  // per task
	layerChildren = 25 // of each of the two tasks that decompose
)

// layerNode is a task of the job.
type layerNode struct {
	name    string
	needs   []int
	kind    task.EdgeKind // of the edges to its needs
	mayFail bool
	join    task.Join // set for a task that decomposes
}

// layeredJob returns layers × width tasks, each with one to three needs in earlier layers.
func layeredJob(seed uint64, layers, width int) []layerNode {
	rnd := rand.New(rand.NewPCG(seed, 0))
	chance := func(percent int) bool { return rnd.IntN(100) < percent }
	var nodes []layerNode
	for l := range layers {
		for w := range width {
			n := layerNode{name: fmt.Sprintf("n%d-%d", l, w), kind: task.OnSuccess, mayFail: chance(chanceMayFail)}
			if l > 0 {
				switch {
				case chance(chanceIfFailed):
					n.kind = task.OnFailed
				case chance(chanceIfDone):
					n.kind = task.OnDone
				}
				taken := make(map[int]bool)
				for range 1 + rnd.IntN(3) {
					// Mostly of the previous layer, so that the job is deep.
					from := (l - 1) * width
					if chance(25) {
						from = rnd.IntN(l) * width
					}
					// Avoid a task that needs the success of a skipped task and of a failed task: the reason of
					// its end would depend on which ended first.
					at := from + rnd.IntN(width)
					if n.kind == task.OnSuccess && nodes[at].kind == task.OnFailed {
						continue
					}
					if !taken[at] {
						taken[at] = true
						n.needs = append(n.needs, at)
					}
				}
			}
			nodes = append(nodes, n)
		}
	}
	// Two tasks decompose. They have no needs that could keep them from running.
	for i, join := range []task.Join{task.JoinRerun, task.JoinComplete} {
		n := &nodes[i]
		n.join, n.needs, n.kind = join, nil, task.OnSuccess
	}
	return nodes
}

// attemptFails reports whether the n-th counted attempt of a task fails; n starts at 1.
func attemptFails(seed uint64, name string, n int) bool {
	h := fnv.New64a()
	_, _ = h.Write([]byte(name))
	return rand.New(rand.NewPCG(seed+uint64(n)<<32, h.Sum64())).IntN(100) < chanceFail
}

// layerEnd is the final state of a task.
type layerEnd struct {
	State    task.State
	Kind     task.ErrorKind
	Attempts int // counted attempts
}

func (e layerEnd) String() string {
	return fmt.Sprintf("%s %s after %d attempts that count", e.State, e.Kind, e.Attempts)
}

// wentWrong reports whether the end satisfies an edge of the kind failed.
func (e layerEnd) wentWrong() bool {
	return e.State == task.Failed || e.State == task.Cancelled && e.Kind == task.KindDependencyFailed
}

// attemptsOf computes the attempts of a running task.
func attemptsOf(seed uint64, name string) layerEnd {
	for n := 1; n <= layerAttempts; n++ {
		if !attemptFails(seed, name, n) {
			return layerEnd{State: task.Succeeded, Attempts: n}
		}
	}
	return layerEnd{State: task.Failed, Kind: task.KindHandler, Attempts: layerAttempts}
}

// childName returns the name of the i-th child of a task.
func childName(parent string, i int) string { return fmt.Sprintf("%s/decompose[%d]", parent, i) }

// layerEnds computes the final state of each task, by name, and of the job.
func layerEnds(seed uint64, nodes []layerNode) (map[string]layerEnd, task.JobState) {
	ends, job := make(map[string]layerEnd), task.JobSucceeded
	for i := range nodes {
		n := &nodes[i]
		var met, wrong int
		for _, at := range n.needs {
			need := &nodes[at]
			end := ends[need.name]
			if end.wentWrong() {
				wrong++
			}
			if end.State == task.Succeeded || end.State == task.Failed && need.mayFail {
				met++
			}
		}
		end := layerEnd{State: task.Cancelled, Kind: task.KindDependencyFailed}
		switch {
		case n.kind == task.OnFailed && wrong == 0:
			end.Kind = task.KindNotNeeded
		case n.kind == task.OnSuccess && met < len(n.needs):
		case n.join != task.JoinNone:
			end = decomposedEnd(seed, n, ends)
		default:
			end = attemptsOf(seed, n.name)
		}
		ends[n.name] = end
	}
	for i := range nodes {
		end := ends[nodes[i].name]
		allowed := nodes[i].mayFail && end.State == task.Failed
		if end.State != task.Succeeded && end.Kind != task.KindNotNeeded && !allowed {
			job = task.JobFailed
		}
		if nodes[i].join == task.JoinNone {
			continue
		}
		for c := range layerChildren {
			if ends[childName(nodes[i].name, c)].State == task.Failed && !nodes[i].mayFail {
				job = task.JobFailed
			}
		}
	}
	return ends, job
}

// decomposedEnd computes the end of a task that decomposes, and of its children.
func decomposedEnd(seed uint64, n *layerNode, ends map[string]layerEnd) layerEnd {
	failed := 0
	for c := range layerChildren {
		name := childName(n.name, c)
		if ends[name] = attemptsOf(seed, name); ends[name].State == task.Failed {
			failed++
		}
	}
	switch {
	case n.join == task.JoinRerun: // its handler uses the outputs that exist
		return layerEnd{State: task.Succeeded, Attempts: 1}
	case failed > 0:
		return layerEnd{State: task.Failed, Kind: task.KindDependencyFailed}
	}
	return layerEnd{State: task.Succeeded}
}
