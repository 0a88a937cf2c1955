package soak_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/goweaver/weaver/task"
)

// lifeSummary summarises the log of one process.
type lifeSummary struct {
	role         string
	born, killed time.Time
	how          string // the kind of its kill
	phase        string // the last one it logged
	first        time.Time
	open         int // handlers running at its end
	steps, txs   int // functions of Step and StepTx running at its end
}

func (e *evidence) lives() map[int]*lifeSummary {
	stories := make(map[int]*lifeSummary)
	txs := make(map[string]bool)
	for _, recipe := range recipes {
		for _, m := range recipe {
			if m.do == doTx || m.do == doHand {
				txs[m.names[0]] = true
			}
		}
	}
	for _, l := range e.log {
		s := stories[l.life]
		if s == nil {
			s = &lifeSummary{}
			stories[l.life] = s
		}
		count := &s.steps
		if txs[l.name] {
			count = &s.txs
		}
		switch l.what {
		case lineBorn:
			s.born, s.role = time.Unix(0, l.at), l.name
		case lineProcess:
			s.phase = l.name
		case lineKill:
			s.killed, s.how = time.Unix(0, l.at), l.name
		case lineEnter:
			s.open++
		case lineExit:
			s.open--
		case lineStart:
			if s.first.IsZero() {
				s.first = time.Unix(0, l.at)
			}
			*count++
		case lineReturn, lineFail:
			*count--
		}
	}
	return stories
}

// figures reports the calls hit by kills, and the times until work resumed.
func (e *evidence) figures() string {
	stories := e.lives()
	hits, hows, calls := make(map[string]int), make(map[string]int), make(map[string]int)
	kills, producers := 0, 0
	for id, s := range stories {
		if s.killed.IsZero() {
			continue
		}
		hows[s.how]++
		if s.role == "producer" {
			producers++
			continue
		}
		kills++
		for what, hit := range map[string]bool{
			"while handlers ran":             s.open > 0,
			"in functions of steps":          s.steps > 0,
			"in a function of StepTx":        s.txs > 0,
			"before the database was open":   s.phase == phaseUp || s.phase == "",
			"before the first step started":  s.first.IsZero(),
			"in a drain":                     s.phase == phaseDrain,
			"after the engine ended":         s.phase == phaseLeft,
			"when no handler ran in between": s.open == 0 && !s.first.IsZero(),
		} {
			if hit {
				hits[what]++
			}
		}
		for _, c := range e.calls[id] {
			calls[c]++
		}
	}
	restarts, gaps := continuations(stories)
	outcomes := make(map[task.Outcome]int)
	for _, a := range e.snap.Attempts {
		outcomes[a.Outcome]++
	}
	var b strings.Builder
	fmt.Fprintf(&b, "tasks: %d in %d jobs; attempts: %d %s; steps: %d; lines of the log: %d\n",
		len(e.snap.Tasks), len(e.snap.Jobs), len(e.snap.Attempts), counted(outcomes), len(e.snap.Steps), len(e.log))
	fmt.Fprintf(&b, "kills of workers: %d, of producers: %d; processes: %d\n", kills, producers, len(stories)-1)
	fmt.Fprintf(&b, "  how:  %s\n  hit:  %s\n  with these calls to the store under way (a claim may have been waiting): %s\n", counted(hows), counted(hits), counted(calls))
	fmt.Fprintf(&b, "from the start of a process to its first step: %s\n", spread(restarts))
	fmt.Fprintf(&b, "from a kill to the first step of a process started after it: %s\n", spread(gaps))
	fmt.Fprintf(&b, "from a kill until a lease was taken over, further kills included: %s\n", spread(e.takeovers(stories)))
	fmt.Fprintf(&b, "%s\n", e.visitFigures())
	fmt.Fprintf(&b, "lock files left: %d; warnings: %s", e.lockFiles, counted(e.warnings()))
	return b.String()
}

// continuations returns the times from the start of a worker to its first step. It also returns the times from the
// preceding kill, for workers started after a kill.
func continuations(stories map[int]*lifeSummary) (restarts, gaps []time.Duration) {
	var killed time.Time
	for _, id := range slices.Sorted(maps.Keys(stories)) {
		s := stories[id]
		if s.role != "worker" {
			continue
		}
		if !s.first.IsZero() {
			restarts = append(restarts, s.first.Sub(s.born))
			if !killed.IsZero() && killed.Before(s.born) {
				gaps = append(gaps, s.first.Sub(killed))
			}
			killed = time.Time{}
		}
		if s.how != "the-second" && !s.killed.IsZero() {
			killed = s.killed
		}
	}
	return restarts, gaps
}

// takeovers returns the times from a worker's death to the end of each lease that it held.
func (e *evidence) takeovers(stories map[int]*lifeSummary) (all []time.Duration) {
	killed := make(map[string][]time.Time) // by process ID, which may be reused
	for life, s := range stories {
		if !s.killed.IsZero() {
			pid := fmt.Sprint(e.pids[life])
			killed[pid] = append(killed[pid], s.killed)
		}
	}
	for _, a := range e.snap.Attempts {
		if a.Outcome != task.OutcomeLeaseLost {
			continue
		}
		var last time.Time
		for _, at := range killed[pidOf(a.Worker)] {
			if at.Before(a.FinishedAt) && at.After(last) {
				last = at
			}
		}
		if !last.IsZero() {
			all = append(all, a.FinishedAt.Sub(last))
		}
	}
	return all
}

// warnings counts the warnings of the processes, by message.
func (e *evidence) warnings() map[string]int {
	n := make(map[string]int)
	for _, text := range e.stderr {
		for l := range strings.Lines(text) {
			if _, rest, ok := strings.Cut(l, " msg="); ok {
				msg, _, _ := strings.Cut(strings.TrimPrefix(rest, `"`), `"`)
				n[strings.TrimSpace(msg)]++
			}
		}
	}
	return n
}

func counted[K ~string](n map[K]int) string {
	var parts []string
	for _, k := range slices.Sorted(maps.Keys(n)) {
		parts = append(parts, fmt.Sprintf("%s %d", k, n[k]))
	}
	return "(" + strings.Join(parts, ", ") + ")"
}

func spread(all []time.Duration) string {
	if len(all) == 0 {
		return "never"
	}
	slices.Sort(all)
	ms := func(d time.Duration) string { return d.Round(100 * time.Microsecond).String() }
	return fmt.Sprintf("median %s, 95 %% %s, worst %s (%d times)",
		ms(all[len(all)/2]), ms(all[len(all)*95/100]), ms(all[len(all)-1]), len(all))
}
