package weaver_test

import (
	"bytes"
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/goweaver/weaver"
	"github.com/goweaver/weaver/blob"
	"github.com/goweaver/weaver/codec"
	"github.com/goweaver/weaver/codec/aesgcm"
	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/store/memstore"
	"github.com/goweaver/weaver/task"
	"github.com/goweaver/weaver/task/event"
)

func aesKeys(t testing.TB, ids ...string) (all []aesgcm.Key) {
	t.Helper()
	for _, id := range ids {
		k, err := aesgcm.NewKey(id)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, k)
	}
	return all
}

func aesCodec(t testing.TB, keys ...aesgcm.Key) *aesgcm.Codec {
	t.Helper()
	c, err := aesgcm.New(keys...)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// sealedFixture is a fixture with a codec.
type sealedFixture struct {
	*fixture
	codec  codec.Codec
	bucket blob.Bucket
}

func newSealed(fx *fixture, c codec.Codec, bucket blob.Bucket) *sealedFixture {
	fx.Helper()
	s := &sealedFixture{fixture: fx, codec: c, bucket: bucket}
	s.fixture.client = s.with(c)
	return s
}

// with returns a client of another codec.
func (s *sealedFixture) with(c codec.Codec) *weaver.Client {
	s.Helper()
	client, err := weaver.NewClient(s.store, weaver.ClientConfig{Codec: c, Bucket: s.bucket, Logger: s.log.logger()})
	if err != nil {
		s.Fatal(err)
	}
	return client
}

func (s *sealedFixture) run(handlers ...weaver.Handler) *engine {
	s.Helper()
	return s.runConfig(s.store, s.config(s.codec, handlers...))
}

func (s *sealedFixture) config(c codec.Codec, handlers ...weaver.Handler) weaver.Config {
	return weaver.Config{Codec: c, Bucket: s.bucket, Handlers: handlers, Plugins: persist}
}

// sealedTest runs fn in a bubble on the memory store and on SQLite.
func sealedTest(t *testing.T, name string, fn func(s *sealedFixture)) {
	t.Helper()
	opens := map[string]func(t *testing.T) store.Store{
		"memstore": func(*testing.T) store.Store { return memstore.New() },
		"sqlite":   func(t *testing.T) store.Store { return openMemory(t) },
	}
	for kind, open := range opens {
		t.Run(name+" ("+kind+")", func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				fn(newSealed(newFixture(t, open(t)), aesCodec(t, aesKeys(t, "k1")...), blob.NewMemory()))
			})
		})
	}
}

// marks are the values of a story, one per kind of value: a file must not contain any of them.
var marks = []string{
	"mark-input", "mark-output", "mark-step", "mark-steptx", "mark-checkpoint", "mark-signal", "mark-unused-signal", "mark-answer",
	"mark-log-line", "mark-log-attribute", "mark-chunk", "mark-progress", "mark-artifact", "mark-large-input", "mark-large-step", "mark-child", "mark-rerun", "mark-link",
}

var (
	markedStory = weaver.Define[string, string]("acme.vault.story.v1", weaver.NoRetry())
	markedChild = weaver.Define[string, string]("acme.vault.child.v1", weaver.NoRetry())
	markedSay   = weaver.DefineSignal[string]("say")
)

