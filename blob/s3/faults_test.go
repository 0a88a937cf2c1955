package s3_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/goweaver/weaver/blob"
	"github.com/goweaver/weaver/internal/s3test"
)

// faulty is a proxy before an S3 server that delays, cuts, changes and loses requests and answers.
type faulty struct {
	*httptest.Server
	to string // URL of the server

	mu     sync.Mutex
	random *rand.Rand
	off    bool
	made   map[string]int // faults, by name
}

func newFaulty(t *testing.T, to string, seed uint64) *faulty {
	t.Helper()
	f := &faulty{to: to, random: rand.New(rand.NewPCG(seed, 1)), made: map[string]int{}}
	f.Server = httptest.NewServer(f)
	t.Cleanup(f.Close)
	return f
}

// next chooses the fault of a request, and a number from 0 to 1 for its place.
func (f *faulty) next(r *http.Request) (fault string, at float64) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.off || f.random.IntN(4) > 0 {
		return "", 0
	}
	all := []string{"delay", "503", "lost reply", "cut down", "wrong down"}
	if r.ContentLength > 0 {
		all = append(all, "cut up", "wrong up")
	}
	fault = all[f.random.IntN(len(all))]
	if strings.HasPrefix(fault, "wrong down") && (r.Method != http.MethodGet || r.URL.RawQuery != "") {
		fault = "lost reply" // a TCP checksum that lies about XML is not what this test is about
	}
	f.made[fault]++
	return fault, f.random.Float64()
}

func (f *faulty) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	fault, at := f.next(r)
	body := io.Reader(r.Body)
	switch fault {
	case "delay":
		<-time.After(time.Duration(at * float64(50*time.Millisecond)))
	case "503":
		_, _ = io.Copy(io.Discard, r.Body)
		s3test.Fail(w, http.StatusServiceUnavailable, "SlowDown")
		return
	case "cut up":
		body = io.MultiReader(io.LimitReader(r.Body, int64(at*float64(r.ContentLength))), failing{http.ErrAbortHandler})
	case "wrong up":
		sent, err := io.ReadAll(r.Body)
		if err != nil {
			panic(http.ErrAbortHandler)
		}
		sent[int(at*float64(len(sent)))] ^= 0x10
		body = bytes.NewReader(sent)
	}
	out, err := http.NewRequestWithContext(r.Context(), r.Method, f.to+r.URL.RequestURI(), body)
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	out.Header, out.Host, out.ContentLength = r.Header.Clone(), r.Host, r.ContentLength
	if r.ContentLength == 0 {
		out.Body = http.NoBody
	}
	res, err := http.DefaultTransport.RoundTrip(out)
	if err != nil || fault == "lost reply" {
		panic(http.ErrAbortHandler)
	}
	got, err := io.ReadAll(res.Body)
	if err != nil || res.Body.Close() != nil {
		panic(http.ErrAbortHandler)
	}
	for name, values := range res.Header {
		w.Header()[name] = values
	}
	if fault == "wrong down" && len(got) > 0 {
		got[int(at*float64(len(got)))] ^= 0x10
	}
	if fault == "cut down" {
		w.Header().Set("Content-Length", fmt.Sprint(len(got)))
		w.WriteHeader(res.StatusCode)
		_, _ = w.Write(got[:int(at*float64(len(got)))])
		panic(http.ErrAbortHandler)
	}
	w.WriteHeader(res.StatusCode)
	_, _ = w.Write(got)
}

