// Command bench measures Weaver beside its peers, in one run on one machine,
// and reports ratios: absolute figures move between machines and hours.
//
// Every Weaver figure is with what users get: attempts recorded, and
// synchronous=FULL unless the row says NORMAL. Peers that need another
// language or a server are quoted with the figure that was measured for them
// on a machine of this kind (see quoted).
//
//	make bench BENCH='[-n 50000] [-runs 5] [-only noop,step,seq,idle,enqueue,pipeline] [-cpuprofile FILE]'
//
// Built by hand it needs the linker flag that the Makefile gives it: both
// SQLite drivers in this program register themselves as "sqlite3", and that
// flag gives Weaver's no name, which it does not need.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"runtime"
	"runtime/pprof"
	"slices"
	"strings"
	"text/tabwriter"
	"time"
)

// quoted are peers' figures that this program does not measure itself, per
// second: 2 vCPU, Node 20 (@coji/durably 0.15.0 on a libsql file), DBOS
// Transact Go v1.2.0.
var quoted = struct {
	durablyOneStep, durablySequential          float64
	dbosOneStep, dbosSequentialNormal          float64
	backliteIdleP50, durablyIdleP50, riverIdle time.Duration
}{
	durablyOneStep: 241, durablySequential: 805,
	dbosOneStep: 2400, dbosSequentialNormal: 9698,
	backliteIdleP50: 320 * time.Microsecond, durablyIdleP50: 11300 * time.Microsecond, riverIdle: 2 * time.Millisecond,
}

func main() {
	n := flag.Int("n", 50000, "no-op tasks per run; other benchmarks scale from it")
	runs := flag.Int("runs", 5, "runs of each; the median and the range are reported")
	only := flag.String("only", "", "comma-separated: noop, step, seq, idle, enqueue, pipeline; default all")
	profile := flag.String("cpuprofile", "", "write a CPU profile to this file")
	flag.Parse()
	if *profile != "" {
		f, err := os.Create(*profile)
		if err == nil {
			err = pprof.StartCPUProfile(f)
		}
		if err != nil {
			fmt.Fprintln(os.Stderr, "bench:", err)
			os.Exit(1)
		}
		defer pprof.StopCPUProfile()
	}
	if err := run(context.Background(), *n, *runs, *only); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

// figure is one measured quantity over all runs.
type figure []float64

func (f figure) median() float64 {
	s := slices.Sorted(slices.Values(f))
	return s[len(s)/2]
}

func (f figure) String() string {
	return fmt.Sprintf("%s (%s–%s)", human(f.median()), human(slices.Min(f)), human(slices.Max(f)))
}

func human(v float64) string {
	switch {
	case v >= 10000:
		return fmt.Sprintf("%.1fk", v/1000)
	case v >= 100:
		return fmt.Sprintf("%.0f", v)
	}
	return fmt.Sprintf("%.2f", v)
}

func run(ctx context.Context, n, runs int, only string) error {
	want := func(name string) bool { return only == "" || slices.Contains(strings.Split(only, ","), name) }
	fmt.Printf("%s %s/%s, %d CPUs, %d runs each: median (range)\n\n", runtime.Version(), runtime.GOOS, runtime.GOARCH, runtime.NumCPU(), runs)
	w := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', 0)
	defer func() { _ = w.Flush() }() // a table on stdout
	row := func(cols ...string) { fmt.Fprintln(w, strings.Join(cols, "\t")) }
	row("benchmark", "Weaver", "peer", "ratio")

	if want("noop") {
		var ours, oursNormal, theirs figure
		for range runs {
			// Alternating, so that a slow minute of the machine hits both.
			for _, m := range []struct {
				to *figure
				fn func() (float64, error)
			}{
				{&ours, func() (float64, error) { return noop(ctx, n, full) }},
				{&theirs, func() (float64, error) { return backliteNoop(ctx, n) }},
				{&oursNormal, func() (float64, error) { return noop(ctx, n, normal) }},
			} {
				v, err := m.fn()
				if err != nil {
					return err
				}
				*m.to = append(*m.to, v)
			}
		}
		row("no-op tasks/s, FULL", ours.String(), "backlite NORMAL "+theirs.String(), ratio(ours.median()/theirs.median()))
		row("no-op tasks/s, NORMAL", oursNormal.String(), "backlite NORMAL "+theirs.String(), ratio(oursNormal.median()/theirs.median()))
	}
	measure := func(fn func() (float64, error)) (figure, error) {
		var f figure
		for range runs {
			v, err := fn()
			if err != nil {
				return nil, err
			}
			f = append(f, v)
		}
		return f, nil
	}
	if want("step") {
		f, err := measure(func() (float64, error) { return oneStep(ctx, n/2, full) })
		if err != nil {
			return err
		}
		row("one-step tasks/s, FULL", f.String(), fmt.Sprintf("durably %.0f (quoted)", quoted.durablyOneStep), ratio(f.median()/quoted.durablyOneStep))
		row("", "", fmt.Sprintf("DBOS %.0f (quoted)", quoted.dbosOneStep), ratio(f.median()/quoted.dbosOneStep))
	}
	if want("seq") {
		for _, mode := range []syncMode{full, normal} {
			f, err := measure(func() (float64, error) { return sequential(ctx, max(n/10, 100), mode) })
			if err != nil {
				return err
			}
			peer, name := quoted.durablySequential, "durably"
			if mode == normal {
				peer, name = quoted.dbosSequentialNormal, "DBOS NORMAL"
			}
			row("sequential steps/s of one task, "+mode.String(), f.String(), fmt.Sprintf("%s %.0f (quoted)", name, peer), ratio(f.median()/peer))
		}
	}
	if want("idle") {
		var p50, p99, peer figure
		for range runs {
			lat, err := idle(ctx, 300, full)
			if err != nil {
				return err
			}
			slices.Sort(lat)
			p50 = append(p50, float64(lat[len(lat)/2])/1e6)
			p99 = append(p99, float64(lat[len(lat)*99/100])/1e6)
			theirs, err := backliteIdle(ctx, 300)
			if err != nil {
				return err
			}
			slices.Sort(theirs)
			peer = append(peer, float64(theirs[len(theirs)/2])/1e6)
		}
		row("idle enqueue → handler, ms p50, FULL", p50.String(), "backlite NORMAL "+peer.String(), ratio(p50.median()/peer.median()))
		row("idle enqueue → handler, ms p99, FULL", p99.String(), "", "")
	}
	if want("enqueue") {
		one, err := measure(func() (float64, error) { return enqueueSingle(ctx, n/10, 1, full) })
		if err != nil {
			return err
		}
		many, err := measure(func() (float64, error) { return enqueueSingle(ctx, n/2, 64, full) })
		if err != nil {
			return err
		}
		batch, err := measure(func() (float64, error) { return enqueueBatch(ctx, n, full) })
		if err != nil {
			return err
		}
		row("single enqueues/s, 1 goroutine, FULL", one.String(), "", "")
		row("single enqueues/s, 64 goroutines, FULL", many.String(), "1 goroutine "+one.String(), ratio(many.median()/one.median()))
		row("enqueues/s in batches of 1,000, FULL", batch.String(), "", "")
	}
	if want("pipeline") {
		ours, theirs, err := pipelines(ctx, runs)
		if err != nil {
			return err
		}
		row("ms per command, weaver run, 8 slots, FULL", ours.String(), "xargs -P 8 "+theirs.String(), ratio(ours.median()/theirs.median()))
	}
	return nil
}

func ratio(r float64) string { return fmt.Sprintf("%.2f×", r) }
