package weaver_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/goweaver/weaver"
	"github.com/goweaver/weaver/blob"
	"github.com/goweaver/weaver/ops"
	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/store/memstore"
	"github.com/goweaver/weaver/task"
)

// secret is the text to erase.
const secret = "4929-1234-5678"

var subject = map[string]string{"subject": "42"}

// confidence is a task type whose tasks store the secret in every place.
var (
	confidence = weaver.Define[string, string]("acme.privacy.tell.v1", weaver.Backoff(time.Second))
	confidant  = weaver.Define[string, string]("acme.privacy.listen.v1", weaver.NoRetry())
	cardSignal = weaver.DefineSignal[string]("card")
)

func confidences() []weaver.Handler {
	long := func(what string) string { return what + secret + strings.Repeat(" "+secret, 8<<10) }
	tell := func(ctx context.Context, in string) (string, error) {
		weaver.Log(ctx).Info("got "+secret, "card", secret)
		if err := weaver.Progress(ctx, 1, 2, secret); err != nil {
			return "", err
		}
		for i := range 3 { // each one replaces the previous one and leaves its pages unused
			if err := weaver.Checkpoint(ctx, "cursor", strings.Repeat(secret, 2000-999*i)); err != nil {
				return "", err
			}
		}
		for _, s := range []string{in, long("step ")} {
			if _, err := weaver.Step(ctx, fmt.Sprint("s", len(s)), func(context.Context) (string, error) { return s, nil }); err != nil {
				return "", err
			}
		}
		if _, err := weaver.PutArtifact(ctx, "card.txt", strings.NewReader(long("artifact "))); err != nil {
			return "", err
		}
		if _, err := weaver.LinkArtifact(ctx, "card.url", task.Link{URL: "https://example.com/" + secret}); err != nil {
			return "", err
		}
		if _, _, err := cardSignal.Wait(ctx, "wait", time.Hour); err != nil {
			return "", err
		}
		if _, err := weaver.Ask[string](ctx, "question", "is it "+secret+"?"); err != nil {
			return "", err
		}
		if _, err := weaver.Call(ctx, "child", confidant, in); err == nil {
			return "", errors.New("the child succeeded")
		}
		if no := weaver.Current(ctx).AttemptNo; no < 6 {
			return "", weaver.Do(ctx, "scan", func(ctx context.Context) error { // no step has the artifact
				_, err := weaver.PutArtifact(ctx, "scan.txt", strings.NewReader(long(fmt.Sprint("scan ", no))))
				return errors.Join(err, errors.New("card "+secret+" was refused"))
			})
		}
		return long("output "), nil
	}
	listen := func(context.Context, string) (string, error) { return "", errors.New("no " + secret) }
	return []weaver.Handler{confidence.Handler(tell), confidant.Handler(listen)}
}

// confide runs a task that stores the secret in every kind of row.
func confide(fx *fixture, eng *engine) weaver.TaskID {
	fx.Helper()
	h, err := confidence.Enqueue(fx.Context(), eng, strings.Repeat(secret+" ", 10<<10), weaver.Label("subject", "42"), weaver.Metadata("card", secret))
	fx.must(err)
	fx.must(cardSignal.Send(fx.Context(), eng, h.ID(), "k", secret))
	_, err = h.Wait(fx.Context())
	if !errors.Is(err, weaver.ErrBlocked) {
		fx.Fatalf("Wait: %v, want ErrBlocked", err)
	}
	fx.must(eng.Unblock(fx.Context(), h.ID(), secret))
	_, err = h.Wait(fx.Context())
	fx.must(err)
	return h.ID()
}