// Through a proxy that delays, cuts, changes and loses, a read returns the right bytes or an error, a Put that succeeds
// has stored them, one that fails has stored all or nothing, and no upload stays.
func TestFaults(t *testing.T) {
	to, rounds := "", 6
	if os.Getenv("WEAVER_TEST_S3") == "versitygw" {
		t.Setenv("AWS_ACCESS_KEY_ID", s3test.AccessKey)
		t.Setenv("AWS_SECRET_ACCESS_KEY", s3test.SecretKey)
		to, rounds = "http://"+s3test.StartGateway(t).Addr, 60
	} else {
		setCredentials(t)
		s := s3test.NewMemory(t)
		s.LetDamage()
		to = s.URL
	}
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	f := newFaulty(t, to, seed)
	name := map[bool]string{true: "bucket", false: s3test.BucketName}[os.Getenv("WEAVER_TEST_S3") == ""]
	b := open(t, "s3://"+name+"/pre?region=us-east-1&path_style=true&endpoint="+f.URL)
	content := func(key string) []byte { // derived from the key
		r := rand.NewChaCha8([32]byte([]byte(key + strings.Repeat(" ", 32))[:32]))
		size := 1 + r.Uint64()%4000
		if r.Uint64()%6 == 0 {
			size += 11 << 20 // three parts
		}
		p := make([]byte, size)
		_, _ = r.Read(p)
		return p
	}
	var put, failed, read, unread atomic.Int64
	var work sync.WaitGroup
	stored := make([]map[string]bool, 6)
	for worker := range stored {
		stored[worker] = map[string]bool{}
		work.Add(1)
		go func() {
			defer work.Done()
			for i := range rounds {
				key := fmt.Sprintf("ns/w%d-%d", worker, i)
				want := content(key)
				if err := b.Put(t.Context(), key, bytes.NewReader(want)); err != nil {
					failed.Add(1)
				} else {
					put.Add(1)
					stored[worker][key] = true
				}
				for range 3 {
					got, err := contentOf(t.Context(), b, key)
					switch {
					case err != nil:
						unread.Add(1)
					case !bytes.Equal(got, want):
						t.Errorf("%s has %d bytes that are not those of its Put", key, len(got))
					default:
						read.Add(1)
					}
				}
			}
		}()
	}
	work.Wait()
	f.mu.Lock()
	f.off = true
	t.Logf("%d puts and %d failed, %d reads and %d failed; faults: %v", put.Load(), failed.Load(), read.Load(), unread.Load(), f.made)
	f.mu.Unlock()
	for _, keys := range stored {
		for key := range keys {
			if got, err := contentOf(t.Context(), b, key); err != nil || !bytes.Equal(got, content(key)) {
				t.Errorf("%s was put and has %d bytes, %v", key, len(got), err)
			}
		}
	}
	err := b.List(t.Context(), "", func(i blob.Info) bool {
		if got, err := contentOf(t.Context(), b, i.Key); err != nil || !bytes.Equal(got, content(i.Key)) {
			t.Errorf("%s is listed and has %d bytes, %v", i.Key, len(got), err)
		}
		return true
	})
	if err != nil {
		t.Error(err)
	}
	if _, err := b.Sweep(t.Context(), 0); err != nil { // aborts can be lost, too
		t.Error(err)
	}
	if n, err := b.Sweep(t.Context(), 0); n != 0 || err != nil {
		t.Errorf("the second Sweep = %d, %v", n, err)
	}
}

func contentOf(ctx context.Context, b blob.Bucket, key string) ([]byte, error) {
	r, err := b.Get(ctx, key)
	if err != nil {
		return nil, err
	}
	got, err := io.ReadAll(r)
	_ = r.Close()
	return got, err
}

// The answer to the end of a multipart upload is lost, and the upload is known no more when it is sent again.
func TestLostComplete(t *testing.T) {
	setCredentials(t)
	s := s3test.NewMemory(t)
	b := open(t, s.Bucket())
	s.Config.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodPost && r.URL.Query().Has("uploadId") {
			s.ServeHTTP(lost{w}, r)
			panic(http.ErrAbortHandler)
		}
		s.ServeHTTP(w, r)
	})
	want := make([]byte, 6<<20)
	if err := b.Put(t.Context(), "ns/a", bytes.NewReader(want)); err != nil || s.Uploads() != 0 {
		t.Errorf("Put = %v, %d uploads are left", err, s.Uploads())
	}
	if got, err := contentOf(t.Context(), b, "ns/a"); err != nil || !bytes.Equal(got, want) {
		t.Errorf("it has %d bytes, %v", len(got), err)
	}
}
