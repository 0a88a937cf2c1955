// Command release is a durable release: children build in parallel, a person approves by a signal, and an alarm is
// raised if it fails:
//
//	go run ./examples/release --version v1.2.0
//
// It prints how to approve. Kill it at any moment: the same command continues. --broken linux makes a build fail.
// State and results are in ./weaver-release.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"log"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"

	"github.com/goweaver/weaver"
	"github.com/goweaver/weaver/store/sqlite"
	"github.com/goweaver/weaver/task"
)

// The contract: the builds, the release, and a person's approval.
var (
	Ship  = weaver.Define[Plan, string]("example.release.ship.v1", weaver.NoRetry())
	Build = weaver.Define[Target, string]("example.release.build.v1", weaver.NoRetry())
	Alarm = weaver.Define[Plan, weaver.None]("example.release.alarm.v1")

	Approved = weaver.DefineSignal[string]("approved") // the name of the person
)

// Plan is the input of a release.
type Plan struct {
	Version, Broken string
	Targets         []string
}

// Target is the input of one build.
type Target struct{ Version, Name, Broken string }

type program struct {
	dir  string
	pace time.Duration // of a build
}

// ship waits for its builds, and then for a person, without a worker: it starts again after each wait and gets the
// recorded values.
func (p program) ship(ctx context.Context, plan Plan) (string, error) {
	targets := make([]Target, len(plan.Targets))
	for i, name := range plan.Targets {
		targets[i] = Target{plan.Version, name, plan.Broken}
	}
	files, err := weaver.CallAll(ctx, "build", Build, targets)
	if err != nil {
		return "", err
	}
	fmt.Println("built", files)
	who, ok, err := Approved.Wait(ctx, "approval", 48*time.Hour)
	if err == nil && !ok {
		err = weaver.Permanent(fmt.Errorf("nobody approved %s within two days", plan.Version))
	}
	if err != nil {
		return "", err
	}
	fmt.Println("approved by", who)
	text := fmt.Sprintf("%s, approved by %s: %v\n", plan.Version, who, files)
	return text, weaver.Do(ctx, "publish", func(context.Context) error { return p.write("RELEASE", text) })
}

func (p program) build(ctx context.Context, t Target) (string, error) {
	fmt.Println("building", t.Name)
	err := weaver.Sleep(ctx, "compile", p.pace) // in place of a compiler
	if err == nil && t.Name == t.Broken {
		err = fmt.Errorf("%s does not compile", t.Name)
	}
	if err != nil {
		return "", err
	}
	file := "app-" + t.Name
	return file, p.write(file, t.Version)
}

func (p program) alarm(_ context.Context, plan Plan) (weaver.None, error) {
	return weaver.None{}, p.write("ALARM", plan.Version+" was not released\n")
}

// write replaces a file atomically: an interrupted write is repeated.
func (p program) write(name, text string) error {
	temporary := filepath.Join(p.dir, fmt.Sprintf(".%s.%d", name, os.Getpid()))
	if err := os.WriteFile(temporary, []byte(text), 0o644); err != nil {
		return err
	}
	return os.Rename(temporary, filepath.Join(p.dir, name))
}

func main() {
	var p program
	plan := Plan{Targets: []string{"linux", "darwin", "windows"}}
	flag.StringVar(&p.dir, "dir", "weaver-release", "`folder` for the database and the results")
	flag.DurationVar(&p.pace, "pace", 2*time.Second, "duration of a build")
	flag.StringVar(&plan.Version, "version", "v1.0.0", "version to release")
	flag.StringVar(&plan.Broken, "broken", "", "`target` whose build fails")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop)
	if err := p.run(ctx, plan); err != nil {
		log.Fatalf("release: %v", err)
	}
}

// run works on the job of this version until it has ended; the job is submitted once.
func (p program) run(ctx context.Context, plan Plan) (err error) {
	if err := os.MkdirAll(p.dir, 0o755); err != nil {
		return err
	}
	db, err := sqlite.Open(ctx, filepath.Join(p.dir, "weaver.db"))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	handlers := []weaver.Handler{Ship.Handler(p.ship), Build.Handler(p.build), Alarm.Handler(p.alarm)}
	eng, err := weaver.New(db, weaver.Config{Handlers: handlers, CrashBudget: -1}) // kills are expected here
	if err := errors.Join(err, db.Migrate(ctx)); err != nil {
		return err
	}
	job := weaver.NewJob("release")
	ship := job.Add("ship", Ship.With(plan))
	job.Add("alarm", Alarm.With(plan), weaver.IfFailed(ship))
	h, err := eng.Submit(ctx, job, weaver.IdempotencyKey(plan.Version))
	if err != nil {
		return err
	}
	fmt.Printf("pid %d works on job %s: kill it at any moment (kill -9 %[1]d); the same command continues\n", os.Getpid(), h.ID())
	fmt.Printf("approve with: go run ./cmd/weaver --store sqlite:%s task signal %s/ship %s '\"ann\"'\n", db.Path(), h.ID(), Approved.Name())
	work, done := context.WithCancel(ctx)
	ended := make(chan error, 1)
	go func() {
		defer done()
		ended <- eng.Run(work)
	}()
	res, err := h.Wait(work)
	done()
	if err == nil && res.State != task.JobSucceeded {
		err = fmt.Errorf("the job %s", res.State)
	}
	return errors.Join(err, <-ended)
}
