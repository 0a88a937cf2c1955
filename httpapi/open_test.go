package httpapi

import (
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// TestLongRequestLimits: running waits and downloads are counted, per principal and in total, until
// they end.
func TestLongRequestLimits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := testAPI(t, nil, func(cfg *Config) {
			byHeader(cfg)
			cfg.MaxLongRequests, cfg.MaxLongRequestsPerPrincipal = 4, 2
		})
		id := enqueueWatched(t, a, map[string]string{})[0]
		wait, logs := "/v1/tasks/"+id+"?wait=50s", "/v1/tasks/"+id+"/logs"
		var open sync.WaitGroup
		get := func(name, path string, status int, says string) {
			t.Helper()
			r := tryConnect(t, as(t, a, name, Full), path)
			body, _ := io.ReadAll(r.Body)
			if r.StatusCode != status || !strings.Contains(string(body), says) {
				t.Errorf("%s of %s is answered with %s: %s", path, name, r.Status, body)
			}
		}
		waiting := func(name, path string, status int) {
			open.Go(func() { get(name, path, status, "") })
			synctest.Wait()
		}
		waiting("ann", wait, http.StatusOK)
		waiting("ann", "/v1/tasks/"+id+"?wait=20s", http.StatusOK)
		get("ann", wait, http.StatusTooManyRequests, `\"ann\" has 2 waits and downloads open`)
		get("ann", logs, http.StatusTooManyRequests, "too-many-long-requests")
		get("ann", "/v1/tasks/"+id, http.StatusOK, id)
		waiting("bob", wait, http.StatusOK)
		waiting("eve", wait, http.StatusOK)
		get("bob", wait, http.StatusTooManyRequests, "4 waits and downloads are open here")
		time.Sleep(21 * time.Second) // one of ann's waits has ended
		get("ann", logs, http.StatusNotFound, "")
		get("ann", logs, http.StatusNotFound, "")
		open.Wait()
		if a.long.all != 0 || len(a.long.byName) != 0 {
			t.Errorf("%d are counted, by name %v", a.long.all, a.long.byName)
		}
	})
}
