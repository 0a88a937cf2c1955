package order_test

import (
	"errors"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/goweaver/weaver/order"
	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/store/memstore"
)

// An aborted order with an unknown outcome is settled by what the partner says.
func TestAskPartner(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := memstore.New()
		paper := &order.Paper{Behave: func(out order.Outgoing) string { return map[string]string{"lost": "lost", "never": "timeout"}[out.Key] }}
		for _, key := range []string{"lost", "never", "ok"} {
			accept(t, s, key)
		}
		untilIdle(t, newWorker(t, s, struct{ order.Adapter }{paper}, func(c *order.WorkerConfig) { c.Config.MaxAttempts = 1 }))
		if o := get(t, s, "lost"); o.Row.State != order.Aborted || !o.Entry.Unknown {
			t.Fatalf("%+v", o)
		}
		ask := func(a order.Adapter, key string) order.Found {
			found, err := order.AskPartner(t.Context(), s, ns, a, key, order.Audit{By: "ann", Reason: "asked"})
			if err != nil {
				t.Fatal(err)
			}
			return found
		}
		if found := ask(struct{ order.Adapter }{paper}, "lost"); found != order.FoundOpen {
			t.Errorf("a partner that cannot be asked: %s", found)
		}
		if found := ask(paper, "never"); found != order.FoundOpen {
			t.Errorf("while a send may be under way: %s", found)
		}
		time.Sleep(time.Minute)
		if found := ask(paper, "never"); found != order.FoundNothing || get(t, s, "never").Row.State != order.Aborted {
			t.Errorf("an order that the partner does not have: %s", found)
		}
		if found := ask(paper, "lost"); found != order.FoundResult {
			t.Errorf("an order that was executed: %s", found)
		}
		if o := get(t, s, "lost"); o.Row.State != order.Succeeded || o.Entry.State != order.LedgerSucceeded || decode(t, o).OrderID != "o-lost" || len(decode(t, o).Warnings) > 0 {
			t.Errorf("%+v", o)
		}
		audit, _, err := s.Audit(t.Context(), ns, store.AuditFilter{Target: "order/lost"})
		if err != nil || len(audit) != 1 || audit[0].Verb != "order_settle" || audit[0].Actor != "ann" || audit[0].Reason != "asked (the partner has executed it)" {
			t.Errorf("the audit has %+v, %v", audit, err)
		}
		if _, err := order.AskPartner(t.Context(), s, ns, paper, "ok", order.Audit{}); !errors.Is(err, order.ErrState) {
			t.Errorf("a settled order: %v", err)
		}
	})
}

// A connection that the client refuses to make sent nothing; a transport that does not tell leaves
// that open.
func TestHTTP_RefusedConnectionIsDown(t *testing.T) {
	t.Parallel()
	refuse := &http.Transport{Proxy: func(*http.Request) (*url.URL, error) { return nil, errors.New("the address is refused") }}
	for want, transport := range map[order.Failure]http.RoundTripper{order.FailDown: refuse, order.FailBroken: struct{ http.RoundTripper }{refuse}} {
		a, err := order.NewHTTP(order.HTTPConfig{URL: "http://127.0.0.1:9/secret", Client: &http.Client{Transport: transport}})
		if err != nil {
			t.Fatal(err)
		}
		_, err = a.Send(t.Context(), order.Outgoing{Key: "k", Profile: "order", Body: []byte(`{}`)})
		se, ok := errors.AsType[*order.SendError](err)
		if !ok || se.Kind != want || strings.Contains(se.Message, "secret") {
			t.Errorf("%T: %v, want %s", transport, err, want)
		}
	}
}
