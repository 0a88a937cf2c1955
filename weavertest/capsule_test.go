package weavertest_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/goweaver/weaver"
	"github.com/goweaver/weaver/blob"
	"github.com/goweaver/weaver/internal/capsule"
	"github.com/goweaver/weaver/store/sqlite"
	"github.com/goweaver/weaver/weavertest"
)

type shipment struct {
	Item  string `json:"item"`
	Token string `json:"token" weaver:"redact"`
}

var (
	shipType = weaver.Define[shipment, string]("weavertest.shop.ship.v1", weaver.MaxAttempts(1))
	packType = weaver.Define[string, string]("weavertest.shop.pack.v1")
	arrived  = weaver.DefineSignal[string]("arrived")
)

// ship waits in every way. fetch is the function of its steps: outside is counted.
func ship(outside *int) func(ctx context.Context, in shipment) (string, error) {
	fetch := func(v string) func(context.Context) (string, error) {
		return func(context.Context) (string, error) { *outside++; return v, nil }
	}
	return func(ctx context.Context, in shipment) (string, error) {
		label, err := weaver.Step(ctx, "label", fetch("label of "+in.Item))
		if err != nil {
			return "", err
		}
		slip, err := weaver.PutArtifact(ctx, "slip.txt", strings.NewReader("slip"))
		if err != nil {
			return "", err
		}
		if err := weaver.Sleep(ctx, "night", 8*time.Hour); err != nil {
			return "", err
		}
		packed, err := weaver.Call(ctx, "pack", packType, in.Item)
		if err != nil {
			return "", err
		}
		where, _, err := arrived.Wait(ctx, "where", 0)
		if err != nil {
			return "", err
		}
		_, err = weaver.Step(ctx, "bill", func(context.Context) (int, error) {
			*outside++
			return 0, weaver.WithCode("no_money", errors.New("the card is empty"))
		})
		if err == nil {
			return "", errors.New("the bill was paid")
		}
		r, err := weaver.OpenArtifact(ctx, slip)
		if err != nil {
			return "", err
		}
		text, err := io.ReadAll(r)
		if err := errors.Join(err, r.Close()); err != nil {
			return "", err
		}
		return fmt.Sprint(label, ", ", packed, ", ", where, ", ", string(text)), nil
	}
}

// shipped runs a shipment to its end and returns its capsule.
func shipped(t *testing.T) string {
	t.Helper()
	outside := 0
	bucket := blob.NewMemory()
	e := weavertest.NewConfig(t, weaver.Config{Bucket: bucket, Handlers: []weaver.Handler{
		shipType.Handler(ship(&outside)),
		packType.Handler(func(_ context.Context, item string) (string, error) { return "packed " + item, nil }),
	}})
	h, err := shipType.Enqueue(t.Context(), e, shipment{Item: "lamp", Token: "secret-token-1"})
	if err != nil {
		t.Fatal(err)
	}
	weavertest.Advance(t, e, 9*time.Hour)
	if err := arrived.Send(t.Context(), e, h.ID(), "k", "at home"); err != nil {
		t.Fatal(err)
	}
	if out := weavertest.Continue(t, e, shipType, h.ID()); out != "label of lamp, packed lamp, at home, slip" {
		t.Fatalf("output %q", out)
	}
	c, err := weaver.NewClient(e.DB(), weaver.ClientConfig{Bucket: bucket})
	if err != nil {
		t.Fatal(err)
	}
	return exported(t, c, h.ID())
}

func exported(t *testing.T, c *weaver.Client, id weaver.TaskID) string {
	t.Helper()
	content, err := capsule.Collect(t.Context(), c, id, capsule.Options{})
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "run.capsule")
	open := func(ctx context.Context, path string) (capsule.DB, error) { return sqlite.Open(ctx, path) }
	if _, err := capsule.Write(t.Context(), open, file, false, content); err != nil {
		t.Fatal(err)
	}
	return file
}

// The same code goes the same way, and nothing outside runs.
func TestReplayCapsule(t *testing.T) {
	file := shipped(t)
	outside := 0
	weavertest.ReplayCapsule(t, shipType.Handler(ship(&outside)), file)
	if outside != 0 {
		t.Errorf("%d functions of steps ran", outside)
	}
}

