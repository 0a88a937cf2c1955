package s3_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/minio/minio-go/v7"
	"github.com/minio/minio-go/v7/pkg/credentials"

	"github.com/goweaver/weaver/blob"
	"github.com/goweaver/weaver/blob/blobtest"
	"github.com/goweaver/weaver/blob/s3"
	"github.com/goweaver/weaver/internal/s3test"
)

func setCredentials(t *testing.T) {
	t.Setenv("AWS_ACCESS_KEY_ID", "key-of-test")
	t.Setenv("AWS_SECRET_ACCESS_KEY", "secret-of-test")
}

func open(t *testing.T, url string) *s3.Bucket {
	t.Helper()
	b, err := s3.Open(url)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// TestBucket runs on a server in memory, or with WEAVER_TEST_S3=versitygw on that server, which it starts, or with
// s3://BUCKET?… in WEAVER_TEST_S3 on that bucket of another server, which must be empty.
func TestBucket(t *testing.T) {
	switch url := os.Getenv("WEAVER_TEST_S3"); url {
	case "":
	case "versitygw":
		t.Setenv("AWS_ACCESS_KEY_ID", s3test.AccessKey)
		t.Setenv("AWS_SECRET_ACCESS_KEY", s3test.SecretKey)
		testServer(t, s3test.StartGateway(t).Bucket(""))
		return
	default:
		testServer(t, url)
		return
	}
	setCredentials(t)
	blobtest.Run(t, func(t *testing.T) blobtest.Bucket {
		s := s3test.NewMemory(t)
		return blobtest.Bucket{Bucket: open(t, s.Bucket()), Damage: func(key string) {
			s.Change("pre/"+key, func(p []byte) []byte { p[len(p)/2] ^= 0x10; return p })
		}}
	})
}

func testServer(t *testing.T, url string) {
	t.Helper()
	var n atomic.Int64
	blobtest.Run(t, func(t *testing.T) blobtest.Bucket {
		prefix := fmt.Sprintf("run-%d-%d", time.Now().UnixNano(), n.Add(1))
		name, o, err := s3.Parse(strings.Replace(strings.Replace(url, "/?", "?", 1), "?", "/"+prefix+"?", 1))
		if err != nil {
			t.Fatal(err)
		}
		b, err := s3.New(name, o)
		if err != nil {
			t.Fatal(err)
		}
		if err := b.Check(); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			if n, err := b.Sweep(context.Background(), 0); n != 0 || err != nil {
				t.Errorf("Sweep = %d, %v, want no uploads left", n, err)
			}
		})
		client, err := minio.New(o.Endpoint, &minio.Options{Creds: credentials.NewEnvAWS(), Region: o.Region, Secure: !o.Insecure})
		if err != nil {
			t.Fatal(err)
		}
		return blobtest.Bucket{Bucket: b, Damage: func(key string) {
			object, err := client.GetObject(t.Context(), name, prefix+"/"+key, minio.GetObjectOptions{})
			if err != nil {
				t.Fatal(err)
			}
			data, err := io.ReadAll(object)
			if err != nil {
				t.Fatal(err)
			}
			data[len(data)/2] ^= 0x10
			if _, err := client.PutObject(t.Context(), name, prefix+"/"+key, bytes.NewReader(data), int64(len(data)), minio.PutObjectOptions{}); err != nil {
				t.Fatal(err)
			}
		}}
	})
}

func read(t *testing.T, b *s3.Bucket, key string) (string, error) {
	t.Helper()
	r, err := b.Get(t.Context(), key)
	if err != nil {
		return "", err
	}
	got, err := io.ReadAll(r)
	return string(got), errors.Join(err, r.Close())
}

// A stored object that lost its end is corrupt.
func TestTruncated(t *testing.T) {
	setCredentials(t)
	s := s3test.NewMemory(t)
	b := open(t, s.Bucket())
	for _, keep := range []int{0, 4, 9, 20, 42} {
		if err := b.Put(t.Context(), "ns/a", strings.NewReader("some bytes that are kept")); err != nil {
			t.Fatal(err)
		}
		s.Change("pre/ns/a", func(p []byte) []byte { return p[:keep] })
		if _, err := read(t, b, "ns/a"); !errors.Is(err, blob.ErrCorrupt) || !strings.Contains(err.Error(), "ns/a") {
			t.Errorf("an object cut to %d bytes: %v, want ErrCorrupt that names the key", keep, err)
		}
	}
}

