package fleet_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/goweaver/weaver"
	"github.com/goweaver/weaver/blob/s3"
	"github.com/goweaver/weaver/internal/pgtest"
	"github.com/goweaver/weaver/internal/redistest"
	"github.com/goweaver/weaver/internal/s3test"
	"github.com/goweaver/weaver/store/postgres"
)

// size is the size of a run.
type size struct {
	tasks, nodes int // at least so many tasks: clients enqueue until the storm has met what it looks for
	rate         int // tasks per second that clients enqueue
	http         int // each so many tasks, one is enqueued over HTTP
	seconds      int // minimum length of the storm
	limit        time.Duration
}

// objects is an S3 server that the storm restarts.
type objects interface {
	Kill()
	Restart(t testing.TB)
}

// It has an S3 server in the test's process, and in full size (make fleet-test) a real one.
func TestE2EFleet(t *testing.T) {
	if os.Getenv("WEAVER_E2E") == "" {
		t.Skip("make e2e runs this")
	}
	switch text := os.Getenv("WEAVER_FLEET"); text {
	case "":
		s := &memory{Memory: s3test.NewMemory(t)}
		run(t, size{tasks: 240, nodes: 30, rate: 40, http: 30, seconds: 10, limit: 15 * time.Minute}, s.Bucket(), []string{"AWS_ACCESS_KEY_ID=test", "AWS_SECRET_ACCESS_KEY=test"}, s)
	case "full":
		g := s3test.StartGateway(t)
		run(t, size{tasks: 50_000, nodes: 1_000, rate: 500, http: 10, seconds: 60, limit: 2 * time.Hour}, g.Bucket("fleet"), g.Env(), g)
	default:
		t.Fatalf("WEAVER_FLEET is %q: want full, or nothing", text)
	}
}

func run(t *testing.T, size size, bucketURL string, env []string, objects objects) {
	ctx, cancel := context.WithTimeoutCause(t.Context(), size.limit, errors.New("the tasks did not end"))
	defer cancel()
	for _, pair := range env {
		name, value, _ := strings.Cut(pair, "=")
		t.Setenv(name, value)
	}
	server := pgtest.Start(t, pgtest.Options{Fsync: true, ConfigLines: []string{"max_connections = 200"}})
	cache := redistest.Start(t)
	s := setup{Store: server.Database(), Redis: cache.URL(), Bucket: bucketURL, Ledger: filepath.Join(t.TempDir(), "ledger")}
	if err := os.WriteFile(s.Ledger, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	db, err := postgres.Open(ctx, s.Store)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := db.Close(); err != nil {
			t.Error(err)
		}
	})
	bucket, err := s3.Open(s.Bucket)
	if err != nil {
		t.Fatal(err)
	}
	client, err := weaver.NewClient(db, weaver.ClientConfig{Bucket: bucket})
	if err == nil {
		err = db.Migrate(ctx)
	}
	if err != nil {
		t.Fatal(err)
	}

	f := &fleet{T: t, server: server, cache: cache, objects: objects}
	api := f.add(s, "api", "serve", "--roles", "api", "--addr", "127.0.0.1:0")
	for range 4 {
		f.add(s, "worker")
	}
	for range 2 {
		f.add(s, "publisher", "serve", "--roles", "publisher", "--health", "127.0.0.1:0")
	}
	c := &clients{client: client, api: api, size: size, ids: map[weaver.TaskID]bool{}, enough: make(chan struct{}), over: make(chan struct{})}
	go c.run(ctx)
	f.storm(ctx, c)
	for _, p := range f.places {
		f.heed(p)
		p.drain()
	}
	if c.err != nil {
		t.Fatal(c.err)
	}
	if t.Failed() {
		return
	}
	check(ctx, t, db, client, c, s)
	f.report(c)
	doctor := &process{t: t, role: "doctor", args: []string{"doctor", "--deep"}, setup: s}
	doctor.start()
	if err := doctor.wait(); err != nil {
		t.Errorf("doctor: %v\n%s", err, doctor.said.String())
	}
}

