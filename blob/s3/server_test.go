package s3_test

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
)

// server is a small S3 server with one bucket, "bucket", that keeps its bytes in files. It does not check signatures.
type server struct {
	*httptest.Server
	t   testing.TB
	dir string
	// before sees each request first; it answers if it returns true.
	before func(w http.ResponseWriter, r *http.Request) bool

	mu      sync.Mutex
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

func newServer(t testing.TB) *server {
	t.Helper()
	s := &server{t: t, dir: t.TempDir(), objects: map[string]object{}, uploads: map[string]*pending{}}
	s.Server = httptest.NewServer(s)
	t.Cleanup(s.Close)
	return s
}

// url returns the URL of its bucket.
func (s *server) url() string {
	return "s3://bucket/pre?region=us-east-1&path_style=true&endpoint=" + s.URL
}

func fail(w http.ResponseWriter, status int, code string) {
	w.Header().Set("Content-Type", "application/xml")
	w.WriteHeader(status)
	fmt.Fprintf(w, "<Error><Code>%s</Code><Message>%s.</Message></Error>", code, code)
}

func (s *server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if s.before != nil && s.before(w, r) {
		return
	}
	bucket, key, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, "/"), "/")
	q := r.URL.Query()
	if bucket != "bucket" {
		fail(w, 404, "NoSuchBucket")
		return
	}
	var file, etag string
	if r.Method == http.MethodPut { // without the lock: the client may be slow
		var err error
		if file, etag, err = s.keep(r); err != nil {
			fail(w, 400, "IncompleteBody")
			return
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	up := s.uploads[q.Get("uploadId")]
	switch {
	case q.Has("uploadId") && up == nil:
		fail(w, 404, "NoSuchUpload")
	case r.Method == http.MethodPut && up != nil:
		n, _ := strconv.Atoi(q.Get("partNumber"))
		up.parts[n] = file
		w.Header().Set("ETag", etag)
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
		fmt.Fprint(w, "<ListPartsResult></ListPartsResult>")
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
			fail(w, 404, "NoSuchKey")
			return
		}
		w.Header().Set("ETag", `"x"`)
		w.Header().Set("X-Amz-Meta-Weaver-Put", o.marker)
		http.ServeFile(w, r, o.file)
	}
}

// keep stores the body of a request in a new file.
func (s *server) keep(r *http.Request) (name, etag string, err error) {
	f, err := os.CreateTemp(s.dir, "")
	if err != nil {
		return "", "", err
	}
	defer func() { _ = f.Close() }()
	sum := sha256.New()
	_, err = io.Copy(io.MultiWriter(f, sum), r.Body)
	if got := hex.EncodeToString(sum.Sum(nil)); err == nil && got != r.Header.Get("X-Amz-Content-Sha256") {
		err = fmt.Errorf("%w: got %s", errHash, got)
		s.t.Error(err)
	}
	return f.Name(), `"x"`, err
}

func (s *server) complete(up *pending, id string) {
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

// change rewrites the stored bytes of a key.
func (s *server) change(key string, by func([]byte) []byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	name := s.objects["pre/"+key].file
	data, err := os.ReadFile(filepath.Clean(name))
	if err == nil {
		err = os.WriteFile(name, by(data), 0o600)
	}
	if err != nil {
		s.t.Error(err)
	}
}

var errHash = errors.New("a body has another hash than its request says")
