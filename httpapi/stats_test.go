package httpapi_test

import (
	"net/http"
	"net/url"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/goweaver/weaver/ops"

	"github.com/goweaver/weaver/internal/faults/storehook"
	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/store/memstore"
)

// Statistics over HTTP equal those of the client.
func TestStats(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newServer(t, serverOptions{direct: true})
		s.enqueue()
		s.enqueue()
		s.enqueue(order("bad"))
		s.run()
		begin := time.Now().Add(-time.Minute).UTC()
		var got ops.Stats
		s.get("/v1/stats").want(http.StatusOK).into(&got)
		if len(got.Rows) != 1 || got.Rows[0].Count != 3 || got.To.Sub(got.From) < time.Hour {
			t.Errorf("of the last hour: %+v", got)
		}
		s.get("/v1/stats?by=type,outcome&by=error_kind&step=1s&queue=billing&type=acme.billing.charge.v1&from=" + begin.Format(time.RFC3339) + "&to=" + url.QueryEscape(begin.Add(time.Hour).Format(time.RFC3339Nano))).
			want(http.StatusOK).into(&got)
		if got.Step != 10*time.Second || len(got.Rows) != 2 || got.Rows[0].ErrorKind != "handler_error" || got.Rows[1].Count != 2 || got.Rows[1].Type == "" {
			t.Errorf("by type, outcome and kind: %+v", got)
		}
		s.get("/v1/stats?queue=none").want(http.StatusOK).into(&got)
		if got.Rows == nil {
			t.Error("no rows are null")
		}
		for query, want := range map[string]string{
			"from=yesterday": "from: \"yesterday\": want a time", "to=1": "to: \"1\"", "step=5": "step: \"5\": want a duration", "step=-1s": "step: ", "by=day": "by: \"day\": want one or more of [type",
			"from=0001-01-01T00:00:00Z": "from: \"0001-01-01T00:00:00Z\" is before 1970", "to=1969-12-31T23:59:59Z": "to: \"1969-12-31T23:59:59Z\" is before 1970",
		} {
			if p := s.get("/v1/stats?"+query).problem(http.StatusBadRequest, "bad-query"); !strings.Contains(p.Error(), want) || len(p.Errors) != 1 {
				t.Errorf("%s: %v, want %q", query, p, want)
			}
		}
		for query, want := range map[string]string{
			"from=2026-02-01T00:00:00Z&to=2026-01-01T00:00:00Z":         "want from before to",
			"from=2000-01-01T00:00:00Z&to=2020-01-01T00:00:00Z&step=1s": "want at most 10000 rows, so a longer step or a shorter span",
			"by=type&by=type": "by[1] is \"type\", as one before",
		} {
			if p := s.get("/v1/stats?"+query).problem(http.StatusBadRequest, "invalid-stats-query"); !strings.Contains(p.Detail, want) {
				t.Errorf("%s: %v, want %q", query, p, want)
			}
		}

		bare := newServer(t, serverOptions{direct: true, store: storehook.New(memstore.New(), &storehook.Hooks{Hide: store.CanKeepStats})})
		bare.get("/v1/stats").problem(http.StatusNotFound, "not-found")
		for srv, want := range map[*server]bool{s: true, bare: false} {
			var f struct{ Features map[string]bool }
			if srv.get("/v1/features").want(http.StatusOK).into(&f); f.Features["stats"] != want || !f.Features["metrics"] {
				t.Errorf("the features are %v", f.Features)
			}
		}
	})
}