// A connection that breaks in a read is an error, but not one of the bytes.
func TestConnectionBreaks(t *testing.T) {
	setCredentials(t)
	s := s3test.NewMemory(t)
	b := open(t, s.Bucket())
	if err := b.Put(t.Context(), "ns/a", bytes.NewReader(make([]byte, 1<<20))); err != nil {
		t.Fatal(err)
	}
	s.Before(func(w http.ResponseWriter, r *http.Request) bool {
		w.Header().Set("Content-Length", "1048619")
		_, _ = w.Write([]byte("WVBLOB1\n\x00half"))
		panic(http.ErrAbortHandler)
	})
	if got, err := read(t, b, "ns/a"); err == nil || errors.Is(err, blob.ErrCorrupt) {
		t.Errorf("read %d bytes, %v, want an error other than ErrCorrupt", len(got), err)
	}
}

// A large Put that fails aborts its upload, and Sweep removes an upload whose process died.
func TestUploadsEnd(t *testing.T) {
	setCredentials(t)
	s := s3test.NewMemory(t)
	b := open(t, s.Bucket())
	broken := errors.New("broken")
	large := func() io.Reader { return bytes.NewReader(make([]byte, 6<<20)) }
	err := b.Put(t.Context(), "ns/a", io.MultiReader(large(), failing{broken}))
	if !errors.Is(err, broken) || s.Uploads() != 0 {
		t.Errorf("Put = %v, %d uploads are left", err, s.Uploads())
	}
	s.Before(func(w http.ResponseWriter, r *http.Request) bool {
		if r.Method == http.MethodDelete {
			s3test.Fail(w, 403, "AccessDenied") // the abort fails
		}
		return r.Method == http.MethodDelete
	})
	if err := b.Put(t.Context(), "ns/a", io.MultiReader(large(), failing{broken})); !errors.Is(err, broken) {
		t.Errorf("Put = %v", err)
	}
	s.Before(nil)
	if n, err := b.Sweep(t.Context(), 1<<40); n != 0 || err != nil || s.Uploads() != 1 {
		t.Errorf("Sweep of a new upload = %d, %v; %d are left", n, err, s.Uploads())
	}
	if n, err := b.Sweep(t.Context(), 0); n != 1 || err != nil || s.Uploads() != 0 {
		t.Errorf("Sweep = %d, %v; %d are left", n, err, s.Uploads())
	}
}

type failing struct{ err error }

func (f failing) Read([]byte) (int, error) { return 0, f.err }

// 503 is tried again; a Put whose answer is lost has succeeded if its bytes are there.
func TestRetries(t *testing.T) {
	setCredentials(t)
	s := s3test.NewMemory(t)
	b := open(t, s.Bucket())
	var asked atomic.Int64
	s.Before(func(w http.ResponseWriter, r *http.Request) bool {
		if asked.Add(1) > 1 {
			return false
		}
		s3test.Fail(w, 503, "SlowDown")
		return true
	})
	if err := b.Put(t.Context(), "ns/a", strings.NewReader("x")); err != nil {
		t.Errorf("Put after a 503: %v", err)
	}
	s.Before(nil)
	ctx, cancel := context.WithCancel(t.Context())
	s.Config.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodPut {
			s.ServeHTTP(lost{w}, r)
			cancel()
			panic(http.ErrAbortHandler)
		}
		s.ServeHTTP(w, r)
	})
	if err := b.Put(ctx, "ns/b", strings.NewReader("y")); err != nil {
		t.Errorf("Put whose answer is lost: %v", err)
	}
	if got, err := read(t, b, "ns/b"); got != "y" || err != nil {
		t.Errorf("read %q, %v", got, err)
	}
}

// lost drops an answer.
type lost struct{ http.ResponseWriter }

func (lost) Write(p []byte) (int, error) { return len(p), nil }
func (lost) WriteHeader(int)             {}

