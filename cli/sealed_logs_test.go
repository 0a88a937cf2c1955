package cli

import (
	"bytes"
	"io"
	"strings"
	"testing"

	"github.com/goweaver/weaver/codec/aesgcm"
	"github.com/goweaver/weaver/internal/attemptlog"
	"github.com/goweaver/weaver/task"
)

type nopCloser struct{ io.Writer }

func (nopCloser) Close() error { return nil }

func TestSealedLog(t *testing.T) {
	t.Parallel()
	k, err := aesgcm.NewKey("k1")
	if err != nil {
		t.Fatal(err)
	}
	c, err := aesgcm.New(k)
	if err != nil {
		t.Fatal(err)
	}
	s := &logSealer{codec: c, namespace: "default"}
	of := attemptlog.Attempt{Task: task.NewIDs(nil).New(), No: 1}

	var stored bytes.Buffer
	w := s.writer(of, nopCloser{&stored})
	pieces := []string{"secret one\n", "half a ", "line\n", strings.Repeat("secret\n", 20_000)}
	for _, p := range pieces {
		if n, err := w.Write([]byte(p)); n != len(p) || err != nil {
			t.Fatalf("Write = %d, %v", n, err)
		}
	}
	if bytes.Contains(stored.Bytes(), []byte("secret")) {
		t.Error("the secret is stored")
	}
	all := func(stored string, a attemptlog.Attempt) string {
		t.Helper()
		got, err := io.ReadAll(s.reader(a, io.NopCloser(strings.NewReader(stored))))
		if err != nil {
			t.Error(err)
		}
		return string(got)
	}
	want := strings.Join(pieces, "")
	if got := all(stored.String(), of); got != want {
		t.Errorf("read %d bytes of %d", len(got), len(want))
	}
	lines := strings.SplitAfter(stored.String(), "\n")
	if got := all(lines[0]+lines[1][:30], of); got != pieces[0] {
		t.Errorf("of a log that ends in a piece: %q", got)
	}
	note := "[… 7 bytes of this output were not kept]\n"
	if got := all(lines[0]+lines[1][:30]+"\n"+note+lines[1][40:]+lines[2], of); got != pieces[0]+"[… a sealed piece of this output is not whole]\n"+note+lines[1][40:]+pieces[2] {
		t.Errorf("of a log without its middle: %q", got)
	}
	if got := all("plain\n"+lines[0]+"end", of); got != "plain\n"+pieces[0]+"end" {
		t.Errorf("of a log that is plain in part: %q", got)
	}

	// A growing log.
	var grows bytes.Buffer
	r := s.reader(of, io.NopCloser(&grows))
	var got []byte
	for _, b := range stored.Bytes() {
		grows.WriteByte(b)
		more, err := io.ReadAll(r)
		if err != nil {
			t.Fatal(err)
		}
		if got = append(got, more...); len(got) > 100 {
			break
		}
	}
	if !strings.HasPrefix(string(got), pieces[0]+pieces[1]+pieces[2]) {
		t.Errorf("of a log that grows: %.100q", got)
	}

	for name, bad := range map[string]io.Reader{
		"of another attempt": s.reader(attemptlog.Attempt{Task: of.Task, No: 2}, io.NopCloser(strings.NewReader(lines[0]))),
		"of another number":  s.reader(of, io.NopCloser(strings.NewReader(strings.Replace(lines[0], " 1 ", " 2 ", 1)))),
		"without a codec":    (*logSealer)(nil).reader(of, io.NopCloser(strings.NewReader(lines[0]))),
	} {
		if got, err := io.ReadAll(bad); err == nil || !strings.Contains(err.Error(), `"k1"`) {
			t.Errorf("%s: %q, %v", name, got, err)
		}
	}
}
