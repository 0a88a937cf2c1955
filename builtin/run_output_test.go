package builtin_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/goweaver/weaver/builtin"
)

// Sample contents: all kinds of runes that JSON treats differently, and invalid
// bytes.
var awkward = []string{
	"", "plain text, several words\n", strings.Repeat("x", 5000), strings.Repeat("\x01", 5000), strings.Repeat("\"\\/\b\f\n\r\t", 700),
	strings.Repeat("<a href='&'>", 400), strings.Repeat("\u2028\u2029", 800), strings.Repeat("é€😀", 600), strings.Repeat("\xff\xc3", 2000),
	strings.Repeat("\x00\x7f\u0080\uFFFD", 1000), "\x80\x80\x80\x80" + strings.Repeat("😀", 3000),
}

// The output fits the limit as JSON, uses the available room, and keeps ends.
func TestRunOutputFits(t *testing.T) {
	t.Parallel()
	for _, limit := range []int{0, 150, 300, 301, 302, 303, 1000, 4096, 9000, 20_000, 64 << 10} {
		for i, stdout := range awkward {
			for j, stderr := range awkward {
				what := fmt.Sprintf("limit %d, outputs %d and %d", limit, i, j)
				out := builtin.Fit(stdout, stderr, limit)
				raw, err := json.Marshal(out)
				if err != nil {
					t.Fatal(err)
				}
				if limit >= 200 && len(raw) > limit {
					t.Errorf("%s: %d bytes", what, len(raw))
				}
				// No more could have been kept: the next rune takes up to 6 bytes, and the flags
				// take up to 47.
				if cut := out.StdoutTruncated || out.StderrTruncated; cut && limit <= 4096 && len(raw) < limit-2*6-47 {
					t.Errorf("%s: %d bytes, although something was cut", what, len(raw))
				}
				checkEnd(t, what+", stdout", stdout, out.Stdout, out.StdoutBytes, out.StdoutTruncated)
				checkEnd(t, what+", stderr", stderr, out.Stderr, out.StderrBytes, out.StderrTruncated)
			}
		}
	}
}

// checkEnd checks the kept end of a stream.
func checkEnd(t *testing.T, what, written, kept string, total int64, truncated bool) {
	t.Helper()
	whole := asText(written)
	if !strings.HasSuffix(whole, kept) {
		t.Errorf("%s: kept %.40q…, which is no end of %.40q…", what, kept, whole)
	}
	if total != int64(len(written)) {
		t.Errorf("%s: %d bytes, want %d", what, total, len(written))
	}
	if truncated != (kept != whole) {
		t.Errorf("%s: truncated = %t, kept %d of %d", what, truncated, len(kept), len(whole))
	}
}

// asText returns the text kept for bytes: U+FFFD replaces invalid bytes and NUL.
func asText(s string) string {
	return strings.ReplaceAll(string([]rune(s)), "\x00", "\uFFFD")
}

// A short stream leaves its share to the other.
func TestRunOutputShares(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("0123456789", 1000)
	for name, c := range map[string]struct{ stdout, stderr string }{
		"only stdout": {long, ""},
		"only stderr": {"", long},
		"a bit":       {long, "a few words"},
		"both":        {long, long},
	} {
		out := builtin.Fit(c.stdout, c.stderr, 2000)
		raw, err := json.Marshal(out)
		if err != nil {
			t.Fatal(err)
		}
		if len(raw) < 1950 || len(raw) > 2000 {
			t.Errorf("%s: %d bytes of 2000", name, len(raw))
		}
		if len(c.stderr) < 100 && out.Stderr != c.stderr {
			t.Errorf("%s: stderr was cut to %q although it is short", name, out.Stderr)
		}
		if d := len(out.Stdout) - len(out.Stderr); name == "both" && d*d > 1 {
			t.Errorf("%s: %d and %d bytes", name, len(out.Stdout), len(out.Stderr))
		}
	}
}

// A stream keeps its end and counts all bytes, in blocks of any size.
func TestRunStreamKeepsItsEnd(t *testing.T) {
	t.Parallel()
	for _, size := range []int{1, 2, 3, 5, 7, 4096, 5000} {
		for i, text := range awkward {
			for _, kept := range []int{4, 100, 4096, 1 << 20} {
				if got := builtin.Tail(kept, chunks(text, size)); got != endOfText(text, kept) {
					t.Errorf("text %d by %d bytes: kept %.40q… of %d, want %.40q…", i, size, got, kept, endOfText(text, kept))
				}
			}
		}
	}
}

func chunks(s string, size int) []string {
	var all []string
	for len(s) > size {
		all, s = append(all, s[:size]), s[size:]
	}
	return append(all, s)
}

// endOfText returns the text kept of the last n bytes: without the end of a rune
// that begins before them.
func endOfText(s string, n int) string {
	if len(s) <= n {
		return asText(s)
	}
	end := s[len(s)-n:]
	for i := 0; i < 3 && !utf8.RuneStart(end[0]); i++ {
		end = end[1:]
	}
	return asText(end)
}

// The last line does not depend on the blocks.
func TestRunLastLine(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]struct {
		n    int
		last string
	}{
		"":                              {0, ""},
		"unfinished":                    {0, ""},
		"one\n":                         {1, "one"},
		"one\ntwo\nunfinished":          {2, "two"},
		"one\r\n  two \r\n":             {2, "  two"},
		"one\n\n \t\n\n":                {4, "one"},
		"\n\n":                          {2, ""},
		strings.Repeat("x", 900) + "\n": {1, strings.Repeat("x", 804)},
	} {
		for size := 1; size < 12; size++ {
			if n, last := builtin.Lines(chunks(text, size)); n != want.n || last != want.last {
				t.Errorf("%.40q by %d bytes: %d lines, last %.40q; want %d, %.40q", text, size, n, last, want.n, want.last)
			}
		}
	}
}
