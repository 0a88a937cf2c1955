// Package s3test has S3 servers for tests.
package s3test

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/minio/minio-go/v7/pkg/credentials"
)

// Memory is a small S3 server in the test's process, with one bucket, "bucket", that keeps its bytes in files. It does
// not check signatures. A request whose body differs from its hash fails the test, unless LetDamage was called.
type Memory struct {
	*httptest.Server // nil: it is reached by its RoundTrip only
	t                testing.TB
	dir              string

	mu      sync.Mutex
	before  func(w http.ResponseWriter, r *http.Request) bool
	damage  bool
	n       int
	objects map[string]object
	uploads map[string]*pending
}

type object struct {
	file, marker string
	at           time.Time
}

type pending struct {
	key, marker string
	at          time.Time
	parts       map[int]string
}

// NewMemory starts a server, which ends with the test.
func NewMemory(t testing.TB) *Memory {
	t.Helper()
	s := NewTransport(t)
	s.Server = httptest.NewServer(s)
	t.Cleanup(s.Close)
	return s
}

// NewTransport returns a server without a port, which is its client's http.RoundTripper.
func NewTransport(t testing.TB) *Memory {
	t.Helper()
	return &Memory{t: t, dir: t.TempDir(), objects: map[string]object{}, uploads: map[string]*pending{}}
}

// Credentials returns any credentials: the server takes all.
func (s *Memory) Credentials() *credentials.Credentials {
	return credentials.NewStaticV4("key", "secret", "")
}

// RoundTrip implements http.RoundTripper.
func (s *Memory) RoundTrip(r *http.Request) (*http.Response, error) {
	if err := r.Context().Err(); err != nil {
		return nil, err
	}
	if r.Body == nil {
		r = r.Clone(r.Context())
		r.Body = http.NoBody
	}
	w := httptest.NewRecorder()
	s.ServeHTTP(w, r)
	res := w.Result()
	res.Request = r
	return res, r.Body.Close()
}

// LetDamage makes the server refuse a body that differs from its hash without failing the test.
func (s *Memory) LetDamage() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.damage = true
}

// Age makes objects and uploads older, but not the parts of uploads.
func (s *Memory) Age(by time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for key, o := range s.objects {
		o.at = o.at.Add(-by)
		s.objects[key] = o
	}
	for _, u := range s.uploads {
		u.at = u.at.Add(-by)
	}
}

// Bucket returns the URL of a prefix of its bucket, for s3.Open.
func (s *Memory) Bucket() string {
	return "s3://bucket/pre?region=us-east-1&path_style=true&endpoint=" + s.URL
}

// Before makes a function see each request first; it answers the request if it returns true. nil ends that.
func (s *Memory) Before(fn func(w http.ResponseWriter, r *http.Request) bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.before = fn
}

// Uploads returns the number of unfinished multipart uploads.
func (s *Memory) Uploads() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.uploads)
}

// Change rewrites the stored bytes of an object.
func (s *Memory) Change(name string, by func([]byte) []byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	file := s.objects[name].file
	data, err := os.ReadFile(filepath.Clean(file))
	if err == nil {
		err = os.WriteFile(file, by(data), 0o600)
	}
	if err != nil {
		s.t.Error(err)
	}
}

// Fail answers a request with an error of S3.
func Fail(w http.ResponseWriter, status int, code string) {
	w.Header().Set("Content-Type", "application/xml")
	w.WriteHeader(status)
	fmt.Fprintf(w, "<Error><Code>%s</Code><Message>%s.</Message></Error>", code, code)
}

