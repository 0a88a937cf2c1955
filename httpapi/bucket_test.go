package httpapi_test

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/goweaver/weaver"
	"github.com/goweaver/weaver/blob"
	"github.com/goweaver/weaver/httpapi"
	"github.com/goweaver/weaver/store/memstore"
)

// countedBucket counts its reads.
type countedBucket struct {
	blob.Bucket
	reads atomic.Int64
}

func (b *countedBucket) Get(ctx context.Context, key string) (io.ReadCloser, error) {
	b.reads.Add(1)
	return b.Bucket.Get(ctx, key)
}

// Values that are not shown are not read from the bucket, unless parts of them must be masked in an
// error.
func TestBucketIsReadForWhoMaySee(t *testing.T) {
	t.Parallel()
	bucket, db := &countedBucket{Bucket: blob.Dir(t.TempDir())}, memstore.New()
	client, err := weaver.NewClient(db, weaver.ClientConfig{Bucket: bucket, InlineLimit: 100})
	if err != nil {
		t.Fatal(err)
	}
	s := newServer(t, serverOptions{store: db, direct: true, config: func(cfg *httpapi.Config) {
		byHeader(cfg)
		cfg.Client = client
	}})
	const secret = "4111-1111-2222"
	id := s.enqueue(func(d *httpapi.Draft) {
		d.Input = []byte(`{"order":"` + strings.Repeat("x", 500) + `","amount":1,"card":"` + secret + `"}`)
	})
	at := "/v1/tasks/" + id.String()
	read := func(want bool, method, path string, header ...string) *answer {
		t.Helper()
		bucket.reads.Store(0)
		a := s.do(method, path, nil, header...).want(http.StatusOK)
		if n := bucket.reads.Load(); n > 0 != want {
			t.Errorf("%s for %q reads %d values from the bucket", a.asked, header, n)
		}
		return a
	}
	for _, path := range []string{at, at + "/children", at + "?wait=1ms"} {
		read(false, http.MethodGet, path, "As", "read")
	}
	read(false, http.MethodPost, at+"/pause", "As", "read,operate")
	read(false, http.MethodPost, at+"/resume", "As", "read,operate")
	read(false, http.MethodGet, at+"/children")
	if a := read(true, http.MethodGet, at); !strings.Contains(string(a.body), "xxxx") || strings.Contains(string(a.body), secret) {
		t.Errorf("with payloads: %.200s", a.body)
	}
	var hidden httpapi.Task
	if read(false, http.MethodGet, at, "As", "read").into(&hidden); !hidden.PayloadsHidden || hidden.Input != nil {
		t.Errorf("without payloads: %+v", hidden)
	}

	e, err := weaver.New(db, weaver.Config{Bucket: bucket, Logger: slog.New(slog.DiscardHandler), Handlers: []weaver.Handler{
		charge.Handler(func(_ context.Context, in chargeIn) (chargeOut, error) {
			return chargeOut{}, errors.New("no such card: " + in.Card)
		}),
	}})
	s.no(err)
	s.no(e.RunUntilIdle(t.Context()))
	if a := read(true, http.MethodGet, at, "As", "read"); !strings.Contains(string(a.body), "no such card") || strings.Contains(string(a.body), secret) {
		t.Errorf("the error of a task with a masked value: %s", a.body)
	}
}
