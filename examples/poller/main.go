// Command poller is the server that poller.yaml orders an export from: every third request fails, and an export takes
// a few polls.
//
//	go run ./examples/poller [ADDRESS]
package main

import (
	"context"
	"errors"
	"fmt"
	"log"
	"net"
	"net/http"
	"os"
	"os/signal"
	"sync"
	"time"
)

const defaultAddress = "127.0.0.1:9124"

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	address := defaultAddress
	if len(os.Args) > 1 {
		address = os.Args[1]
	}
	if err := serve(ctx, address); err != nil {
		log.Fatalf("poller: %v", err)
	}
}

func serve(ctx context.Context, address string) error {
	listener, err := net.Listen("tcp", address)
	if err != nil {
		return err
	}
	server := &http.Server{Handler: (&exports{ids: make(map[string]int)}).handler(), ReadHeaderTimeout: 10 * time.Second}
	defer context.AfterFunc(ctx, func() { _ = server.Close() })()
	fmt.Printf("serving http://%s/exports\n", listener.Addr())
	if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}

// exports holds the ordered exports.
type exports struct {
	mu       sync.Mutex
	requests int
	polls    int
	ids      map[string]int // by idempotency key
}

func (e *exports) handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("POST /exports", func(w http.ResponseWriter, r *http.Request) {
		key := r.Header.Get("Idempotency-Key")
		if e.ids[key] == 0 {
			e.ids[key] = len(e.ids) + 1
			log.Printf("export %d is ordered", e.ids[key])
		}
		w.WriteHeader(http.StatusCreated)
		fmt.Fprintf(w, `{"id": %d}`, e.ids[key])
	})
	mux.HandleFunc("GET /exports/{id}", func(w http.ResponseWriter, r *http.Request) {
		status := "running"
		if e.polls++; e.polls > 5 {
			status = "done"
		}
		fmt.Fprintf(w, `{"id": %q, "status": %q}`, r.PathValue("id"), status)
	})
	mux.HandleFunc("GET /exports/{id}/result.csv", func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprint(w, "north,19.90\nsouth,100.10\n")
	})
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		e.mu.Lock()
		defer e.mu.Unlock()
		if e.requests++; e.requests%3 == 0 {
			http.Error(w, "busy", http.StatusServiceUnavailable)
			return
		}
		mux.ServeHTTP(w, r)
	})
}