// ServeHTTP implements http.Handler.
func (s *Memory) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	before := s.before
	s.mu.Unlock()
	if before != nil && before(w, r) {
		return
	}
	bucket, key, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, "/"), "/")
	q := r.URL.Query()
	if bucket != "bucket" {
		Fail(w, 404, "NoSuchBucket")
		return
	}
	var file, etag string
	if r.Method == http.MethodPut { // without the lock: the client may be slow
		var err error
		if file, etag, err = s.keep(r); err != nil {
			Fail(w, 400, "IncompleteBody")
			return
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	up := s.uploads[q.Get("uploadId")]
	switch {
	case q.Has("uploadId") && up == nil:
		Fail(w, 404, "NoSuchUpload")
	case r.Method == http.MethodPut && up != nil:
		n, _ := strconv.Atoi(q.Get("partNumber"))
		up.parts[n] = file
		w.Header().Set("ETag", etag)
	case r.Method == http.MethodPut && r.Header.Get("If-None-Match") == "*" && s.objects[key] != (object{}):
		Fail(w, 412, "PreconditionFailed")
	case r.Method == http.MethodPut:
		s.objects[key] = object{file, r.Header.Get("X-Amz-Meta-Weaver-Put"), time.Now()}
		w.Header().Set("ETag", etag)
	case r.Method == http.MethodPost && q.Has("uploads"):
		s.n++
		id := fmt.Sprint("up", s.n)
		s.uploads[id] = &pending{key, r.Header.Get("X-Amz-Meta-Weaver-Put"), time.Now(), map[int]string{}}
		fmt.Fprintf(w, "<InitiateMultipartUploadResult><Bucket>bucket</Bucket><Key>%s</Key><UploadId>%s</UploadId></InitiateMultipartUploadResult>", key, id)
	case r.Method == http.MethodPost:
		s.complete(up, q.Get("uploadId"))
		fmt.Fprintf(w, "<CompleteMultipartUploadResult><Bucket>bucket</Bucket><Key>%s</Key><ETag>\"x\"</ETag></CompleteMultipartUploadResult>", key)
	case r.Method == http.MethodDelete && up != nil:
		delete(s.uploads, q.Get("uploadId"))
		w.WriteHeader(204)
	case r.Method == http.MethodDelete:
		delete(s.objects, key)
		w.WriteHeader(204)
	case q.Has("uploadId"):
		fmt.Fprint(w, "<ListPartsResult>")
		for n, file := range up.parts {
			info, _ := os.Stat(file)
			fmt.Fprintf(w, "<Part><PartNumber>%d</PartNumber><Size>%d</Size><ETag>\"x\"</ETag><LastModified>%s</LastModified></Part>", n, info.Size(), info.ModTime().UTC().Format(time.RFC3339Nano))
		}
		fmt.Fprint(w, "</ListPartsResult>")
	case q.Has("uploads"):
		fmt.Fprint(w, "<ListMultipartUploadsResult><Bucket>bucket</Bucket>")
		for id, u := range s.uploads {
			fmt.Fprintf(w, "<Upload><Key>%s</Key><UploadId>%s</UploadId><Initiated>%s</Initiated></Upload>", u.key, id, u.at.UTC().Format(time.RFC3339Nano))
		}
		fmt.Fprint(w, "</ListMultipartUploadsResult>")
	case key == "":
		fmt.Fprint(w, "<ListBucketResult><Name>bucket</Name>")
		for k, o := range s.objects {
			if strings.HasPrefix(k, q.Get("prefix")) {
				info, _ := os.Stat(o.file)
				fmt.Fprintf(w, "<Contents><Key>%s</Key><Size>%d</Size><ETag>\"x\"</ETag><LastModified>%s</LastModified></Contents>", k, info.Size(), o.at.UTC().Format(time.RFC3339Nano))
			}
		}
		fmt.Fprint(w, "</ListBucketResult>")
	default:
		o, ok := s.objects[key]
		if !ok {
			Fail(w, 404, "NoSuchKey")
			return
		}
		w.Header().Set("ETag", `"x"`)
		w.Header().Set("X-Amz-Meta-Weaver-Put", o.marker)
		http.ServeFile(w, r, o.file)
	}
}

// keep stores the body of a request in a new file.
func (s *Memory) keep(r *http.Request) (name, etag string, err error) {
	f, err := os.CreateTemp(s.dir, "")
	if err != nil {
		return "", "", err
	}
	defer func() { _ = f.Close() }()
	sum := sha256.New()
	_, err = io.Copy(io.MultiWriter(f, sum), r.Body)
	if got := hex.EncodeToString(sum.Sum(nil)); err == nil && got != r.Header.Get("X-Amz-Content-Sha256") {
		err = fmt.Errorf("%w: got %s", errHash, got)
		s.mu.Lock()
		if !s.damage {
			s.t.Error(err)
		}
		s.mu.Unlock()
	}
	return f.Name(), `"x"`, err
}

func (s *Memory) complete(up *pending, id string) {
	f, err := os.CreateTemp(s.dir, "")
	if err != nil {
		s.t.Error(err)
		return
	}
	defer func() { _ = f.Close() }()
	numbers := make([]int, 0, len(up.parts))
	for n := range up.parts {
		numbers = append(numbers, n)
	}
	slices.Sort(numbers)
	for _, n := range numbers {
		p, err := os.Open(up.parts[n])
		if err == nil {
			_, err = io.Copy(f, p)
			_ = p.Close()
		}
		if err != nil {
			s.t.Error(err)
		}
	}
	s.objects[up.key] = object{f.Name(), up.marker, time.Now()}
	delete(s.uploads, id)
}

var errHash = errors.New("a body has another hash than its request says")
