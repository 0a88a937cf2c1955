package cli

import (
	"path/filepath"
	"testing"
	"time"

	"github.com/goweaver/weaver"
	"github.com/goweaver/weaver/store/sqlite"
)

// A server without a configured retention enables it once, and keeps an existing retention unchanged.
func TestKeepEventsUnlessKept(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	db, err := sqlite.Open(ctx, filepath.Join(t.TempDir(), "weaver.db"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = db.Close() }()
	if err := db.Migrate(ctx); err != nil {
		t.Fatal(err)
	}
	client, err := weaver.NewClient(db, weaver.ClientConfig{})
	if err != nil {
		t.Fatal(err)
	}
	hour, none := time.Hour, time.Duration(0)
	for _, step := range []struct {
		flag *time.Duration
		want time.Duration
	}{{&none, 0}, {nil, eventsKept}, {&hour, time.Hour}, {nil, time.Hour}, {&none, time.Hour}} {
		keepEvents(ctx, client, step.flag, t.Errorf)
		var micros int64
		if err := db.DB().QueryRowContext(ctx, "SELECT coalesce(sum(keep), 0) FROM weaver_feeds").Scan(&micros); err != nil {
			t.Fatal(err)
		}
		if kept := time.Duration(micros) * time.Microsecond; kept != step.want {
			t.Errorf("after --keep-events %v events are kept for %s, want %s", step.flag, kept, step.want)
		}
	}
}
