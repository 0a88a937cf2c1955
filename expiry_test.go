package weaver_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/goweaver/weaver"
	"github.com/goweaver/weaver/blob"
	"github.com/goweaver/weaver/codec"
	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/store/memstore"
	"github.com/goweaver/weaver/task"
)

type expiringOrder struct {
	Card  string `json:"card" weaver:"redact,expire=1h"`
	Note  string `json:"note"`
	Items []struct {
		Address string `json:"address" weaver:"expire=24h"`
	} `json:"items"`
}

var orderType = weaver.Define[expiringOrder, string]("acme.privacy.order.v1", weaver.NoRetry())

func anOrder(card string) (o expiringOrder) {
	o.Card, o.Note = card, "fragile"
	if err := json.Unmarshal([]byte(`[{"address":"a street"}]`), &o.Items); err != nil {
		panic(err)
	}
	return o
}

func TestExpire(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x", weaver.DefaultInlineLimit)
	for name, card := range map[string]string{"in the row": "4929", "in the bucket": long} {
		for kind, codec := range map[string]codec.Codec{"": nil, ", sealed": aesCodec(t, aesKeys(t, "k1")...)} {
			synctestRun(t, "fields of an input "+name+kind, func(fx *fixture) {
				bucket := blob.NewMemory()
				fails := true
				e := fx.start(fx.store, weaver.Config{Bucket: bucket, Codec: codec, Handlers: []weaver.Handler{orderType.Handler(func(_ context.Context, in expiringOrder) (string, error) {
					if fails {
						return "", errors.New("refused")
					}
					return in.Card, nil
				})}})
				h, err := orderType.Enqueue(fx.Context(), e, anOrder(card))
				fx.must(err)
				_, err = h.Wait(fx.Context())
				wantError(fx, err, nil, "refused")
				got, err := orderType.Get(fx.Context(), e, h.ID())
				fx.must(err)
				equal(fx, "before its time", got.Input.Card, card)
				time.Sleep(time.Hour + 2*time.Minute)
				got, err = orderType.Get(fx.Context(), e, h.ID())
				fx.must(err)
				fx.must(got.DecodeError)
				equal(fx, "what expired", got.Input.Card, "")
				equal(fx, "what did not", got.Input.Note+got.Input.Items[0].Address, "fragilea street")
				if !task.HasExpired(got.TaskInfo.Input) || !bytes.Contains(got.TaskInfo.Input, []byte(`"card":{"$weaver":"expired","$weaver":"`)) {
					fx.Errorf("the record says %s", got.TaskInfo.Input)
				}
				fx.must(bucket.List(fx.Context(), "", func(i blob.Info) bool { fx.Errorf("%s stays", i.Key); return true }))
				history, err := e.History(fx.Context(), h.ID())
				fx.must(err)
				audit := history.Audit
				equal(fx, "the audit", audit[len(audit)-1].Verb+" by "+audit[len(audit)-1].Actor, "expire by weaver")

				// It does not run without them.
				fails = false
				_, err = e.Rerun(fx.Context(), h.ID())
				wantError(fx, err, weaver.ErrState, "have expired", "RerunInput")
				fx.must(e.Retry(fx.Context(), h.ID()))
				synctest.Wait()
				wantError(fx, blocked(fx, h), nil, "fields of it have expired", "weaver task repair")
				fx.must(e.RepairInput(fx.Context(), h.ID(), anOrder("5000")))
				out, err := orderType.Wait(fx.Context(), e, h.ID())
				fx.must(err)
				equal(fx, "with another input", out, "5000")

				// The other field expires in its time, and so does the new input's.
				time.Sleep(25 * time.Hour)
				got, err = orderType.Get(fx.Context(), e, h.ID())
				fx.must(err)
				equal(fx, "a day later", got.Input.Card+got.Input.Note+got.Input.Items[0].Address, "fragile")
				fx.must(e.stop())
				snap, err := fx.store.Snapshot(fx.Context(), weaver.DefaultNamespace)
				fx.must(err)
				for _, v := range store.Check(snap) {
					fx.Errorf("%s: %s", v.Invariant, v.Text)
				}
			})
		}
	}
	subtest(t, "a task that has not ended keeps them", func(fx *fixture) {
		fx.run(orderType.Handler(func(_ context.Context, in expiringOrder) (string, error) { return in.Card, nil }))
		h, err := orderType.Enqueue(fx.Context(), fx.client, anOrder("4929"), weaver.Delay(48*time.Hour))
		fx.must(err)
		equal(fx, "its input", result(fx, h), "4929")
	})
}

func synctestRun(t *testing.T, name string, fn func(fx *fixture)) {
	t.Helper()
	for kind, open := range map[string]func(*testing.T) store.Store{
		"memstore": func(*testing.T) store.Store { return memstore.New() },
		"sqlite":   func(t *testing.T) store.Store { return openMemory(t) },
	} {
		t.Run(name+" ("+kind+")", func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { fn(newFixture(t, open(t))) })
		})
	}
}

// Once closed, the file has no expired data.
func TestExpireInFiles(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		db := openFile(t, filepath.Join(dir, "weaver.db"))
		fx := newFixture(t, db)
		config := weaver.Config{Handlers: []weaver.Handler{orderType.Handler(func(context.Context, expiringOrder) (string, error) { return "", nil })}}
		e := fx.start(db, config)
		h, err := orderType.Enqueue(fx.Context(), e, anOrder(secret))
		fx.must(err)
		_, err = h.Wait(fx.Context())
		fx.must(err)
		if len(holds(t, dir)) == 0 {
			t.Fatal("the test looks at the wrong place")
		}
		fx.must(e.stop())
		time.Sleep(2 * time.Hour)
		e = fx.start(db, config)
		time.Sleep(5 * time.Minute)
		fx.must(e.stop())
		fx.must(db.Close())
	})
	if files := holds(t, dir); len(files) > 0 {
		t.Errorf("the secret is in %v", files)
	}
	if _, err := os.Stat(filepath.Join(dir, "weaver.db")); err != nil {
		t.Error(err)
	}
}

// A wrong tag, or one without effect, is found when the program starts.
func TestExpireTag(t *testing.T) {
	t.Parallel()
	type wrong struct {
		A string `weaver:"expire=soon"`
	}
	type kept struct {
		A string `weaver:"expire=1h"`
	}
	for want, define := range map[string]func(){
		`want weaver:"redact", weaver:"expire=720h"`: func() { weaver.Define[wrong, string]("acme.privacy.wrong.v1") },
		"holds for inputs alone":                     func() { weaver.Define[string, kept]("acme.privacy.kept.v1") },
	} {
		func() {
			defer func() {
				if text, _ := recover().(string); !strings.Contains(text, want) {
					t.Errorf("Define panics with %q, want %q", text, want)
				}
			}()
			define()
		}()
	}
	subtest(t, "of a step's value", func(fx *fixture) {
		typ := weaver.Define[weaver.None, string]("acme.privacy.step.v1", weaver.NoRetry())
		fx.run(typ.Handler(func(ctx context.Context, _ weaver.None) (string, error) {
			_, err := weaver.Step(ctx, "s", func(context.Context) (kept, error) { return kept{}, nil })
			return "", err
		}))
		wantError(fx, failure(fx, enqueue(fx, typ, weaver.None{})), nil, "A has the tag", "holds for inputs alone")
	})
}