// tellStory makes a task store its marks in every kind of value, and checks that they can be read
// back.
func tellStory(s *sealedFixture) {
	s.Helper()
	long := strings.Repeat("mark-large-input ", weaver.DefaultInlineLimit/16)
	s.run(markedChild.Handler(func(_ context.Context, in string) (string, error) { return in, nil }),
		markedStory.Handler(func(ctx context.Context, in string) (string, error) {
			if in != "mark-input" && in != long {
				return in, nil
			}
			got, err := weaver.Step(ctx, "fetch", func(context.Context) (string, error) { return "mark-step", nil })
			if err != nil || got != "mark-step" {
				return "", errors.Join(err, errors.New("another step"))
			}
			if _, err := weaver.Step(ctx, "large", func(context.Context) (string, error) {
				return strings.Repeat("mark-large-step ", weaver.DefaultInlineLimit/15), nil
			}); err != nil {
				return "", err
			}
			if _, err := weaver.StepTx(ctx, "save", func(context.Context, *sql.Tx) (string, error) { return "mark-steptx", nil }); err != nil {
				return "", err
			}
			if err := weaver.Checkpoint(ctx, "cursor", "mark-checkpoint"); err != nil {
				return "", err
			}
			if err := weaver.Progress(ctx, 1, 2, "mark-progress"); err != nil {
				return "", err
			}
			weaver.Log(ctx).Info("mark-log-line", "of", "mark-log-attribute")
			if _, err := weaver.Stream(ctx, "tokens", func(_ context.Context, emit func(any) error) (int, error) { return 1, emit("mark-chunk") }); err != nil {
				return "", err
			}
			if _, err := weaver.PutArtifact(ctx, "report", io.MultiReader(strings.NewReader("mark-artifact"))); err != nil {
				return "", err
			}
			if _, err := weaver.LinkArtifact(ctx, "scan", task.Link{URL: "https://example.com/scan?sig=mark-link"}); err != nil {
				return "", err
			}
			if out, err := weaver.Call(ctx, "sub", markedChild, "mark-child"); err != nil || out != "mark-child" {
				return "", errors.Join(err, errors.New("another output of the child"))
			}
			if got, _, err := markedSay.Wait(ctx, "said", 0); err != nil || got != "mark-signal" {
				return "", errors.Join(err, errors.New("another signal"))
			}
			if got, err := weaver.Ask[string](ctx, "name", "who?"); err != nil || got != "mark-answer" {
				return "", errors.Join(err, errors.New("another answer"))
			}
			if got, ok, err := weaver.LoadCheckpoint[string](ctx, "cursor"); err != nil || !ok || got != "mark-checkpoint" {
				return "", errors.Join(err, errors.New("another checkpoint"))
			}
			return "mark-output", nil
		}))
	for _, in := range []string{"mark-input", long} {
		h := enqueue(s.fixture, markedStory, in)
		s.must(markedSay.Send(s.Context(), s.client, h.ID(), "1", "mark-signal"))
		s.must(markedSay.Send(s.Context(), s.client, h.ID(), "2", "mark-unused-signal"))
		blocks(s.fixture, h)
		s.must(s.client.Unblock(s.Context(), h.ID(), "mark-answer"))
		equal(s.fixture, "output", result(s.fixture, h), "mark-output")
	}
}

// found returns the marks in the files of a folder.
func found(t *testing.T, dir string) (in []string) {
	t.Helper()
	err := filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		raw, err := os.ReadFile(path)
		for _, m := range marks {
			if bytes.Contains(raw, []byte(m)) && !slices.Contains(in, m) {
				in = append(in, m)
			}
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	slices.Sort(in)
	return in
}

func TestNoSecretInFiles(t *testing.T) {
	for name, with := range map[string]codec.Codec{"with a codec": aesCodec(t, aesKeys(t, "k1")...), "without one": nil} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			synctest.Test(t, func(t *testing.T) {
				db := openFile(t, filepath.Join(dir, "weaver.db"))
				s := newSealed(newFixture(t, db), with, blob.Dir(filepath.Join(dir, "bucket")))
				tellStory(s)
				old, _, err := markedStory.List(t.Context(), s.client, weaver.Filter{Limit: 1})
				s.must(err)
				id, err := s.client.Rerun(t.Context(), old[0].ID, weaver.RerunInput("mark-rerun"))
				s.must(err)
				out, err := markedStory.Wait(t.Context(), s.client, id.ID)
				equal(s.fixture, "output of the rerun", out, "mark-rerun")
				s.must(err)
				// Now, with the log next to the file, and again after closing it.
				check(t, dir, with != nil)
			})
			check(t, dir, with != nil)
		})
	}
}

func check(t *testing.T, dir string, sealed bool) {
	t.Helper()
	want := slices.Sorted(slices.Values(marks))
	if sealed {
		want = nil
	}
	if got := found(t, dir); !slices.Equal(got, want) {
		t.Errorf("in the files stand %v\nwant %v", got, want)
	}
}