func TestCheck(t *testing.T) {
	setCredentials(t)
	for code, want := range map[string]string{
		"": "", "AccessDenied": "s3:PutObject", "ExpiredToken": "get new ones", "SignatureDoesNotMatch": "AWS_SECRET_ACCESS_KEY",
		"InvalidAccessKeyId": "AWS_ACCESS_KEY_ID", "NoSuchBucket": "create it", "RequestTimeTooSkewed": "clock",
	} {
		s := s3test.NewMemory(t)
		if code != "" {
			s.Before(func(w http.ResponseWriter, _ *http.Request) bool { s3test.Fail(w, 403, code); return true })
		}
		err := open(t, s.Bucket()).Check()
		if (err == nil) != (code == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%s: Check = %v, want %q", code, err, want)
		}
		if err != nil && strings.Contains(err.Error(), "of-test") {
			t.Errorf("%s: Check tells a credential: %v", code, err)
		}
	}
	s := s3test.NewMemory(t)
	s.Close()
	if err := open(t, s.Bucket()).Check(); err == nil || !strings.Contains(err.Error(), "cannot be reached") {
		t.Errorf("Check of a server that is gone = %v", err)
	}
}

func TestParse(t *testing.T) {
	t.Parallel()
	name, o, err := s3.Parse("s3://bucket/a/b/?endpoint=http://host:9000&region=r&path_style=true&sse=aws:kms:k&part_size=6000000")
	if err != nil || name != "bucket" || o.Prefix != "a/b" || o.Endpoint != "host:9000" || !o.Insecure || !o.PathStyle || o.SSE != "aws:kms:k" || o.PartSize != 6000000 || o.Region != "r" {
		t.Errorf("Parse = %q, %+v, %v", name, o, err)
	}
	if _, o, err := s3.Parse("s3://bucket?endpoint=host"); err != nil || o.Insecure {
		t.Errorf("an endpoint without scheme: %+v, %v, want https", o, err)
	}
	for url, want := range map[string]string{
		"": "s3://BUCKET", "s3:bucket": "s3://BUCKET", "gs://bucket": "s3://BUCKET", "s3://": "no name", "s3://A_B": "A_B", "s3://%zz": "s3://BUCKET",
		"s3://id:hunter2@bucket": "AWS_ACCESS_KEY_ID", "s3://bucket/A": "prefix", "s3://bucket/a//b": "prefix",
		"s3://bucket?regoin=x": "regoin", "s3://bucket?path_style=maybe": "true or false", "s3://bucket?sse=none": "AES256", "s3://bucket?sse=aws:kms:": "AES256",
		"s3://bucket?region=a&region=b": "more than once", "s3://bucket?part_size=1": "5 MiB", "s3://bucket?part_size=x": "number",
		"s3://bucket?endpoint=": "endpoint", "s3://bucket?endpoint=http://u:hunter2@h": "endpoint", "s3://bucket?a=%zz": "NAME=VALUE",
	} {
		if _, err := s3.Open(url); err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("Open(%q) = %v, want %q", url, err, want)
		}
	}
}

