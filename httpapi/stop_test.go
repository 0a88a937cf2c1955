package httpapi

import (
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// A client that stops sending its body, or does not read its response, does not delay the stop for
// the time limit of a body.
func TestStopCutsStalledClients(t *testing.T) {
	long := strings.Repeat("x", 1<<20)
	for name, request := range map[string]string{
		"body":   "POST /v1/tasks HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 100\r\n\r\n{",
		"tools":  "POST /tools HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 100\r\n\r\n{",
		"answer": "GET /long HTTP/1.1\r\nHost: localhost\r\n\r\n",
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				a := testAPI(t, nil, nil)
				tools := a.Guard("tools", Read, func(w http.ResponseWriter, r *http.Request, _ Principal) {
					_, _ = io.ReadAll(r.Body)
					_, _ = io.WriteString(w, long)
				})
				srv := servePipes(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					if r.URL.Path == "/v1/tasks" {
						a.ServeHTTP(w, r)
						return
					}
					tools.ServeHTTP(w, r)
				}))
				conn, err := srv.dial(t.Context(), "", "")
				if err != nil {
					t.Fatal(err)
				}
				if _, err := io.WriteString(conn, request); err != nil {
					t.Fatal(err)
				}
				synctest.Wait()
				began := time.Now()
				srv.srv.RegisterOnShutdown(a.Stop)
				answer := make(chan string, 1)
				if name != "answer" {
					go func() {
						raw, _ := io.ReadAll(conn) // until the server closes it
						answer <- string(raw)
					}()
				}
				if err := srv.srv.Shutdown(t.Context()); err != nil {
					t.Fatal(err)
				}
				if took := time.Since(began); took > stopGrace+2*answerWithin {
					t.Errorf("the server stopped after %s, want %s and a little", took, stopGrace)
				}
				_ = conn.Close()
				if name == "answer" {
					return
				}
				if said := <-answer; !strings.HasPrefix(said, "HTTP/1.1 503 ") || !strings.Contains(said, "stopping") {
					t.Errorf("the client is told %q, want that the server stops", said)
				}
			})
		})
	}
}
