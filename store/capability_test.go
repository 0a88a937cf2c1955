package store_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/task"
)

// able is a store stub that only reports capabilities.
type able struct {
	store.Store
	can store.Capabilities
}

func (a able) Capabilities() store.Capabilities { return a.can }

// Each capability has a unique name, and the error of a store without it contains that name.
func TestCapabilities(t *testing.T) {
	t.Parallel()
	seen := map[string]bool{}
	for c := store.Capabilities(1); c < store.AllCapabilities; c <<= 1 {
		if seen[c.String()] || strings.Contains(c.String(), "nothing") {
			t.Errorf("capability %b has the name %q", c, c)
		}
		seen[c.String()] = true
		if err := store.Require(able{can: store.AllCapabilities}, c); err != nil {
			t.Errorf("a store that can do everything cannot %s: %v", c, err)
		}
		want := errors.ErrUnsupported
		if c == store.CanKeepFeed {
			want = store.ErrNoFeed
		}
		if err := store.Require(able{can: store.AllCapabilities &^ c}, c); !errors.Is(err, want) || !strings.Contains(err.Error(), "cannot "+c.String()) {
			t.Errorf("a store that cannot %s says: %v", c, err)
		}
	}
	if got := store.Capabilities(0).String(); !strings.Contains(got, "nothing") {
		t.Errorf("the empty set is %q", got)
	}
}

// A missing capability is an error, or an empty result for hints.
func TestUnsupported(t *testing.T) {
	t.Parallel()
	var u store.Unsupported
	ctx := t.Context()
	errs := make(map[string]error)
	_, errs["StepTx"] = u.StepTx(ctx, "ns", store.Record{}, 0, nil)
	_, errs["Blobs"] = u.Blobs(ctx, "ns", store.BlobFilter{})
	_, errs["Artifact"] = u.Artifact(ctx, "ns", task.ID{})
	_, _, errs["RewriteValues"] = u.RewriteValues(ctx, "ns", "", 0, nil)
	errs["Scan"] = u.Scan(ctx, "ns", nil)
	_, errs["Scrub"] = u.Scrub(ctx, "ns")
	_, errs["Publish"] = u.Publish(ctx, "ns", store.PublishRequest{})
	_, errs["Schedules"] = u.Schedules(ctx, "ns", store.ScheduleFilter{})
	_, errs["Limits"] = u.Limits(ctx, "ns", store.LimitFilter{})
	errs["WriteStats"] = u.WriteStats(ctx, "ns")
	_, errs["ReadStats"] = u.ReadStats(ctx, "ns", store.StatsQuery{})
	for method, err := range errs {
		if !errors.Is(err, errors.ErrUnsupported) {
			t.Errorf("%s: %v", method, err)
		}
	}
	if _, err := u.Feed(ctx, "ns", store.FeedRequest{}); !errors.Is(err, store.ErrNoFeed) {
		t.Errorf("Feed: %v", err)
	}
	stop, complete := u.Notify("ns", nil, nil)
	stop()
	_, session := u.Session("ns", "w")
	events, _ := u.Events(ctx, "ns", task.ID{}, 0, 0)
	if complete || session || len(events) > 0 || u.Transient(errors.New("x")) || u.Migrate(ctx) != nil {
		t.Error("a hint is given")
	}
}