// fleet is the processes and servers of a run.
type fleet struct {
	*testing.T
	server  *pgtest.Server
	cache   *redistest.Server
	objects objects
	places  []*process

	kills, ended, stops, flushes int
	hints                        struct{ pushed, popped, useless int64 }
}

func (f *fleet) add(s setup, role string, args ...string) *process {
	p := &process{t: f, role: role, args: args, setup: s}
	p.start()
	f.Cleanup(func() {
		_ = p.cmd.Process.Kill()
		<-p.ended
	})
	f.places = append(f.places, p)
	return p
}

// storm kills and restarts everything, about once a second, until all tasks have ended and it has met everything that
// the test looks at.
func (f *fleet) storm(ctx context.Context, c *clients) {
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	stopAt := []int{c.size.tasks / 4, c.size.tasks / 2, c.size.tasks * 3 / 4}
	redisAt, objectsAt := c.size.tasks/3, c.size.tasks*3/5
	for second := 1; ; second++ {
		if !f.next(ctx, tick) {
			return
		}
		f.restart()
		p := f.places[rand.IntN(len(f.places))]
		if p.ready() || second%3 == 0 { // on a slow machine most have just been started
			f.heed(p)
			p.kill()
			p.start()
			f.kills++
		}
		if second%5 == 0 {
			f.cache.Do(f, "FLUSHALL")
			f.flushes++
		}
		n := int(c.enqueued.Load())
		if second%60 == 0 {
			f.Logf("second %d: %d tasks enqueued, %d processes killed, %d hints pushed, %d popped", second, n, f.kills, f.hints.pushed, f.hints.popped)
		}
		if len(stopAt) > 0 && n >= stopAt[0] {
			stopAt = stopAt[1:]
			f.server.Stop(pgtest.Immediate)
			f.server.Start()
			f.stops++
		}
		if redisAt > 0 && n >= redisAt {
			redisAt = 0
			f.cache.Kill()
			<-tick.C // the others go on without it
			f.cache.Restart(f)
		}
		if objectsAt > 0 && n >= objectsAt {
			objectsAt = 0
			f.objects.Kill()
			<-tick.C
			f.objects.Restart(f)
		}
		hinted := f.hints.pushed > 0 && f.hints.popped > f.hints.useless
		if second >= c.size.seconds && len(stopAt) == 0 && redisAt == 0 && objectsAt == 0 && f.kills > 0 && hinted {
			c.stop()
			if c.done(ctx) {
				break
			}
		}
	}
	for !f.restart() { // only a process that has started ends in order
		if !f.next(ctx, tick) {
			return
		}
	}
}

// next waits for the next second, and reports whether the storm goes on.
func (f *fleet) next(ctx context.Context, tick *time.Ticker) bool {
	select {
	case <-ctx.Done():
		f.Error(context.Cause(ctx))
		for _, p := range f.places {
			p.mu.Lock()
			f.Logf("%s:\n%s", p.role, p.said.String())
			p.mu.Unlock()
		}
		return false
	case <-tick.C:
		return true
	}
}

// restart starts what ended by itself, for example because the database was away as it started, and reports whether
// every process has started.
func (f *fleet) restart() bool {
	all := true
	for _, p := range f.places {
		if p.gone() {
			f.ended++
			f.heed(p)
			p.kill()
			p.start()
		}
		all = all && p.ready()
	}
	return all
}

// heed adds up the hints of a process that is about to end.
func (f *fleet) heed(p *process) {
	if p.role == "publisher" {
		f.hints.pushed += pushed(p.address())
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	f.hints.popped += p.popped
	f.hints.useless += p.useless
	p.popped, p.useless = 0, 0
}

func (f *fleet) report(c *clients) {
	f.Logf("%d tasks and a job of %d; %d processes killed, %d ended by themselves; PostgreSQL stopped %d times, Redis flushed %d times; hints: %d pushed, %d popped, %d of them useless; clients: %d calls repeated",
		c.enqueued.Load(), c.size.nodes, f.kills, f.ended, f.stops, f.flushes, f.hints.pushed, f.hints.popped, f.hints.useless, c.repeated.Load())
}