// A task that waits is replayed up to its wait, also years later.
func TestReplayCapsule_Waiting(t *testing.T) {
	nap := func(ctx context.Context, in shipment) (string, error) {
		if _, err := weaver.Step(ctx, "label", func(context.Context) (string, error) { return "x", nil }); err != nil {
			return "", err
		}
		if err := weaver.Sleep(ctx, "night", 8*time.Hour); err != nil {
			return "", err
		}
		return weaver.Step(ctx, "after", func(context.Context) (string, error) { return "never", nil })
	}
	e := weavertest.New(t, shipType.Handler(nap))
	h, err := shipType.Enqueue(t.Context(), e, shipment{Item: "lamp"})
	if err != nil {
		t.Fatal(err)
	}
	weavertest.RunUntilIdle(t, e)
	file := exported(t, e.Client, h.ID())
	weavertest.ReplayCapsule(t, shipType.Handler(nap), file)
}

// A failed task fails in the same way, also with what earlier attempts recorded; a fixed handler does not.
func TestReplayCapsule_Failed(t *testing.T) {
	retried := weaver.Define[int, int]("weavertest.shop.retried.v1", weaver.MaxAttempts(2))
	handler := func(broken bool) weaver.Handler {
		return retried.Handler(func(ctx context.Context, n int) (int, error) {
			a, err := weaver.Step(ctx, "a", func(context.Context) (int, error) { return n + 1, nil })
			if err != nil {
				return 0, err
			}
			if broken {
				return 0, fmt.Errorf("no route for %d", a)
			}
			return weaver.Step(ctx, "b", func(context.Context) (int, error) { return 9, nil })
		})
	}
	e := weavertest.New(t, handler(true))
	h, err := retried.Enqueue(t.Context(), e, 1)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := weavertest.ContinueErr(t, e, retried, h.ID()); err == nil {
		t.Fatal("the task succeeded")
	}
	file := exported(t, e.Client, h.ID())
	weavertest.ReplayCapsule(t, handler(true), file)

	o, err := capsule.OpenCopy(t.Context(), func(ctx context.Context, path string) (capsule.DB, error) { return sqlite.Open(ctx, path) }, file)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = o.Close() }()
	r, err := capsule.NewReplay(o.Content, h.ID())
	if err != nil || r.Attempt.No != 2 || r.Open {
		t.Errorf("replay: %+v, %v", r, err)
	}
}

// The record of a task that was exported while it ran ends in the middle: a replay goes as far.
func TestReplayCapsule_Running(t *testing.T) {
	work := weaver.Define[int, int]("weavertest.shop.running.v1")
	var file string
	var e *weavertest.Env
	steps := func(ctx context.Context, between func() error) (int, error) {
		if _, err := weaver.Step(ctx, "one", func(context.Context) (int, error) { return 1, nil }); err != nil {
			return 0, err
		}
		if err := between(); err != nil {
			return 0, err
		}
		return weaver.Step(ctx, "two", func(context.Context) (int, error) { return 2, nil })
	}
	var id weaver.TaskID
	e = weavertest.New(t, work.Handler(func(ctx context.Context, _ int) (int, error) {
		return steps(ctx, func() error {
			content, err := capsule.Collect(ctx, e.Client, id, capsule.Options{})
			file = filepath.Join(t.TempDir(), "run.capsule")
			if err == nil {
				open := func(ctx context.Context, path string) (capsule.DB, error) { return sqlite.Open(ctx, path) }
				_, err = capsule.Write(ctx, open, file, false, content)
			}
			return err
		})
	}))
	h, err := work.Enqueue(t.Context(), e, 1)
	if err != nil {
		t.Fatal(err)
	}
	id = h.ID()
	weavertest.Continue(t, e, work, id)
	weavertest.ReplayCapsule(t, work.Handler(func(ctx context.Context, _ int) (int, error) {
		return steps(ctx, func() error { return nil })
	}), file)
}
