// Command bench compares Weaver with its peers, in one run on one machine, and reports ratios: absolute figures vary
// between machines and hours.
//
// Every Weaver figure uses a user's settings: attempts are recorded, with synchronous=FULL unless the row says
// NORMAL. backlite runs in this program; @coji/durably is installed from npm with -durably. River runs in this
// program, too, in a separate database of the same new PostgreSQL server, and asynq on Redis servers. Other peers that need a server are quoted
// with figures measured on a similar machine (see quoted).
//
//	make bench BENCH='[-n 50000] [-runs 5] [-only noop,step,seq,idle,usual,enqueue,claim,pipeline,liveness,waits,events,otel,codec,stats,views,watch,orders,fair,pgnoop,pgenqueue,pgidle,pgsteps,pgclaim,pgusual,pgviews,pgverbs,pgorders,pgfair,redis,hints,fleet,browser] [-durably] [-cpuprofile FILE]'
//
// A manual build needs the linker flag of the Makefile. Both SQLite drivers in this program register themselves as
// "sqlite3"; the flag removes the name of Weaver's driver, which does not need it.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"runtime"
	"runtime/pprof"
	"slices"
	"strings"
	"text/tabwriter"
)

// quoted are figures of peers that this program does not measure, per second: 2 vCPU, Node 20 (@coji/durably 0.15.0
// on a libsql file), DBOS Transact Go v1.2.0.
var quoted = struct {
	durablyOneStep, durablySequential float64
	dbosOneStep, dbosSequentialNormal float64
}{
	durablyOneStep: 241, durablySequential: 805,
	dbosOneStep: 2400, dbosSequentialNormal: 9698,
}