// A sealed task reads the same as without a codec.
func TestSealedReads(t *testing.T) {
	inSQLBubble(t, func(fx *fixture) {
		s := newSealed(fx, aesCodec(fx, aesKeys(fx, "k1")...), blob.NewMemory())
		tellStory(s)
		list, _, err := s.client.List(fx.Context(), weaver.Filter{Types: []string{markedStory.Name()}})
		s.must(err)
		first := list[len(list)-1]
		equal(fx, "input in the list", string(first.Input), `"mark-input"`)
		equal(fx, "progress", first.Progress.Message, "mark-progress")
		h := s.history(first.ID)
		var values []string
		for _, step := range h.Steps {
			if step.Kind != task.KindCall && step.Name != "large" && step.Name != "artifact report" && step.Name != "artifact scan" {
				values = append(values, string(step.Value))
			}
		}
		equal(fx, "steps", strings.Join(values, " "), `"mark-step" "mark-steptx" 1 "mark-signal" "mark-answer"`)
		equal(fx, "signals", string(h.Signals[0].Payload)+string(h.Signals[1].Payload), `"mark-signal""mark-unused-signal"`)
		equal(fx, "checkpoint", string(h.Checkpoints[0].Value), `"mark-checkpoint"`)
		equal(fx, "the link", h.Artifacts[1].Link().URL, "https://example.com/scan?sig=mark-link")
		equal(fx, "size of the artifact", h.Artifacts[0].Blob.Size, int64(len("mark-artifact")))
		var text []byte
		for ev, err := range s.client.Subscribe(fx.Context(), weaver.EventFilter{TaskID: first.ID}) {
			s.must(err)
			switch ev := ev.(type) {
			case event.LogWritten:
				text = append(text, ev.Message...)
			case event.StreamChunk:
				text = fmt.Append(text, ev.Data)
			}
		}
		equal(fx, "events", string(text), "mark-log-line"+"mark-chunk"+"mark-log-line"+"mark-log-line") // the handler runs three times

		// A client without the codec learns the missing key.
		blind := s.with(nil)
		_, err = markedStory.Get(fx.Context(), blind, first.ID)
		wantError(fx, err, codec.ErrNoCodec, `"k1"`, "Config.Codec", "12 bytes")
		_, err = markedStory.Wait(fx.Context(), blind, first.ID)
		wantError(fx, err, codec.ErrNoCodec, `"k1"`)
		_, err = blind.OpenArtifact(fx.Context(), h.Artifacts[0].Ref())
		wantError(fx, err, codec.ErrNoCodec, `"k1"`)
		other := s.with(aesCodec(fx, aesKeys(fx, "k2")...))
		_, err = markedStory.Get(fx.Context(), other, first.ID)
		wantError(fx, err, codec.ErrNoKey, `"k1"`)
		_, err = other.OpenArtifact(fx.Context(), h.Artifacts[0].Ref())
		wantError(fx, err, codec.ErrNoKey, `"k1"`)
		for _, err := range other.Subscribe(fx.Context(), weaver.EventFilter{TaskID: first.ID}) {
			if err != nil {
				wantError(fx, err, codec.ErrNoKey, `"k1"`)
			}
		}
		_, err = other.Rerun(fx.Context(), first.ID)
		wantError(fx, err, codec.ErrNoKey, `"k1"`)
	})
}

