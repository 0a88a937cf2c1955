package soak_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"os"
	"testing"
	"time"

	"github.com/goweaver/weaver"
	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/task"
)

// layersSize is the size of a layered job and the number of kills of its worker.
type layersSize struct{ layers, width, kills int }

// fullLayers is the size for WEAVER_LAYERS=full.
var fullLayers = layersSize{layers: 100, width: 100, kills: 10}

func sizeOfLayers(t *testing.T) layersSize {
	t.Helper()
	switch size := os.Getenv("WEAVER_LAYERS"); size {
	case "":
		return shortLayers
	case "full":
		return fullLayers
	default:
		t.Fatalf("WEAVER_LAYERS is %q: want full, or nothing", size)
		return layersSize{}
	}
}

var layered = weaver.Define[string, int]("acme.layers.work.v1", weaver.MaxAttempts(layerAttempts), weaver.Backoff(time.Millisecond))

// TestLayers runs a job in many layers. Tasks fail at random and are retried, some run only after failures, two
// decompose, and the worker is killed again and again. In the end each task has the state determined by the seed:
// kills do not count as attempts, and every task that should run runs, and no other.
func TestLayers(t *testing.T) {
	if testing.Short() {
		t.Skip("make test runs this")
	}
	t.Parallel()
	playLayers(t, childConfig{Dir: t.TempDir()}, sizeOfLayers(t))
}

// playLayers submits a job to the store of o and has workers run it.
func playLayers(t *testing.T, o childConfig, size layersSize) {
	t.Helper()
	seed := seedOfStorm(t)
	o.Role, o.Seed = "layers", seed
	nodes := layeredJob(seed, size.layers, size.width)
	want, wantJob := layerEnds(seed, nodes)
	db, err := openLayers(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := db.Close(); err != nil {
			t.Error(err)
		}
	}()
	client, err := weaver.NewClient(db, weaver.ClientConfig{})
	if err != nil {
		t.Fatal(err)
	}
	h, err := client.Submit(t.Context(), draftLayers(nodes))
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), timeout)
	defer cancel()
	killed := killLayers(ctx, t, client, h.ID(), o, size.kills)
	o.Life = size.kills + 1
	last := startProcess(t, o)
	if _, err := h.Wait(ctx); err != nil && ctx.Err() != nil {
		t.Fatalf("the job does not end: %v", err)
	}
	last.askToEnd()
	last.end()

	st, err := client.Job(ctx, h.ID())
	if err != nil {
		t.Fatal(err)
	}
	tasks, err := client.JobTasks(ctx, h.ID())
	if err != nil {
		t.Fatal(err)
	}
	if st.State != wantJob || len(tasks) != len(want) {
		t.Errorf("the job is %s with %d tasks, want %s with %d", st.State, len(tasks), wantJob, len(want))
	}
	states := make(map[task.State]int)
	for i := range tasks {
		tk := &tasks[i]
		got := layerEnd{State: tk.State, Attempts: tk.AttemptCount}
		if tk.Error != nil && tk.State != task.Succeeded {
			got.Kind = tk.Error.Kind
		}
		if got != want[tk.Node] {
			t.Errorf("%s: %s, want %s", tk.Node, got, want[tk.Node])
		}
		states[tk.State]++
	}
	snap, err := db.Snapshot(ctx, client.Namespace())
	if err != nil {
		t.Fatal(err)
	}
	for _, v := range store.Check(snap) {
		t.Errorf("store.Check: %v", v)
	}
	if states[task.Failed] == 0 || states[task.Cancelled] == 0 {
		t.Errorf("the seed %d makes no task fail, or none that is not run: take another one", seed)
	}
	t.Logf("seed %d: %d tasks, %v, %d kills", seed, len(tasks), states, killed)
}

// layersStore is the store of a layered job.
type layersStore interface {
	store.Store
	Close() error
}