func main() {
	if place := os.Getenv(besideEnv); place != "" {
		if err := enqueueBeside(context.Background(), place); err != nil {
			fmt.Fprintln(os.Stderr, "bench:", err)
			os.Exit(1)
		}
		return
	}
	n := flag.Int("n", 50000, "no-op tasks per run; other benchmarks scale from it")
	runs := flag.Int("runs", 5, "runs per benchmark; reports median and range")
	only := flag.String("only", "", "comma-separated: noop, step, seq, idle, usual, enqueue, submit, claim, pipeline, liveness, waits, events, otel, codec, stats, views, watch, orders, fair, pgnoop, pgenqueue, pgsubmit, pgidle, pgsteps, pgclaim, pgusual, pgviews, pgverbs, pgorders, pgfair, redis, hints, fleet, browser; default all but browser")
	npm := flag.Bool("durably", false, "also run @coji/durably from npm (needs node and npm)")
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
	if err := run(context.Background(), *n, *runs, *only, *npm); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

// figure holds the values of one quantity over all runs.
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

// report is the table of results.
type report struct {
	n, runs int
	durably *durably // nil: quoted
	pg      *server  // nil until needed
	w       *tabwriter.Writer
}

func (r *report) row(cols ...string) { fmt.Fprintln(r.w, strings.Join(cols, "\t")) }

// benchmarks in the order of the report.
var benchmarks = []struct {
	name string
	run  func(r *report, ctx context.Context) error
}{
	{"noop", (*report).noop},
	{"step", (*report).step},
	{"seq", (*report).sequential},
	{"idle", (*report).idle},
	{"usual", (*report).usual},
	{"enqueue", (*report).enqueue},
	{"submit", (*report).submit},
	{"claim", (*report).claim},
	{"pipeline", (*report).pipeline},
	{"liveness", (*report).liveness},
	{"waits", (*report).waits},
	{"events", (*report).events},
	{"otel", (*report).otel},
	{"codec", (*report).codec},
	{"stats", (*report).stats},
	{"views", (*report).views},
	{"watch", (*report).watch},
	{"orders", (*report).orders},
	{"fair", (*report).fair},
	{"pgnoop", (*report).pgNoop},
	{"pgenqueue", (*report).pgEnqueue},
	{"pgsubmit", (*report).pgSubmit},
	{"pgidle", (*report).pgIdle},
	{"pgsteps", (*report).pgSteps},
	{"pgclaim", (*report).pgClaim},
	{"pgusual", (*report).pgUsual},
	{"pgviews", (*report).pgViews},
	{"pgverbs", (*report).pgVerbs},
	{"pgorders", (*report).pgOrders},
	{"pgfair", (*report).pgFair},
	{"redis", (*report).redis},
	{"hints", (*report).hints},
	{"fleet", (*report).fleet},
	{"browser", (*report).browser},
}

func run(ctx context.Context, n, runs int, only string, npm bool) (err error) {
	fmt.Printf("%s %s/%s, %d CPUs, %d runs each: median (range)\n\n", runtime.Version(), runtime.GOOS, runtime.GOARCH, runtime.NumCPU(), runs)
	r := &report{n: n, runs: runs, w: tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', 0)}
	defer func() { _ = r.w.Flush() }() // a table on stdout
	if npm {
		if r.durably, err = newDurably(ctx); err != nil {
			return err
		}
		defer r.durably.remove()
	}
	defer func() {
		if r.pg != nil {
			err = errors.Join(err, r.pg.remove())
		}
	}()
	r.row("benchmark", "Weaver", "peer", "ratio")
	for _, b := range benchmarks {
		if only == "" && b.name == "browser" { // it needs chromium, node and npm
			continue
		}
		if only != "" && !slices.Contains(strings.Split(only, ","), b.name) {
			continue
		}
		if err := b.run(r, ctx); err != nil {
			return fmt.Errorf("%s: %w", b.name, err)
		}
	}
	return nil
}

// measure takes each quantity once per run, alternately, so that a slow minute of the machine affects all of them.
func (r *report) measure(each ...func() (float64, error)) ([]figure, error) {
	figures := make([]figure, len(each))
	for range r.runs {
		for i, fn := range each {
			v, err := fn()
			if err != nil {
				return nil, err
			}
			figures[i] = append(figures[i], v)
		}
	}
	return figures, nil
}

// besides measures one quantity and, if installed, that of durably, in the places made by in; nil: folders.
func (r *report) besides(ctx context.Context, what string, n int, asQuoted float64, in func(context.Context, func(place string) error) error, ours func() (float64, error)) (f figure, peer float64, name string, err error) {
	each := []func() (float64, error){ours}
	if r.durably != nil {
		if in == nil {
			in = r.durably.inFolder
		}
		each = append(each, func() (v float64, err error) {
			err = in(ctx, func(place string) error {
				v, err = r.durably.perSecond(ctx, what, n, place)
				return err
			})
			return v, err
		})
	}
	figures, err := r.measure(each...)
	if err != nil {
		return nil, 0, "", err
	}
	if r.durably == nil {
		return figures[0], asQuoted, fmt.Sprintf("durably %.0f (quoted)", asQuoted), nil
	}
	return figures[0], figures[1].median(), "durably " + figures[1].String(), nil
}

func (r *report) noop(ctx context.Context) error {
	f, err := r.measure(
		func() (float64, error) { return noop(ctx, r.n, inFile(full)) },
		func() (float64, error) { return backliteNoop(ctx, r.n) },
		func() (float64, error) { return noop(ctx, r.n, inFile(normal)) },
	)
	if err != nil {
		return err
	}
	peer := "backlite NORMAL " + f[1].String()
	r.row("no-op tasks/s, FULL", f[0].String(), peer, ratio(f[0].median()/f[1].median()))
	r.row("no-op tasks/s, NORMAL", f[2].String(), peer, ratio(f[2].median()/f[1].median()))
	return nil
}

func (r *report) step(ctx context.Context) error {
	f, peer, name, err := r.besides(ctx, "step", 2000, quoted.durablyOneStep, nil, func() (float64, error) { return oneStep(ctx, r.n/2, full) })
	if err != nil {
		return err
	}
	r.row("one-step tasks/s, FULL", f.String(), name, ratio(f.median()/peer))
	r.row("", "", fmt.Sprintf("DBOS %.0f (quoted)", quoted.dbosOneStep), ratio(f.median()/quoted.dbosOneStep))
	return nil
}

func (r *report) sequential(ctx context.Context) error {
	n := max(r.n/10, 100)
	f, peer, name, err := r.besides(ctx, "seq", 1000, quoted.durablySequential, nil, func() (float64, error) { return sequential(ctx, n, inFile(full)) })
	if err != nil {
		return err
	}
	r.row("sequential steps/s of one task, FULL", f.String(), name, ratio(f.median()/peer))
	fs, err := r.measure(func() (float64, error) { return sequential(ctx, n, inFile(normal)) })
	if err != nil {
		return err
	}
	r.row("sequential steps/s of one task, NORMAL", fs[0].String(),
		fmt.Sprintf("DBOS NORMAL %.0f (quoted)", quoted.dbosSequentialNormal), ratio(fs[0].median()/quoted.dbosSequentialNormal))
	return nil
}

func (r *report) idle(ctx context.Context) error {
	var p50, p99, peer figure
	for range r.runs {
		lat, err := idle(ctx, 300, inFile(full))
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
	r.row("idle enqueue → handler, ms p50, FULL", p50.String(), "backlite NORMAL "+peer.String(), ratio(p50.median()/peer.median()))
	r.row("idle enqueue → handler, ms p99, FULL", p99.String(), "", "")
	return nil
}

func (r *report) enqueue(ctx context.Context) error {
	f, err := r.measure(
		func() (float64, error) { return enqueueSingle(ctx, r.n/10, 1, inFile(full)) },
		func() (float64, error) { return enqueueSingle(ctx, r.n/2, 64, inFile(full)) },
		func() (float64, error) { return enqueueBatch(ctx, r.n, 1000, inFile(full)) },
	)
	if err != nil {
		return err
	}
	r.row("single enqueues/s, 1 goroutine, FULL", f[0].String(), "", "")
	r.row("single enqueues/s, 64 goroutines, FULL", f[1].String(), "1 goroutine "+f[0].String(), ratio(f[1].median()/f[0].median()))
	r.row("enqueues/s in batches of 1,000, FULL", f[2].String(), "", "")
	return nil
}

func (r *report) claim(ctx context.Context) error {
	f, err := r.measure(
		func() (float64, error) { return claims(ctx, 100_000) },
		func() (float64, error) { return claims(ctx, 1000) }, // not 0: the log of a new file still grows
	)
	if err != nil {
		return err
	}
	r.row(fmt.Sprintf("µs to claim %d, FULL, 100,000 finished", claimSize), f[0].String(), "1,000 finished "+f[1].String(), ratio(f[0].median()/f[1].median()))
	return nil
}

func (r *report) pipeline(ctx context.Context) error {
	ours, theirs, err := pipelines(ctx, r.runs)
	if err != nil {
		return err
	}
	r.row("ms per command, weaver run, 8 slots, FULL", ours.String(), "xargs -P 8 "+theirs.String(), ratio(ours.median()/theirs.median()))
	return nil
}

func ratio(r float64) string { return fmt.Sprintf("%.2f×", r) }