// holds returns the files below a folder that contain the secret.
func holds(t testing.TB, dir string) (files []string) {
	t.Helper()
	err := filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		b, err := os.ReadFile(path)
		if bytes.Contains(b, []byte(secret)) {
			files = append(files, filepath.Base(path))
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}

// Forgotten data is in no row and in no byte of the files: not in the log, unused parts of pages, or
// the bucket.
func TestForget(t *testing.T) {
	if testing.Short() {
		t.Skip("make test runs this")
	}
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		dir := t.TempDir()
		db := openFile(t, filepath.Join(dir, "weaver.db"))
		for _, s := range []store.Store{memstore.New(), db} {
			fx := newFixture(t, s)
			eng := fx.start(s, weaver.Config{Handlers: confidences(), Bucket: blob.Dir(filepath.Join(dir, "bucket")), Plugins: persist})
			id := confide(fx, eng)
			for range 3 { // pages split, and cells move
				_ = confide(fx, eng)
			}
			other, err := confidence.Enqueue(fx.Context(), eng, "open", weaver.Label("subject", "43"), weaver.Delay(1000*time.Hour))
			fx.must(err)
			before := fx.history(id)
			if got, err := eng.Forget(fx.Context(), ops.ForgetRequest{Labels: subject, DryRun: true}); err != nil || got.Done != 8 || len(got.Tasks) != 8 {
				t.Fatalf("a dry run = %+v, %v; want 4 tasks and their children", got, err)
			}
			if s == db && len(holds(t, dir)) < 3 {
				t.Fatalf("the secret is in %v only: the test looks at the wrong place", holds(t, dir))
			}
			got, err := eng.Forget(fx.Context(), ops.ForgetRequest{Labels: subject, By: "ops", Reason: "asked for"})
			if err != nil || got.Done != 8 || len(got.Refused) != 0 || got.Blobs == 0 || (got.Rewritten > 0) != (s == db) {
				t.Fatalf("Forget = %+v, %v", got, err)
			}
			if s == db {
				if files := holds(t, dir); len(files) > 0 {
					t.Errorf("the secret is in %v", files)
				}
			}
			after := fx.history(id)
			if len(after.Attempts) != len(before.Attempts) || len(after.Steps) != len(before.Steps) || !after.Task.Forgotten {
				t.Errorf("of the history %+v is left", after)
			}
			last := after.Audit[len(after.Audit)-1]
			if last.Verb != "forget" || last.Actor != "ops" || last.Reason != "asked for" {
				t.Errorf("the audit ends with %+v", last)
			}
			if _, err := confidence.Wait(fx.Context(), eng, id); !errors.Is(err, weaver.ErrForgotten) {
				t.Errorf("Wait: %v, want ErrForgotten", err)
			}
			if again, err := eng.Forget(fx.Context(), ops.ForgetRequest{Labels: subject}); err != nil || again.Done+again.Blobs+len(again.Refused) != 0 || again.Rewritten != 0 {
				t.Errorf("a second time = %+v, %v, want nothing", again, err)
			}
			fx.wantState(other.ID(), weaver.StatePending)
			fx.must(eng.stop())
			snap, err := s.Snapshot(fx.Context(), weaver.DefaultNamespace)
			fx.must(err)
			for _, v := range store.Check(snap) {
				t.Errorf("%s: %s", v.Invariant, v.Text)
			}
		}
	})
}

func TestForgetUnfinished(t *testing.T) {
	t.Parallel()
	subtest(t, "is refused, or cancelled first", func(fx *fixture) {
		typ := weaver.Define[string, string]("acme.privacy.wait.v1")
		h := enqueue(fx, typ, secret, weaver.Label("subject", "42"), weaver.Delay(time.Hour))
		got, err := fx.client.Forget(fx.Context(), ops.ForgetRequest{Labels: subject})
		fx.must(err)
		if got.Done != 0 || len(got.Refused) != 1 {
			fx.Fatalf("Forget = %+v, want one refused task", got)
		}
		wantError(fx, got.Refused[0].Err, weaver.ErrState, h.ID().String(), "cancel it first")
		if dry, err := fx.client.Forget(fx.Context(), ops.ForgetRequest{Labels: subject, Cancel: true, DryRun: true}); err != nil || dry.Done != 1 || dry.Cancelled != 1 {
			fx.Errorf("a dry run = %+v, %v", dry, err)
		}
		fx.wantState(h.ID(), weaver.StatePending)
		got, err = fx.client.Forget(fx.Context(), ops.ForgetRequest{Labels: subject, Cancel: true})
		if err != nil || got.Done != 1 || got.Cancelled != 1 {
			fx.Errorf("Forget = %+v, %v", got, err)
		}
		fx.wantState(h.ID(), weaver.StateCancelled)
		if in := fx.get(h.ID()).Input; in != nil {
			fx.Errorf("the input is %s", in)
		}
		if err := fx.client.Retry(fx.Context(), h.ID()); !errors.Is(err, weaver.ErrState) {
			fx.Errorf("Retry: %v, want ErrState", err)
		}
	})
	subtest(t, "that runs is asked to end", func(fx *fixture) {
		typ := weaver.Define[string, string]("acme.privacy.run.v1")
		fx.run(typ.Handler(func(ctx context.Context, _ string) (string, error) {
			<-ctx.Done()
			return "", ctx.Err()
		}))
		h := enqueue(fx, typ, secret, weaver.Label("subject", "42"))
		synctest.Wait()
		got, err := fx.client.Forget(fx.Context(), ops.ForgetRequest{Labels: subject, Cancel: true})
		if err != nil || got.Done != 0 || len(got.Refused) != 1 {
			fx.Fatalf("Forget = %+v, %v, want one refused task", got, err)
		}
		wantError(fx, got.Refused[0].Err, weaver.ErrState, "was asked to end")
		fails(fx, h)
		if got, err = fx.client.Forget(fx.Context(), ops.ForgetRequest{Labels: subject}); err != nil || got.Done != 1 {
			fx.Errorf("Forget = %+v, %v, want one task", got, err)
		}
	})
}