// openLayers opens the store of a process: PostgreSQL if there is a URL.
func openLayers(ctx context.Context, o childConfig) (layersStore, error) {
	if o.URL == "" {
		return openDatabase(ctx, o.Dir)
	}
	return openPostgres(ctx, o)
}

// draftLayers returns the job to submit.
func draftLayers(nodes []layerNode) *weaver.Job {
	job := weaver.NewJob("layers")
	added := make([]*weaver.Node, len(nodes))
	for i := range nodes {
		n := &nodes[i]
		var needs []*weaver.Node
		for _, at := range n.needs {
			needs = append(needs, added[at])
		}
		opts := []weaver.NodeOption{map[task.EdgeKind]func(...*weaver.Node) weaver.NodeOption{
			task.OnSuccess: weaver.Needs, task.OnFailed: weaver.IfFailed, task.OnDone: weaver.IfDone,
		}[n.kind](needs...)}
		if n.mayFail {
			opts = append(opts, weaver.AllowFailure())
		}
		added[i] = job.Add(n.name, layered.With(string(n.join)), opts...)
	}
	return job
}

// killLayers starts workers and kills each between the first and the last end of a task. It returns the number of
// kills.
func killLayers(ctx context.Context, t *testing.T, client *weaver.Client, id weaver.JobID, o childConfig, kills int) int {
	t.Helper()
	rnd := rand.New(rand.NewPCG(seedOfStorm(t), 1))
	look := time.NewTicker(5 * time.Millisecond)
	defer look.Stop()
	for life := 1; life <= kills; life++ {
		o.Life = life
		p := startProcess(t, o)
		for {
			job, err := client.Job(ctx, id)
			if err != nil {
				t.Fatal(err)
			}
			if job.State.Terminal() {
				t.Errorf("the job ended before kill %d of %d", life, kills)
				p.kill()
				return life - 1
			}
			if ended := job.Counters.Total - job.Counters.Unfinished; ended*(kills+1) >= job.Counters.Total*life {
				break
			}
			if p.gone() {
				t.Fatalf("the worker of life %d ended by itself: %v", life, p.cmd.ProcessState)
			}
			select {
			case <-ctx.Done():
				t.Fatal("the job does not go on")
			case <-look.C:
			}
		}
		select { // during the work that follows
		case <-ctx.Done():
		case <-time.After(time.Duration(rnd.Int64N(int64(10 * time.Millisecond)))):
		}
		p.kill()
	}
	return kills
}

// errByChance is the error of a failed attempt.
var errByChance = errors.New("it failed, as the seed has it")

// runLayers runs a worker of a layered job until ctx ends.
func runLayers(ctx context.Context, o childConfig) error {
	db, err := openLayers(ctx, o)
	if err != nil {
		return err
	}
	eng, err := weaver.New(db, weaver.Config{
		CrashBudget: -1, // the tasks do not cause the kills
		Concurrency: 8,
		Logger:      slog.New(slog.DiscardHandler),
		Handlers:    []weaver.Handler{layered.Handler(workLayer(o.Seed))},
	})
	if err != nil {
		return errors.Join(err, db.Close())
	}
	return errors.Join(eng.Run(ctx), db.Close())
}

// workLayer is the handler: its input is the join of its decomposition.
func workLayer(seed uint64) func(context.Context, string) (int, error) {
	return func(ctx context.Context, join string) (int, error) {
		if join == "" {
			cur := weaver.Current(ctx)
			if attemptFails(seed, cur.Node, cur.AttemptCount+1) {
				return 0, errByChance
			}
			return 1, nil
		}
		children, err := weaver.Children(ctx)
		if err != nil {
			return 0, err
		}
		if len(children) > 0 {
			if len(children) != layerChildren {
				return 0, weaver.Permanent(fmt.Errorf("it has %d children, want %d", len(children), layerChildren))
			}
			return len(children), nil
		}
		var drafts []weaver.Draft
		for range layerChildren {
			drafts = append(drafts, layered.With(""))
		}
		return 0, weaver.Decompose(task.Join(join), drafts...)
	}
}
