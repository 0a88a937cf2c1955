package weaver_test

import (
	"context"
	"errors"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/goweaver/weaver"
	"github.com/goweaver/weaver/blob"
	"github.com/goweaver/weaver/internal/faults/storehook"
	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/task"
)

// large returns a text over the inline limit, different for each name.
func large(name string) string {
	return strings.Repeat(name+" ", weaver.DefaultInlineLimit/len(name))
}

// bucketed is a fixture with a bucket in memory and a client that uses it.
type bucketed struct {
	*fixture
	bucket *blob.Memory
	with   *weaver.Client
}

func bucketTest(t *testing.T, name string, fn func(b *bucketed)) {
	t.Helper()
	subtest(t, name, func(fx *fixture) {
		b := &bucketed{fixture: fx, bucket: blob.NewMemory()}
		c, err := weaver.NewClient(fx.store, weaver.ClientConfig{Bucket: b.bucket, Logger: fx.log.logger()})
		if err != nil {
			fx.Fatal(err)
		}
		b.with = c
		fn(b)
	})
}

func (b *bucketed) run(handlers ...weaver.Handler) *engine {
	b.Helper()
	return b.runConfig(b.store, weaver.Config{Bucket: b.bucket, Handlers: handlers})
}

func (b *bucketed) keys() (keys []string) {
	b.Helper()
	if err := b.bucket.List(b.Context(), "", func(i blob.Info) bool { keys = append(keys, i.Key); return true }); err != nil {
		b.Fatal(err)
	}
	return keys
}

// consistent checks the store's invariants.
func (b *bucketed) consistent() {
	b.Helper()
	snap, err := b.store.Snapshot(b.Context(), weaver.DefaultNamespace)
	if err != nil {
		b.Fatal(err)
	}
	for _, v := range store.Check(snap) {
		b.Errorf("%s: %s", v.Invariant, v.Text)
	}
}

