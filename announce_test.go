package weaver_test

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"reflect"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/goweaver/weaver"
	"github.com/goweaver/weaver/schema"
	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/store/memstore"
)

type announcedIn struct {
	Card  string `json:"card" weaver:"redact"`
	Email string `json:"email" weaver:"expire=1h"`
}

var announced = weaver.Define[announcedIn, bool]("acme.test.announced.v1", weaver.SchemaVersion(2), weaver.Queue("billing"), weaver.Priority(2),
	weaver.MaxAttempts(7), weaver.MaxRepairs(0), weaver.MaxNoProgress(4), weaver.MaxCost(5), weaver.Backoff(time.Second), weaver.BackoffMax(time.Minute),
	weaver.Timeout(time.Hour), weaver.ExpireAfter(time.Hour), weaver.CleanupWhenCancelled(), weaver.Label("team", "pay"), weaver.Metadata("a", "b"),
	weaver.Description("Takes the money."))

// A draft of an announced type enqueues the same task as the type itself.
func TestDraftOfAnAnnouncedType(t *testing.T) {
	t.Parallel()
	s := memstore.New()
	c, err := weaver.NewClient(s, weaver.ClientConfig{})
	if err != nil {
		t.Fatal(err)
	}
	h := announced.Handler(func(context.Context, announcedIn) (bool, error) { return true, nil }, weaver.CodeVersion(9))
	if err := c.AnnounceTypes(t.Context(), h.Type().Info()); err != nil {
		t.Fatal(err)
	}
	types, err := c.Types(t.Context(), "acme.test.announced.v1", "acme.test.none.v1")
	if err != nil || len(types) != 1 {
		t.Fatalf("Types = %v, %v", types, err)
	}
	if got := types[0]; got.CodeVersion != 9 || got.SchemaVersion != 2 || got.Description != "Takes the money." || !strings.Contains(got.AnnouncedBy, ":") {
		t.Errorf("announced %+v", got)
	}
	in := announcedIn{Card: "4111", Email: "a@b"}
	raw, _ := json.Marshal(in)
	got, err := c.EnqueueTasks(t.Context(), announced.With(in, weaver.Priority(3)), schema.DraftOf(types[0], raw, weaver.Priority(3)))
	if err != nil {
		t.Fatal(err)
	}
	tasks, err := s.Tasks(t.Context(), c.Namespace(), got[0].ID, got[1].ID)
	if err != nil {
		t.Fatal(err)
	}
	one, other := tasks[0], tasks[1]
	other.ID, other.CreatedAt, other.UpdatedAt, other.ReadyAt, other.DeadlineAt = one.ID, one.CreatedAt, one.UpdatedAt, one.ReadyAt, one.DeadlineAt
	if one.Priority != 3 || one.Queue != "billing" || !reflect.DeepEqual(one, other) {
		t.Errorf("by the type    %+v\nby what it said %+v", one, other)
	}
}

func TestAnnounceTypesReportsMistakes(t *testing.T) {
	t.Parallel()
	c, err := weaver.NewClient(memstore.New(), weaver.ClientConfig{})
	if err != nil {
		t.Fatal(err)
	}
	large := announced.Info()
	large.Input = json.RawMessage(`{"title":"` + strings.Repeat("x", store.MaxTypeSchema) + `"}`)
	if err := c.AnnounceTypes(t.Context(), large); !errors.Is(err, store.ErrLimit) || !strings.Contains(err.Error(), large.Name) {
		t.Errorf("a schema that is too large: %v", err)
	}
	if got, err := c.Types(t.Context()); err != nil || len(got) != 0 {
		t.Errorf("Types = %v, %v", got, err)
	}
	func() {
		defer func() {
			if p := recover(); p == nil {
				t.Error("a description with a NUL byte is no mistake")
			}
		}()
		weaver.Define[int, int]("acme.test.nul.v1", weaver.Description("a\x00"))
	}()
	if weaver.Handler.Type(weaver.Handler{}) != nil {
		t.Error("an empty handler has a type")
	}
}

// OnStart functions run before tasks are claimed. Those that fail or panic run again, and tasks run
// meanwhile.
func TestOnStart(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var calls []string
		var handled []string
		plug := weaver.PluginFunc(func(s *weaver.Setup) error {
			s.OnStart(func(ctx context.Context, e *weaver.Engine) error {
				calls = append(calls, "fails")
				if len(e.Handlers()) != 1 || e.Handlers()[0].Name() != announced.Name() {
					t.Errorf("the engine's handlers are %v", e.Handlers())
				}
				if n := len(handled); len(calls) <= 2 && n != 0 {
					t.Errorf("%d tasks ran before the start", n)
				}
				if slices.Contains(calls, "third") {
					return nil
				}
				return errors.New("not yet")
			})
			s.OnStart(func(ctx context.Context, e *weaver.Engine) error {
				calls = append(calls, "panics")
				switch len(calls) {
				case 2:
					panic("at the start")
				case 4:
					<-ctx.Done()
					return ctx.Err()
				}
				calls = append(calls, "third")
				return nil
			})
			return nil
		})
		h := announced.Handler(func(_ context.Context, in announcedIn) (bool, error) {
			handled = append(handled, in.Card)
			return true, nil
		})
		eng, err := weaver.New(memstore.New(), weaver.Config{Handlers: []weaver.Handler{h}, Plugins: []weaver.Plugin{plug}, Logger: slog.New(slog.DiscardHandler)})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := announced.Enqueue(t.Context(), eng, announcedIn{Card: "1"}); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error)
		go func() { done <- eng.Run(ctx) }()
		time.Sleep(5 * time.Minute)
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
		if want := []string{"fails", "panics", "fails", "panics", "fails", "panics", "third", "fails"}; !slices.Equal(calls, want) || len(handled) != 1 {
			t.Errorf("calls %v, want %v; %d tasks ran", calls, want, len(handled))
		}
	})
}
