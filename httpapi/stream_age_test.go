package httpapi

import (
	"io"
	"net/http"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// TestStreamAge: a stream ends soon after its login. Its client reconnects, at another time than
// the others, and continues; a client with an expired login is rejected.
func TestStreamAge(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		loginEnds := time.Now().Add(90 * time.Minute)
		a, srv, enqueue := eventsServer(t, nil, func(cfg *Config) {
			cfg.Authorize = func(*http.Request) (Principal, error) {
				if time.Now().After(loginEnds) {
					return Principal{}, unauthorized.of("The login is over.")
				}
				return Principal{Name: "ann", Access: Full}, nil
			}
		})
		c := srv.client(t)
		begun := time.Now()
		var all sync.WaitGroup
		var mu sync.Mutex
		ends := map[time.Duration]bool{}
		last := make(chan string, 1)
		follow := func(path string) {
			r := connect(t, c, path)
			all.Go(func() {
				id := ""
				for f, more := r.next(); more && time.Since(begun) < 2*time.Hour; f, more = r.next() {
					if f.ID != "" {
						id = f.ID
					}
				}
				if id != "" {
					last <- id // one stream has ids
				}
				age := time.Since(begun)
				if err := r.scan.Err(); err != nil || age > time.Hour || age < 54*time.Minute {
					t.Errorf("the stream of %s ended after %s with %v", path, age, err)
				}
				mu.Lock()
				defer mu.Unlock()
				ends[age] = true
			})
		}
		for range 10 {
			follow("/v1/watch?topic=counts")
		}
		follow("/v1/events?after=0")
		enqueue(3)
		if all.Wait(); t.Failed() {
			return
		}
		if len(ends) < 5 {
			t.Errorf("11 streams ended at %v", ends)
		}
		synctest.Wait()
		if n := openStreams(a); n != 0 {
			t.Errorf("%d streams are counted", n)
		}
		enqueue(1)
		r := connect(t, c, "/v1/events?after="+<-last)
		r.next() // retry
		if f, _ := r.next(); f.Event != "message" || f.ID != "4" {
			t.Errorf("the stream goes on with %+v", f)
		}
		w := watch(t, c, "counts")
		if _, got := w.next(); !got["counts"].Snapshot {
			t.Errorf("the view goes on with %+v", got)
		}
		for _, body := range []io.Reader{r.Body, w.stream.Body} {
			all.Go(func() {
				if _, err := io.Copy(io.Discard, body); err != nil {
					t.Error(err)
				}
			})
		}
		all.Wait()
		if res := tryConnect(t, c, "/v1/watch?topic=counts"); res.StatusCode != http.StatusUnauthorized {
			t.Errorf("after the login is over a stream is answered with %s", res.Status)
		}
	})
}