func TestEngineWithoutKey(t *testing.T) {
	typ := weaver.Define[string, string]("acme.vault.copy.v1", weaver.MaxAttempts(1))
	handler := typ.Handler(func(ctx context.Context, in string) (string, error) {
		v, err := weaver.Step(ctx, "s", func(context.Context) (string, error) { return in, nil })
		if err != nil {
			return "", err
		}
		if got, _, err := markedSay.Wait(ctx, "said", 0); err != nil || got != "go" {
			return "", errors.Join(err, errors.New("another signal"))
		}
		return v, nil
	})
	sealedTest(t, "a task whose input cannot be opened waits for a worker with the key", func(s *sealedFixture) {
		h := enqueue(s.fixture, typ, "x")
		blind := s.start(s.store, s.config(nil, handler))
		wantError(s.fixture, notHere(s.fixture, h), nil, "the input cannot be read", `"k1"`, "Config.Codec")
		s.must(blind.stop())
		other := s.start(s.store, s.config(aesCodec(s, aesKeys(s, "k2")...), handler))
		time.Sleep(time.Minute)
		wantError(s.fixture, notHere(s.fixture, h), nil, "the input cannot be read", `"k1"`, "does not have this key")
		s.must(other.stop())
		s.run(handler)
		s.must(markedSay.Send(s.Context(), s.client, h.ID(), "1", "go"))
		equal(s.fixture, "output", result(s.fixture, h), "x")
		equal(s.fixture, "attempts that counted", s.get(h.ID()).AttemptCount, 1)
	})
	sealedTest(t, "a signal that cannot be opened waits as well", func(s *sealedFixture) {
		k := aesKeys(s, "k1", "k2")
		old, both := aesCodec(s, k[0]), aesCodec(s, k...)
		first := s.start(s.store, s.config(old, handler))
		h, err := typ.Enqueue(s.Context(), s.with(old), "x")
		s.must(err)
		synctest.Wait()
		s.must(markedSay.Send(s.Context(), s.with(both), h.ID(), "1", "go"))
		wantError(s.fixture, notHere(s.fixture, h), nil, `recorded value of step said cannot be read`, `"k2"`)
		s.must(first.stop())
		s.runConfig(s.store, s.config(both, handler))
		out, err := typ.Wait(s.Context(), s.with(both), h.ID())
		s.must(err)
		equal(s.fixture, "output", out, "x")
	})
	sealedTest(t, "a key is changed while tasks wait", func(s *sealedFixture) {
		k := aesKeys(s, "k1", "k2")
		old, both := aesCodec(s, k[0]), aesCodec(s, k...)
		first := s.start(s.store, s.config(old, handler))
		h, err := typ.Enqueue(s.Context(), s.with(old), "x", weaver.IdempotencyKey("one"))
		s.must(err)
		synctest.Wait()
		s.must(first.stop())
		again, err := typ.Enqueue(s.Context(), s.with(both), "x", weaver.IdempotencyKey("one"))
		s.must(err)
		equal(s.fixture, "disposition", again.Disposition(), store.DispositionExisting)
		s.runConfig(s.store, s.config(both, handler))
		s.must(markedSay.Send(s.Context(), s.with(old), h.ID(), "1", "go"))
		s.must(markedSay.Send(s.Context(), s.with(both), h.ID(), "1", "go"))
		wantError(s.fixture, markedSay.Send(s.Context(), s.with(both), h.ID(), "1", "stay"), weaver.ErrConflict)
		out, err := typ.Wait(s.Context(), s.with(both), h.ID())
		s.must(err)
		equal(s.fixture, "output", out, "x")
	})
	sealedTest(t, "an undo waits for a worker that can open its step", func(s *sealedFixture) {
		var undone []string
		undoable := typ.Handler(func(ctx context.Context, in string) (string, error) {
			_, err := weaver.Step(ctx, "s", func(context.Context) (string, error) { return in, nil }, weaver.Undo(func(_ context.Context, u weaver.Undoing[string]) error {
				undone = append(undone, u.Out)
				return nil
			}))
			if err == nil {
				err = weaver.Sleep(ctx, "nap", time.Hour)
			}
			return "", err
		})
		k := aesKeys(s, "k1", "k2")
		old, both := aesCodec(s, k[0]), aesCodec(s, k...)
		h, err := typ.Enqueue(s.Context(), s.with(old), "x")
		s.must(err)
		first := s.start(s.store, s.config(both, undoable))
		synctest.Wait()
		s.must(first.stop())
		s.must(s.with(old).Cancel(s.Context(), h.ID()))
		second := s.start(s.store, s.config(old, undoable))
		wantError(s.fixture, notHere(s.fixture, h), nil, `recorded value of step s cannot be read`, `"k2"`)
		s.must(second.stop())
		s.runConfig(s.store, s.config(both, undoable))
		equal(s.fixture, "state", failure(s.fixture, h).State, weaver.StateCancelled)
		equal(s.fixture, "undone", fmt.Sprint(undone), "[x]")
	})
	sealedTest(t, "a value that somebody moved is not taken", func(s *sealedFixture) {
		h := enqueue(s.fixture, typ, "x")
		snap, err := s.store.Snapshot(s.Context(), weaver.DefaultNamespace)
		s.must(err)
		kept, ok := task.SealedOf(snap.Tasks[0].Input)
		if !ok || bytes.Contains(snap.Tasks[0].Input, []byte(`"x"`)) {
			s.Fatalf("the store has %s", snap.Tasks[0].Input)
		}
		kept.Bytes[len(kept.Bytes)-1] ^= 1
		other := s.with(swapped{s.codec, kept.Bytes})
		_, err = typ.Get(s.Context(), other, h.ID())
		wantError(s.fixture, err, codec.ErrChanged)
		engine := s.start(s.store, s.config(swapped{s.codec, kept.Bytes}, handler))
		wantError(s.fixture, blocked(s.fixture, h), nil, "the sealed bytes have changed")
		s.must(engine.stop())
	})
}