func TestLargeValues(t *testing.T) {
	t.Parallel()
	typ := weaver.Define[string, string]("acme.files.copy.v1", weaver.NoRetry())
	bucketTest(t, "go to the bucket by themselves and come back", func(b *bucketed) {
		in, step, out := large("input"), large("step"), large("output")
		again := errors.New("once more")
		runs := 0
		b.run(typ.Handler(func(ctx context.Context, got string) (string, error) {
			if got != in {
				return "", errors.New("another input")
			}
			v, err := weaver.Step(ctx, "s", func(context.Context) (string, error) { return step, nil })
			if err != nil || v != step {
				return "", errors.Join(err, errors.New("another value"))
			}
			if runs++; runs == 1 {
				return "", weaver.RetryAfter(time.Second, again)
			}
			return out, nil
		}))
		h, err := typ.Enqueue(b.Context(), b.with, in, weaver.MaxAttempts(2))
		if err != nil {
			b.Fatal(err)
		}
		if got, err := h.Wait(b.Context()); err != nil || got != out {
			b.Errorf("Wait: %d bytes, %v", len(got), err)
		}
		got, err := typ.Get(b.Context(), b.with, h.ID())
		if err != nil || got.Input != in || got.Output != out {
			b.Errorf("Get: %d and %d bytes, %v", len(got.Input), len(got.Output), err)
		}
		if n := len(b.keys()); n != 3 {
			b.Errorf("the bucket has %d blobs, want 3", n)
		}
		row, err := b.store.Tasks(b.Context(), weaver.DefaultNamespace, h.ID())
		if err != nil || len(row[0].Input) > 300 || len(row[0].Output) > 300 {
			b.Errorf("the row has %d and %d bytes, %v", len(row[0].Input), len(row[0].Output), err)
		}
		b.consistent()
		_, err = typ.Get(b.Context(), b.client, h.ID())
		wantError(b.fixture, err, nil, "kept in the bucket", "ClientConfig")
		_, err = typ.Wait(b.Context(), b.client, h.ID())
		wantError(b.fixture, err, blob.ErrNoBucket, "Config.Bucket")
	})
	bucketTest(t, "of children, calls and needs are read from there", func(b *bucketed) {
		parent := weaver.Define[weaver.None, int]("acme.files.parent.v1", weaver.NoRetry())
		sum := weaver.Define[weaver.None, int]("acme.files.sum.v1", weaver.NoRetry())
		b.run(
			typ.Handler(func(_ context.Context, in string) (string, error) { return large("of " + in[:4]), nil }),
			parent.Handler(func(ctx context.Context, _ weaver.None) (int, error) {
				called, err := weaver.Call(ctx, "call", typ, large("call"))
				if err != nil {
					return 0, err
				}
				kids, err := weaver.Children(ctx)
				if err != nil {
					return 0, err
				}
				if len(kids) == 0 {
					return 0, weaver.Decompose(weaver.JoinRerun, typ.With(large("kid1")))
				}
				kid, err := typ.OutputOf(kids[0])
				if err != nil || kid != large("of kid1") || called != large("of call") {
					return 0, errors.Join(err, errors.New("other outputs"))
				}
				return len(kid) + len(called), nil
			}),
			sum.Handler(func(ctx context.Context, _ weaver.None) (int, error) {
				out, err := typ.Output(ctx, "copy")
				return len(out), err
			}),
		)
		h, err := parent.Enqueue(b.Context(), b.with, weaver.None{})
		if err != nil {
			b.Fatal(err)
		}
		if _, err := h.Wait(b.Context()); err != nil {
			b.Errorf("the parent: %v", err)
		}
		j := weaver.NewJob("job", weaver.Budget{})
		j.Add("sum", sum.With(weaver.None{}), weaver.Needs(j.Add("copy", typ.With(large("need")))))
		jh, err := b.with.Submit(b.Context(), j)
		if err != nil {
			b.Fatal(err)
		}
		if _, err := jh.Wait(b.Context()); err != nil {
			b.Errorf("the job: %v", err)
		}
		if n, err := sum.JobOutput(b.Context(), b.with, jh.ID(), "sum"); err != nil || n != len(large("of need")) {
			b.Errorf("the sum is %d, %v", n, err)
		}
		if out, err := typ.JobOutput(b.Context(), b.with, jh.ID(), "copy"); err != nil || out != large("of need") {
			b.Errorf("JobOutput: %d bytes, %v", len(out), err)
		}
		b.consistent()
	})
	bucketTest(t, "that are equal are stored once, and go with their last task", func(b *bucketed) {
		b.run(typ.Handler(func(_ context.Context, in string) (string, error) { return in, nil }))
		var ids []weaver.TaskID
		for range 3 {
			h, err := typ.Enqueue(b.Context(), b.with, large("same"))
			if err != nil {
				b.Fatal(err)
			}
			if _, err := h.Wait(b.Context()); err != nil {
				b.Fatal(err)
			}
			ids = append(ids, h.ID())
		}
		if n := len(b.keys()); n != 1 {
			b.Errorf("the bucket has %d blobs, want 1", n)
		}
		for i, id := range ids {
			if err := b.with.Delete(b.Context(), id); err != nil {
				b.Fatal(err)
			}
			n, err := b.with.CollectArtifacts(b.Context())
			if want := map[bool]int{true: 1}[i == 2]; err != nil || n != want {
				b.Errorf("collected %d, %v, want %d", n, err, want)
			}
		}
		if keys := b.keys(); len(keys) != 0 {
			b.Errorf("the bucket has %v", keys)
		}
		b.consistent()
	})
	bucketTest(t, "that are missing or damaged block their task and no other", func(b *bucketed) {
		lost, err := typ.Enqueue(b.Context(), b.with, large("lost"))
		if err != nil {
			b.Fatal(err)
		}
		if err := b.bucket.Delete(b.Context(), b.keys()[0]); err != nil {
			b.Fatal(err)
		}
		bad, err := typ.Enqueue(b.Context(), b.with, large("bad"))
		if err != nil {
			b.Fatal(err)
		}
		b.bucket.Damage(b.keys()[0])
		good, err := typ.Enqueue(b.Context(), b.with, large("good"))
		if err != nil {
			b.Fatal(err)
		}
		b.run(typ.Handler(func(_ context.Context, in string) (string, error) { return in[:4], nil }))
		if out, err := good.Wait(b.Context()); err != nil || out != "good" {
			b.Errorf("the good one: %q, %v", out, err)
		}
		_, err = lost.Wait(b.Context())
		wantError(b.fixture, err, weaver.ErrBlocked, "input", "not found")
		_, err = bad.Wait(b.Context())
		wantError(b.fixture, err, weaver.ErrBlocked, "input", "changed")
	})
	bucketTest(t, "are left to other workers by one without a bucket, which names the option", func(b *bucketed) {
		h, err := typ.Enqueue(b.Context(), b.with, large("input"))
		if err != nil {
			b.Fatal(err)
		}
		e := b.fixture.start(b.store, weaver.Config{Handlers: []weaver.Handler{typ.Handler(func(_ context.Context, in string) (string, error) { return in, nil })}})
		wantError(b.fixture, notHere(b.fixture, h), nil, "Config.Bucket")
		if err := e.stop(); err != nil {
			b.Error(err)
		}
		b.run(typ.Handler(func(_ context.Context, in string) (string, error) { return in[:5], nil }))
		if out, err := h.Wait(b.Context()); err != nil || out != "input" {
			b.Errorf("after the unblock: %q, %v", out, err)
		}
	})
	bucketTest(t, "do not run the handler twice while the bucket fails for a moment", func(b *bucketed) {
		broken := &brokenBucket{Bucket: b.bucket, puts: 1}
		b.runConfig(b.store, weaver.Config{Bucket: broken, Handlers: []weaver.Handler{
			typ.Handler(func(context.Context, string) (string, error) { return large("output"), nil }),
		}})
		h, err := typ.Enqueue(b.Context(), b.with, "x")
		if err != nil {
			b.Fatal(err)
		}
		if out, err := h.Wait(b.Context()); err != nil || out != large("output") {
			b.Errorf("after a failed put: %d bytes, %v", len(out), err)
		}
		b.consistent()
	})
}

