package crossing_test

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/goweaver/weaver/internal/pgharness"
	"github.com/goweaver/weaver/internal/pgtest"
	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/store/postgres"
	"github.com/goweaver/weaver/task"
)

const (
	processes = 16
	round     = 1500 * time.Millisecond
)

// TestCrossing has sixteen processes claim, finish, cancel, retry, pause, delete and reap the same tasks at random,
// and add dependencies to running tasks. They run in rounds. After each round store.Check must find no violation. The
// server detects deadlocks, and no caller sees one: the store retries all of them. A run ends after the first
// deadlock, or after ten rounds. WEAVER_CROSSING is its minimum duration.
func TestCrossing(t *testing.T) {
	t.Parallel()
	total := round
	if s := os.Getenv("WEAVER_CROSSING"); s != "" {
		var err error
		if total, err = time.ParseDuration(s); err != nil {
			t.Fatalf("WEAVER_CROSSING: %v: give a duration, as in 10m", err)
		}
	}
	ctx := pgharness.With(t.Context(), pgharness.Settings{FsyncOff: true})
	url := pgtest.Migrated(t, "crossing", func(url string) error {
		db, err := postgres.Open(ctx, url)
		if err != nil {
			return err
		}
		return errors.Join(db.Migrate(ctx), db.Close(), pgtest.CheckTasks(url, "weaver"))
	})
	db, err := postgres.Open(ctx, url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := db.Close(); err != nil {
			t.Error(err)
		}
	})
	var writers []*process
	for i := range processes {
		writers = append(writers, start(t, url, i))
	}
	var all done
	start := time.Now()
	enough := func() bool { return all.Calls >= 100 } // a busy machine needs longer
	met := func() bool { return enough() && all.Deadlocks > 0 }
	for n := 0; (time.Since(start) < total || n < 10 && !met() || n < 40 && !enough()) && !t.Failed(); n++ {
		seed := rand.Uint64()
		r := &crossing{T: t, ns: fmt.Sprint("round", n), ids: task.NewIDs(nil)}
		for range 4 {
			r.enqueue(rand.New(rand.NewPCG(seed, 0)), db)
		}
		for i, p := range writers {
			p.send(t, order{r.ns, seed, i})
		}
		for _, p := range writers {
			d := p.answer(t)
			if d.Failed {
				t.Errorf("a process failed in %s", r.ns)
			}
			all.Calls, all.Redone, all.Deadlocks = all.Calls+d.Calls, all.Redone+d.Redone, all.Deadlocks+d.Deadlocks
		}
		check(t, db, r.ns)
	}
	found := 0 // the server reports it with a delay
	if err := db.Pool().QueryRow(t.Context(), "SELECT deadlocks FROM pg_stat_database WHERE datname = current_database()").Scan(&found); err != nil {
		t.Error(err)
	}
	t.Logf("%d calls of %d processes, %d of them run again, %d after a deadlock; the server found %d", all.Calls, processes, all.Redone, all.Deadlocks, found)
	if !enough() {
		t.Errorf("%d calls in %v: nothing crossed", all.Calls, time.Since(start))
	}
	if !t.Failed() && all.Deadlocks < found {
		t.Errorf("%d calls were run again after a deadlock, want all %d that the server found", all.Deadlocks, found)
	}
}

// check checks the rows after all writers stopped.
func check(t *testing.T, db *postgres.DB, ns string) {
	t.Helper()
	s, err := db.Snapshot(t.Context(), ns)
	if err != nil {
		t.Fatal(err)
	}
	for _, v := range store.Check(s) {
		if v.Invariant != "I8" { // the timing of reapers is not tested here
			t.Errorf("%s: store.Check: %v", ns, v)
			explain(t, db, ns, v.Text)
		}
	}
}

// explain logs the histories of the tasks in a violation.
func explain(t *testing.T, db *postgres.DB, ns, text string) {
	t.Helper()
	for word := range strings.FieldsFuncSeq(text, func(r rune) bool { return r == ' ' || r == ',' }) {
		id, err := task.ParseID(word)
		if err != nil {
			continue
		}
		h, err := db.History(t.Context(), ns, id)
		if err != nil {
			t.Errorf("History: %v", err)
			continue
		}
		list, err := json.Marshal(h)
		if err != nil {
			t.Error(err)
		}
		t.Logf("%s: %s", id, list)
	}
}

// order is the next round of a process.
type order struct {
	NS   string
	Seed uint64
	No   int // of the process
}

// done is the result of a round.
type done struct {
	Calls, Redone, Deadlocks int
	Failed                   bool // the process prints the reason at its end
}

// process is a writer in a process of its own.
type process struct {
	in   io.Writer
	out  *bufio.Reader
	says *strings.Builder
}

const childEnv = "WEAVER_CROSSING_PROCESS"

// doneMark begins the lines of answers.
const doneMark = "done: "

func start(t *testing.T, url string, no int) *process {
	t.Helper()
	p := &process{says: new(strings.Builder)}
	cmd := exec.Command(os.Args[0], "-test.run=^TestProcess$", "-test.timeout=2h")
	cmd.Env = append(os.Environ(), childEnv+"="+url)
	cmd.Stderr = p.says
	in, err1 := cmd.StdinPipe() // the end of stdin ends the process
	out, err2 := cmd.StdoutPipe()
	if err := errors.Join(err1, err2, cmd.Start()); err != nil {
		t.Fatal(err)
	}
	p.in, p.out = in, bufio.NewReader(out)
	t.Cleanup(func() {
		_ = in.Close()
		rest, _ := io.ReadAll(p.out)
		if err := cmd.Wait(); err != nil {
			t.Errorf("process %d: %v\n%s%s", no, err, rest, p.says)
		}
	})
	return p
}

func (p *process) send(t *testing.T, o order) {
	t.Helper()
	if err := json.NewEncoder(p.in).Encode(o); err != nil {
		t.Fatal(err)
	}
}

// answer waits for the result of the last order.
func (p *process) answer(t *testing.T) (d done) {
	t.Helper()
	for {
		line, err := p.out.ReadString('\n')
		if err != nil {
			t.Fatalf("a process ended: %v", err)
		}
		if text, ok := strings.CutPrefix(line, doneMark); ok {
			if err := json.Unmarshal([]byte(text), &d); err != nil {
				t.Fatal(err)
			}
			return d
		}
		t.Errorf("a process says %s", line)
	}
}