// Without a prefix, Sweep aborts only old uploads whose names are keys of blobs.
func TestSweep_NoPrefix(t *testing.T) {
	setCredentials(t)
	s := s3test.NewMemory(t)
	b := open(t, strings.Replace(s.Bucket(), "/pre?", "?", 1))
	begin := func(key string) {
		t.Helper()
		res, err := http.Post(s.URL+"/bucket/"+key+"?uploads", "", nil)
		if err == nil {
			err = res.Body.Close()
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	hash := strings.Repeat("0f", 32)
	for _, key := range []string{"photos/a.jpg", "ns/a", "ns/" + hash, "a/b/" + hash + "-01arz3ndektsv4rrffq69g5fav"} {
		begin(key)
	}
	begin(blob.Key("ns", hash, "01ARZ3NDEKTSV4RRFFQ69G5FAV"))
	begin(blob.Key("A", "sealed-"+hash, "01ARZ3NDEKTSV4RRFFQ69G5FAV"))
	if n, err := b.Sweep(t.Context(), 0); n != 0 || err != nil {
		t.Errorf("Sweep of new uploads = %d, %v", n, err)
	}
	s.Age(25 * time.Hour)
	if n, err := b.Sweep(t.Context(), 0); n != 2 || err != nil || s.Uploads() != 4 {
		t.Errorf("Sweep = %d, %v; %d are left, want 2, nil and 4", n, err, s.Uploads())
	}
}

// Concurrent processes get the same ID of a bucket, and Sweep does not list it as a blob.
func TestIdentity(t *testing.T) {
	setCredentials(t)
	s := s3test.NewMemory(t)
	if id, place, err := open(t, s.Bucket()).Identity(t.Context(), false); id != "" || err != nil || !strings.HasPrefix(place, "s3://bucket/pre at 127.0.0.1:") {
		t.Errorf("the identity of a new bucket = %q, %q, %v", id, place, err)
	}
	ids := make(chan string, 8)
	for range cap(ids) {
		b := open(t, s.Bucket())
		go func() {
			id, _, err := b.Identity(t.Context(), true)
			if err != nil {
				t.Error(err)
			}
			ids <- id
		}()
	}
	first := <-ids
	for range cap(ids) - 1 {
		if id := <-ids; id != first || id == "" {
			t.Errorf("two identities: %q and %q", first, id)
		}
	}
	err := open(t, s.Bucket()).List(t.Context(), "", func(i blob.Info) bool {
		t.Errorf("a blob %s", i.Key)
		return true
	})
	if err != nil {
		t.Error(err)
	}
	s.Change("pre/.bucket-id", func([]byte) []byte { return []byte("short") })
	if _, _, err := open(t, s.Bucket()).Identity(t.Context(), false); err == nil || !strings.Contains(err.Error(), "accept the bucket anew") {
		t.Errorf("a damaged identity: %v", err)
	}
}

// A transport of the user carries all requests.
func TestTransport(t *testing.T) {
	setCredentials(t)
	b, err := s3.New("bucket", s3.Options{Endpoint: "s3.test", Region: "us-east-1", PathStyle: true, Transport: s3test.NewTransport(t)})
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(b.Check(), b.Put(t.Context(), "ns/a", strings.NewReader("x"))); err != nil {
		t.Fatal(err)
	}
	if got, err := read(t, b, "ns/a"); got != "x" || err != nil {
		t.Errorf("read %q, %v", got, err)
	}
}

// A Put whose caller gives up aborts its upload.
func TestCancelledPut(t *testing.T) {
	setCredentials(t)
	s := s3test.NewMemory(t)
	ctx, cancel := context.WithCancel(t.Context())
	s.Before(func(_ http.ResponseWriter, r *http.Request) bool {
		if r.URL.Query().Get("partNumber") == "2" {
			cancel()
		}
		return false
	})
	err := open(t, s.Bucket()).Put(ctx, "ns/a", bytes.NewReader(make([]byte, 11<<20)))
	if !errors.Is(err, context.Canceled) || s.Uploads() != 0 {
		t.Errorf("Put = %v, %d uploads are left", err, s.Uploads())
	}
}

// A Put that fails over the bytes of another one does not take them for its own.
func TestRefusedReplacement(t *testing.T) {
	setCredentials(t)
	s := s3test.NewMemory(t)
	b := open(t, s.Bucket())
	if err := b.Put(t.Context(), "ns/a", strings.NewReader("old")); err != nil {
		t.Fatal(err)
	}
	s.Before(func(w http.ResponseWriter, r *http.Request) bool {
		if r.Method == http.MethodPut {
			s3test.Fail(w, 403, "AccessDenied")
		}
		return r.Method == http.MethodPut
	})
	if err := b.Put(t.Context(), "ns/a", strings.NewReader("new")); err == nil {
		t.Error("a refused Put succeeded")
	}
}

// A process that comes second keeps the ID of the first, although it has seen none.
func TestIdentity_Race(t *testing.T) {
	setCredentials(t)
	s := s3test.NewMemory(t)
	var first string
	s.Before(func(_ http.ResponseWriter, r *http.Request) bool {
		if r.Method == http.MethodPut {
			s.Before(nil)
			var err error
			if first, _, err = open(t, s.Bucket()).Identity(t.Context(), true); err != nil {
				t.Error(err)
			}
		}
		return false
	})
	if id, _, err := open(t, s.Bucket()).Identity(t.Context(), true); err != nil || id != first || id == "" {
		t.Errorf("the ID of the second = %q, %v, want %q", id, err, first)
	}
}

// Sweep leaves an old upload that still gets parts.
func TestSweep_SlowUpload(t *testing.T) {
	setCredentials(t)
	s := s3test.NewMemory(t)
	b := open(t, s.Bucket())
	s.Before(func(_ http.ResponseWriter, r *http.Request) bool {
		if r.URL.Query().Get("partNumber") == "2" {
			s.Age(25 * time.Hour)
			if n, err := b.Sweep(t.Context(), 24*time.Hour); n != 0 || err != nil {
				t.Errorf("Sweep = %d, %v", n, err)
			}
		}
		return false
	})
	if err := b.Put(t.Context(), "ns/a", bytes.NewReader(make([]byte, 11<<20))); err != nil {
		t.Error(err)
	}
}
