package crossing_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/goweaver/weaver/internal/pgharness"
	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/store/postgres"
	"github.com/goweaver/weaver/task"
)

// TestProcess is the main function of a process: it runs the ordered rounds until its input ends.
func TestProcess(t *testing.T) {
	url := os.Getenv(childEnv)
	if url == "" {
		return
	}
	var redone, deadlocks atomic.Int64
	ctx := pgharness.With(t.Context(), pgharness.Settings{FsyncOff: true, Redone: func(err error) {
		redone.Add(1)
		if strings.Contains(err.Error(), "(SQLSTATE 40P01)") {
			deadlocks.Add(1)
		}
	}})
	db, err := postgres.Open(ctx, url, postgres.MaxConns(4))
	if err != nil {
		t.Fatal(err)
	}
	orders := json.NewDecoder(os.Stdin)
	for {
		var o order
		if err := orders.Decode(&o); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatal(err)
		}
		d := done{Calls: play(t, db, o), Redone: int(redone.Swap(0)), Deadlocks: int(deadlocks.Swap(0)), Failed: t.Failed()}
		text, err := json.Marshal(d)
		if err != nil {
			t.Fatal(err)
		}
		fmt.Printf("%s%s\n", doneMark, text)
	}
	if err := db.Close(); err != nil {
		t.Error(err)
	}
}

// play makes calls for the duration of a round and returns their number.
func play(t *testing.T, db *postgres.DB, o order) (calls int) {
	w := &writer{
		crossing: &crossing{T: t, ns: o.NS, ids: task.NewIDs(nil)},
		db:       db, id: store.WorkerID(fmt.Sprint("w", o.No)), rnd: rand.New(rand.NewPCG(o.Seed, uint64(o.No))),
	}
	for end := time.Now().Add(round); time.Now().Before(end) && !t.Failed(); calls++ {
		if calls%20 == 0 {
			w.look(db)
		}
		w.act()
	}
	return calls
}