// brokenBucket fails its first puts.
type brokenBucket struct {
	blob.Bucket
	puts int
}

func (b *brokenBucket) Put(ctx context.Context, key string, r io.Reader) error {
	if b.puts > 0 {
		b.puts--
		return blob.ErrFull
	}
	return b.Bucket.Put(ctx, key, r)
}

func TestArtifacts(t *testing.T) {
	t.Parallel()
	typ := weaver.Define[weaver.None, weaver.ArtifactRef]("acme.reports.make.v1")
	read := func(b *bucketed, ref weaver.ArtifactRef) string {
		b.Helper()
		r, err := b.with.OpenArtifact(b.Context(), ref)
		if err != nil {
			b.Fatal(err)
		}
		got, err := io.ReadAll(r)
		if err := errors.Join(err, r.Close()); err != nil {
			b.Error(err)
		}
		return string(got)
	}
	bucketTest(t, "are kept once, in a step or as one", func(b *bucketed) {
		puts, runs := 0, 0
		b.run(typ.Handler(func(ctx context.Context, _ weaver.None) (weaver.ArtifactRef, error) {
			in, err := weaver.Step(ctx, "write", func(ctx context.Context) (weaver.ArtifactRef, error) {
				puts++
				return weaver.PutArtifact(ctx, "in/a.csv", strings.NewReader("a,b"), weaver.ContentType("text/csv"), weaver.TTL(time.Hour))
			})
			if err != nil {
				return in, err
			}
			out, err := weaver.PutArtifact(ctx, "b.txt", io.MultiReader(strings.NewReader("by itself"), counting(&puts)))
			if err != nil {
				return out, err
			}
			if runs++; runs == 1 {
				return out, errors.New("once more")
			}
			r, err := weaver.OpenArtifact(ctx, in)
			if err != nil {
				return out, err
			}
			got, err := io.ReadAll(r)
			if string(got) != "a,b" {
				err = errors.Join(err, errors.New("other bytes"))
			}
			return out, errors.Join(err, r.Close())
		}))
		h, err := typ.Enqueue(b.Context(), b.with, weaver.None{})
		if err != nil {
			b.Fatal(err)
		}
		ref, err := h.Wait(b.Context())
		if err != nil || ref.Name != "b.txt" || read(b, ref) != "by itself" {
			b.Errorf("the output is %+v, %v", ref, err)
		}
		if puts != 2 || runs != 2 {
			b.Errorf("%d puts in %d runs, want 2 in 2", puts, runs)
		}
		list, err := b.with.Artifacts(b.Context(), h.ID())
		if err != nil || len(list) != 2 {
			b.Fatalf("Artifacts: %+v, %v", list, err)
		}
		a := list[0]
		if a.Name != "in/a.csv" || a.ContentType != "text/csv" || a.Step != "write" || a.AttemptNo != 1 || a.Blob.Size != 3 || a.ExpiresAt.IsZero() {
			b.Errorf("the first is %+v", a)
		}
		if list[1].Step != "artifact b.txt" || read(b, a.Ref()) != "a,b" {
			b.Errorf("the second is %+v", list[1])
		}
		b.consistent()
		time.Sleep(2 * time.Hour)
		if list, err = b.with.Artifacts(b.Context(), h.ID()); err != nil || len(list) != 1 || len(b.keys()) != 1 {
			b.Errorf("after its TTL: %d artifacts and %d blobs, %v", len(list), len(b.keys()), err)
		}
		b.consistent()
	})
	bucketTest(t, "of a step that failed are collected", func(b *bucketed) {
		b.run(typ.Handler(func(ctx context.Context, _ weaver.None) (weaver.ArtifactRef, error) {
			return weaver.Step(ctx, "write", func(ctx context.Context) (weaver.ArtifactRef, error) {
				ref, err := weaver.PutArtifact(ctx, "a", strings.NewReader("half"))
				return ref, weaver.Permanent(errors.Join(err, errors.New("no")))
			})
		}))
		h, err := typ.Enqueue(b.Context(), b.with, weaver.None{})
		if err != nil {
			b.Fatal(err)
		}
		if _, err := h.Wait(b.Context()); err == nil {
			b.Error("the task succeeded")
		}
		if list, err := b.with.Artifacts(b.Context(), h.ID()); err != nil || len(list) != 0 {
			b.Errorf("Artifacts: %+v, %v", list, err)
		}
		if n := len(b.keys()); n != 1 {
			b.Errorf("%d blobs before the collector", n)
		}
		time.Sleep(25 * time.Hour)
		if keys := b.keys(); len(keys) != 0 {
			b.Errorf("a day later there are %v", keys)
		}
	})
	for name, put := range map[string]func(context.Context) (weaver.ArtifactRef, error){
		"needs a name": func(ctx context.Context) (weaver.ArtifactRef, error) {
			return weaver.PutArtifact(ctx, "", strings.NewReader("x"))
		},
		"must be a path": func(ctx context.Context) (weaver.ArtifactRef, error) {
			return weaver.PutArtifact(ctx, "a/../../b", strings.NewReader("x"))
		},
		"no / at its ends": func(ctx context.Context) (weaver.ArtifactRef, error) {
			return weaver.PutArtifact(ctx, "/etc/passwd", strings.NewReader("x"))
		},
		"control characters": func(ctx context.Context) (weaver.ArtifactRef, error) {
			return weaver.PutArtifact(ctx, "a\x00b", strings.NewReader("x"))
		},
		"has passed already": func(ctx context.Context) (weaver.ArtifactRef, error) {
			return weaver.PutArtifact(ctx, "a", strings.NewReader("x"), weaver.TTL(-time.Second))
		},
	} {
		bucketTest(t, "with a mistake fail the task: "+strings.ReplaceAll(name, "/", "slash"), func(b *bucketed) {
			b.run(typ.Handler(func(ctx context.Context, _ weaver.None) (weaver.ArtifactRef, error) { return put(ctx) }))
			h, err := typ.Enqueue(b.Context(), b.with, weaver.None{})
			if err != nil {
				b.Fatal(err)
			}
			var te *weaver.TaskError
			if _, err := h.Wait(b.Context()); !errors.As(err, &te) || te.Attempts != 1 || !strings.Contains(te.Message, name) {
				b.Errorf("the task ended with %v", err)
			}
			if len(b.keys()) != 0 {
				b.Error("something was put")
			}
		})
	}
	subtest(t, "are put by handlers only", func(fx *fixture) {
		if _, err := weaver.PutArtifact(fx.Context(), "a", strings.NewReader("x")); !errors.Is(err, weaver.ErrNoTask) {
			fx.Errorf("outside a handler: %v", err)
		}
	})
}

