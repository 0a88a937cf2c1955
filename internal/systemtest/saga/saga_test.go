package saga_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/goweaver/weaver"
	"github.com/goweaver/weaver/internal/pgharness"
	"github.com/goweaver/weaver/internal/pgtest"
	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/store/postgres"
	"github.com/goweaver/weaver/task"
)

// size is the length of a storm.
type size struct {
	kills  int // one per second, each of one of two workers
	orders int // maximum number of open orders
}

func sizeOf(t *testing.T) size {
	t.Helper()
	switch text := os.Getenv("WEAVER_SAGA"); text {
	case "":
		return size{kills: 8, orders: 24}
	case "full":
		return size{kills: 600, orders: 40}
	default:
		t.Fatalf("WEAVER_SAGA is %q: want full, or nothing", text)
		return size{}
	}
}

func TestSaga(t *testing.T) {
	if testing.Short() {
		t.Skip("make test runs this")
	}
	t.Parallel()
	storm(t, filepath.Join(t.TempDir(), "weaver.db"), sizeOf(t))
}

func TestSagaOnPostgres(t *testing.T) {
	if testing.Short() {
		t.Skip("make test runs this")
	}
	t.Parallel()
	storm(t, pgtest.Migrated(t, "saga", func(url string) error {
		ctx := pgharness.With(context.Background(), pgharness.Settings{FsyncOff: true})
		db, err := postgres.Open(ctx, url)
		if err != nil {
			return err
		}
		return errors.Join(db.Migrate(ctx), db.Close(), pgtest.CheckTasks(url, "weaver"))
	}), sizeOf(t))
}

func storm(t *testing.T, at string, size size) {
	ctx, cancel := context.WithTimeoutCause(t.Context(), time.Duration(size.kills)*3*time.Second+15*time.Minute, errors.New("the orders did not end"))
	defer cancel()
	db, err := open(ctx, at)
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := db.Close(); err != nil {
			t.Error(err)
		}
	}()
	if err := db.Migrate(ctx); err != nil {
		t.Fatal(err)
	}
	client, err := weaver.NewClient(db, weaver.ClientConfig{})
	if err != nil {
		t.Fatal(err)
	}
	shop := newPartner(t)
	told := orders{Store: at, Partner: shop.url}
	workers := []*process{start(t, told), start(t, told)}

	var ids []weaver.TaskID
	did := operators{once: map[weaver.TaskID]bool{}}
	kill := time.NewTicker(time.Second)
	defer kill.Stop()
	act := time.NewTicker(30 * time.Millisecond)
	defer act.Stop()
	// On a slow machine a storm of this many kills may hold no retry; it goes on until it does.
	for kills := 0; kills < size.kills || did.retried == 0 || did.cancelled == 0 || shop.undone() == 0; {
		select {
		case <-ctx.Done():
			t.Fatalf("after %d kills and %d orders, nothing was undone, retried, or cancelled: %+v", kills, len(ids), did)
		case <-kill.C:
			w := &workers[kills%len(workers)]
			(*w).kill()
			*w = start(t, told)
			kills++
		case <-act.C:
			if ids, err = did.act(ctx, client, ids, size.orders); err != nil {
				t.Fatal(err)
			}
		}
	}
	shop.calm()
	counts := map[string]int{}
	for i, id := range ids {
		info, err := client.Wait(ctx, id)
		if errors.As(err, new(*weaver.TaskError)) {
			info, err = client.Get(ctx, id)
		}
		if err != nil {
			t.Errorf("order %d: %v", i, err)
			continue
		}
		order := strconv.Itoa(i)
		charged, shipped, want := shop.stands("charge", order), shop.stands("ship", order), 0
		if info.State == weaver.StateSucceeded {
			want = 1
		}
		if counts[string(info.State)]++; charged != want || shipped != want {
			t.Errorf("order %d (%s) is %s, charged %d times and shipped %d times\n%s", i, id, info.State, charged, shipped, told.story(ctx, client, id))
		}
		if info.State != weaver.StateSucceeded && (info.UndoOpen != 0 || info.Error == nil || info.Error.Kind == task.KindUndoFailed) {
			t.Errorf("order %d (%s) is %s with %d steps to undo: %+v", i, id, info.State, info.UndoOpen, info.Error)
		}
	}
	snap, err := db.Snapshot(ctx, weaver.DefaultNamespace)
	if err != nil {
		t.Fatal(err)
	}
	for _, v := range store.Check(snap) {
		t.Errorf("store.Check: %v", v)
	}
	t.Logf("%d orders: %v; %d effects undone, %d calls failed, %d were late; operators cancelled %d, %d more by force, and retried %d",
		len(ids), counts, shop.undone(), shop.failed, shop.late, did.cancelled, did.forced, did.retried)
	if counts["succeeded"] == 0 {
		t.Error("nothing succeeded")
	}
}

// operators enqueue orders, cancel, and retry, at random.
type operators struct {
	cancelled, forced, retried int
	once                       map[weaver.TaskID]bool // cancelled by force
}

func (o *operators) act(ctx context.Context, c *weaver.Client, ids []weaver.TaskID, open int) ([]weaver.TaskID, error) {
	if len(ids) < open || rand.IntN(4) == 0 {
		h, err := buy.Enqueue(ctx, c, len(ids))
		if err != nil {
			return ids, err
		}
		return append(ids, h.ID()), nil
	}
	cancels, among := rand.IntN(2) == 0, open
	if cancels {
		among = open / 4 // tasks that have not ended
	}
	id := ids[len(ids)-1-rand.IntN(among)]
	var err error
	switch {
	case cancels && rand.IntN(3) == 0 && !o.once[id]: // a second forced cancel would abandon the undo
		if err = c.Cancel(ctx, id, weaver.Force()); err == nil {
			o.forced++
			o.once[id] = true
		}
	case cancels:
		if err = c.Cancel(ctx, id); err == nil {
			o.cancelled++
		}
	case rand.IntN(4) == 0:
		err = c.Retry(ctx, id, weaver.Cleanups()) // without a delay
	default:
		if err = c.Retry(ctx, id); err == nil {
			o.retried++
		}
	}
	if errors.Is(err, weaver.ErrState) {
		err = nil
	}
	return ids, err
}

// story describes the history of a task for a failure message.
func (o *orders) story(ctx context.Context, c *weaver.Client, id weaver.TaskID) (text string) {
	h, err := c.History(ctx, id)
	if err != nil {
		return err.Error()
	}
	for _, a := range h.Attempts {
		text += "\tattempt " + strconv.Itoa(a.No) + " " + string(a.Outcome) + "\n"
	}
	for _, s := range h.Steps {
		text += "\t" + s.Name + " round " + strconv.Itoa(s.Round) + " " + string(s.Kind) + " " + string(s.State) + " " + string(s.Undo) + " attempt " + strconv.Itoa(s.AttemptNo) + "\n"
	}
	return text
}
