package browser

import (
	"context"
	"errors"
	"net/http"
	"path/filepath"
	"testing"

	"github.com/goweaver/weaver"
)

// A page enqueues as soon as it is answered.
func TestTypesAreKnownBeforePagesAreAnswered(t *testing.T) {
	t.Parallel()
	ctx, stop := context.WithCancel(t.Context())
	known := 0
	err := Run(ctx, Config{
		File: filepath.Join(t.TempDir(), "notes.db"), Addr: "127.0.0.1:0",
		Engine: weaver.Config{Handlers: []weaver.Handler{note.Handler(func(_ context.Context, s string) (string, error) { return s, nil })}},
		Routes: func(eng *weaver.Engine) map[string]http.Handler { // neither the engine nor the server runs yet
			defer stop()
			types, err := eng.Types(ctx, note.Name())
			if err != nil {
				t.Error(err)
			}
			known = len(types)
			return nil
		},
	})
	if err != nil && !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	if known != 1 {
		t.Errorf("%d types are known when the program is about to answer, want 1", known)
	}
}