// swapped opens other bytes than it is given, as if they stood in the store.
type swapped struct {
	codec.Codec
	bytes []byte
}

func (c swapped) Open(s codec.Sealed, place []byte) ([]byte, error) {
	return c.Codec.Open(codec.Sealed{Key: s.Key, Bytes: c.bytes}, place)
}

// A codec can be enabled for a store with existing values.
func TestCodecComesLater(t *testing.T) {
	t.Parallel()
	typ := weaver.Define[string, string]("acme.vault.copy.v1")
	handler := typ.Handler(func(_ context.Context, in string) (string, error) { return in, nil })
	sealedTest(t, "", func(s *sealedFixture) {
		large := large("input")
		var before []*weaver.Handle[string]
		for _, in := range []string{"x", large} {
			h, err := typ.Enqueue(s.Context(), s.with(nil), in)
			s.must(err)
			before = append(before, h)
		}
		s.run(handler)
		for i, in := range []string{"x", large} {
			out, err := typ.Wait(s.Context(), s.client, before[i].ID())
			s.must(err)
			equal(s.fixture, "output", out, in)
			raw, err := s.store.Tasks(s.Context(), weaver.DefaultNamespace, before[i].ID())
			s.must(err)
			if b, isBlob := task.BlobOf(raw[0].Output); !task.IsSealed(raw[0].Output) && !(isBlob && strings.HasPrefix(b.SHA256, "sealed-")) {
				s.Errorf("the output is not sealed: %.100s", raw[0].Output)
			}
		}
	})
}

// The limit of a row applies to the unsealed value.
func TestSealedLimit(t *testing.T) {
	t.Parallel()
	typ := weaver.Define[json.RawMessage, weaver.None]("acme.vault.limit.v1")
	inBubble(t, func(fx *fixture) {
		c, err := weaver.NewClient(fx.store, weaver.ClientConfig{Codec: aesCodec(fx, aesKeys(fx, "k1")...), InlineLimit: 100})
		fx.must(err)
		at := json.RawMessage(`"` + strings.Repeat("a", 98) + `"`)
		_, err = typ.Enqueue(fx.Context(), c, at)
		fx.must(err)
		_, err = typ.Enqueue(fx.Context(), c, json.RawMessage(`"a`+string(at[1:])))
		wantError(fx, err, nil, "101 bytes, the limit is 100")
	})
}

func TestCodecConfig(t *testing.T) {
	t.Parallel()
	_, err := weaver.NewClient(memstore.New(), weaver.ClientConfig{Codec: badCodec{}})
	if !errors.Is(err, weaver.ErrConfig) || !strings.Contains(err.Error(), "Codec: its newest key") {
		t.Errorf("NewClient = %v", err)
	}
}

type badCodec struct{ codec.Codec }

func (badCodec) Newest() string { return "a key" }
