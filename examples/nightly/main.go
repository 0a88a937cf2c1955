// Command nightly is the environment of the pipeline nightly.yaml: a web server with two files and a hook, and a
// small downloader.
//
//	go run ./examples/nightly serve [ADDRESS]
//	go run ./examples/nightly get URL FILE
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"os"
	"os/signal"
	"time"
)

const defaultAddress = "127.0.0.1:9123"

// The data: two orders are broken or sent twice, as in real data.
const (
	orders = `1,c2,19.90
2,c1,5.00
3,c2,100.10
3,c2,100.10
4,c3,
5,c1,7.50
`
	customers = `c1,Ada
c2,Grace
c3,Edsger
`
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, os.Args[1:]); err != nil {
		log.Fatalf("nightly: %v", err)
	}
}

func run(ctx context.Context, args []string) error {
	switch {
	case len(args) == 1 && args[0] == "serve":
		return serve(ctx, defaultAddress)
	case len(args) == 2 && args[0] == "serve":
		return serve(ctx, args[1])
	case len(args) == 3 && args[0] == "get":
		return get(ctx, args[1], args[2])
	}
	return errors.New("usage: nightly serve [ADDRESS] | nightly get URL FILE")
}

func serve(ctx context.Context, address string) error {
	mux := http.NewServeMux()
	file := func(name, text string) {
		mux.HandleFunc("GET /"+name, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "text/csv")
			_, _ = io.WriteString(w, text) // the reader left: nobody can receive the error
		})
	}
	file("orders.csv", orders)
	file("customers.csv", customers)
	mux.HandleFunc("POST /hook", func(_ http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(io.LimitReader(r.Body, 1<<20))
		log.Printf("hook: %s %v, idempotency key %q", body, err, r.Header.Get("Idempotency-Key"))
	})
	listener, err := net.Listen("tcp", address)
	if err != nil {
		return err
	}
	server := &http.Server{Handler: mux, ReadHeaderTimeout: 10 * time.Second}
	defer context.AfterFunc(ctx, func() { _ = server.Close() })()
	fmt.Printf("serving http://%s/orders.csv, /customers.csv and /hook\n", listener.Addr())
	if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}

func get(ctx context.Context, url, path string) (err error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return err
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	defer func() { _ = resp.Body.Close() }()
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("get %s: %s", url, resp.Status)
	}
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	n, err := io.Copy(f, resp.Body)
	if err = errors.Join(err, f.Close()); err == nil {
		fmt.Printf("%s: %d bytes\n", path, n)
	}
	return err
}
