package httpapi_test

import (
	"bufio"
	"context"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/goweaver/weaver/store"
)

// Live views show changes on each store, over a network; Stop ends them.
func TestWatchOperation(t *testing.T) {
	t.Parallel()
	onStores(t, func(t *testing.T, store store.Store) {
		s := newServer(t, serverOptions{store: store, mount: "/weaver"})
		id := s.enqueue(order("ask"))
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		r, err := http.NewRequestWithContext(ctx, http.MethodGet, s.url+"/v1/watch?topic=inbox&topic=stats&topic=workers&topic=task:"+id.String(), http.NoBody)
		s.no(err)
		res, err := s.http.Do(r)
		s.no(err)
		defer func() { _ = res.Body.Close() }()
		lines := bufio.NewScanner(res.Body)
		lines.Buffer(nil, 1<<20)
		until := func(texts ...string) {
			t.Helper()
			for lines.Scan() {
				line := lines.Text()
				if strings.HasPrefix(line, "event: error") {
					t.Errorf("%s", line)
				}
				left := texts[:0]
				for _, text := range texts {
					if !strings.Contains(line, text) {
						left = append(left, text)
					}
				}
				if texts = left; len(texts) == 0 {
					return
				}
			}
			t.Fatalf("the stream ended (%v) before it said %q", lines.Err(), texts)
		}
		until(`"topic":"inbox","snapshot":true`, `"topic":"stats","snapshot":true`, `"topic":"workers","snapshot":true`, `"state":"ready"`)
		s.run()
		until(`"state":"blocked"`, `"topic":"inbox","rows":[`)
		s.api.Stop()
		for lines.Scan() { // to the end
		}
		if ctx.Err() != nil {
			t.Error("the stream went on after Stop")
		}
	})
}