// counting is an empty reader that counts its reads.
func counting(n *int) io.Reader {
	return readerFunc(func([]byte) (int, error) { *n++; return 0, io.EOF })
}

type readerFunc func([]byte) (int, error)

func (f readerFunc) Read(p []byte) (int, error) { return f(p) }

// A store that loses a blob between its upload and its use makes the client upload it again.
func TestBlobGoneIsPutAgain(t *testing.T) {
	t.Parallel()
	typ := weaver.Define[string, string]("acme.files.again.v1", weaver.NoRetry())
	bucketTest(t, "for an input, a step's value and an output", func(b *bucketed) {
		lost := map[string]bool{}
		// A collector that assumes a day has passed.
		collect := func(method string) {
			if lost[method] {
				return
			}
			time.Sleep(time.Millisecond)
			got, err := b.store.Collect(b.Context(), weaver.DefaultNamespace, store.CollectRequest{Blobs: &store.CollectBlobs{Pending: 1}})
			if err != nil || len(got.Blobs.Delete) == 0 {
				return
			}
			lost[method] = true
			for _, g := range got.Blobs.Delete {
				if err := b.bucket.Delete(b.Context(), blob.Key(weaver.DefaultNamespace, g.SHA256, g.ID.String())); err != nil {
					b.Error(err)
				}
				if _, err := b.store.Collect(b.Context(), weaver.DefaultNamespace, store.CollectRequest{Blobs: &store.CollectBlobs{Deleted: []task.ID{g.ID}}}); err != nil {
					b.Error(err)
				}
			}
		}
		s := storehook.New(b.store, &storehook.Hooks{
			Enqueue: func(_ context.Context, _ storehook.Submission, next func() ([]store.Enqueued, error)) ([]store.Enqueued, error) {
				collect("Enqueue")
				return next()
			},
			Record: func(_ context.Context, _ []store.Record, next func() ([]store.RecordResult, error)) ([]store.RecordResult, error) {
				collect("Record")
				return next()
			},
			Finish: func(_ context.Context, _ []store.Finish, next func() ([]store.FinishResult, error)) ([]store.FinishResult, error) {
				collect("Finish")
				return next()
			},
		})
		e := b.runConfig(s, weaver.Config{Bucket: b.bucket, Handlers: []weaver.Handler{typ.Handler(func(ctx context.Context, in string) (string, error) {
			_, err := weaver.Step(ctx, "s", func(context.Context) (string, error) { return large("value"), nil })
			return large("output"), err
		})}})
		h, err := typ.Enqueue(b.Context(), e.Client, large("input"))
		if err != nil {
			b.Fatal(err)
		}
		if out, err := h.Wait(b.Context()); err != nil || out != large("output") {
			b.Errorf("%d bytes, %v", len(out), err)
		}
		if len(lost) != 3 {
			b.Errorf("lost before %v", lost)
		}
		b.consistent()
	})
}