// A parent is found until its children are forgotten.
func TestForgetChildren(t *testing.T) {
	t.Parallel()
	subtest(t, "before their parents", func(fx *fixture) {
		fx.run(confidences()...)
		parent := weaver.Define[string, string]("acme.privacy.parent.v1", weaver.NoRetry())
		eng := fx.run(parent.Handler(func(ctx context.Context, in string) (string, error) {
			_, err := weaver.Call(ctx, "child", confidant, in)
			return "", err
		}))
		h := enqueue(fx, parent, secret, weaver.Label("subject", "42"))
		fails(fx, h)
		stop := errors.New("the disk of the other files is full")
		var order []weaver.TaskID
		fail := func(_ context.Context, list []weaver.TaskInfo) error {
			for i := range list {
				order = append(order, list[i].ID)
			}
			return stop
		}
		if _, err := eng.Forget(fx.Context(), ops.ForgetRequest{Labels: subject, Also: fail}); !errors.Is(err, stop) {
			fx.Errorf("Forget: %v, want the error of Also", err)
		}
		if len(order) != 2 || order[1] != h.ID() {
			fx.Errorf("the order is %v, want the child and then %v", order, h.ID())
		}
		if got, err := eng.Forget(fx.Context(), ops.ForgetRequest{Labels: subject}); err != nil || got.Done != 2 {
			fx.Errorf("Forget = %+v, %v, want the same 2 tasks", got, err)
		}
	})
}

// A handler that needs forgotten data fails with ErrForgotten.
func TestForgottenNeed(t *testing.T) {
	t.Parallel()
	subtest(t, "fails its dependent", func(fx *fixture) {
		typ := weaver.Define[string, string]("acme.privacy.need.v1")
		fx.run(typ.Handler(func(ctx context.Context, in string) (string, error) {
			if in == "make" {
				return secret, nil
			}
			return typ.Output(ctx, "a")
		}))
		j := weaver.NewJob("j", weaver.Budget{})
		a := j.Add("a", typ.With("make", weaver.Label("subject", "42")))
		j.Add("b", typ.With("read", weaver.Delay(time.Hour)), weaver.Needs(a))
		jh, err := fx.client.Submit(fx.Context(), j)
		fx.must(err)
		time.Sleep(time.Minute)
		if got, err := fx.client.Forget(fx.Context(), ops.ForgetRequest{Labels: subject}); err != nil || got.Done != 1 {
			fx.Fatalf("Forget = %+v, %v", got, err)
		}
		_, err = jh.Wait(fx.Context())
		fx.must(err)
		res, err := fx.client.JobResult(fx.Context(), jh.ID())
		fx.must(err)
		if len(res.Failed) != 1 || !strings.Contains(res.Failed[0].Reason, "was forgotten") {
			fx.Errorf("the result is %+v", res)
		}
	})
}

// A forgotten task that revives with its need fails at once: it has no input any more.
func TestForgottenComesBack(t *testing.T) {
	t.Parallel()
	subtest(t, "fails, and says why", func(fx *fixture) {
		typ := weaver.Define[string, string]("acme.privacy.back.v1", weaver.NoRetry())
		ran := 0
		fx.run(typ.Handler(func(_ context.Context, in string) (string, error) {
			if ran++; ran == 1 {
				return "", errors.New("once")
			}
			return in, nil
		}))
		j := weaver.NewJob("j", weaver.Budget{})
		a := j.Add("a", typ.With("a"))
		j.Add("b", typ.With(secret, weaver.Label("subject", "42")), weaver.Needs(a))
		jh, err := fx.client.Submit(fx.Context(), j)
		fx.must(err)
		_, err = jh.Wait(fx.Context())
		fx.must(err)
		if got, err := fx.client.Forget(fx.Context(), ops.ForgetRequest{Labels: subject}); err != nil || got.Done != 1 {
			fx.Fatalf("Forget = %+v, %v", got, err)
		}
		tasks, err := fx.client.JobTasks(fx.Context(), jh.ID())
		fx.must(err)
		for i := range tasks {
			if tasks[i].Node == "a" {
				fx.must(fx.client.Retry(fx.Context(), tasks[i].ID))
			}
		}
		time.Sleep(time.Minute)
		res, err := fx.client.JobResult(fx.Context(), jh.ID())
		fx.must(err)
		if len(res.Failed) != 1 || res.Failed[0].Name != "b" || !strings.Contains(res.Failed[0].Reason, "was forgotten") || ran != 2 {
			fx.Errorf("the result is %+v, after %d runs", res, ran)
		}
	})
}

func TestForgetMistakes(t *testing.T) {
	t.Parallel()
	subtest(t, "are named", func(fx *fixture) {
		_, err := fx.client.Forget(fx.Context(), ops.ForgetRequest{Labels: nil})
		wantError(fx, err, weaver.ErrInvalidOption, "label")
		_, err = fx.client.Forget(fx.Context(), ops.ForgetRequest{Labels: subject, Force: true})
		wantError(fx, err, weaver.ErrInvalidOption, "Force")
		got, err := fx.client.Forget(fx.Context(), ops.ForgetRequest{Labels: map[string]string{"subject": "nobody"}})
		if err != nil || got.Done != 0 {
			fx.Errorf("an unknown label: %+v, %v, want nothing", got, err)
		}
	})
}
