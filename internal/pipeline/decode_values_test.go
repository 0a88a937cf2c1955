package pipeline_test

import (
	"encoding/json"
	"errors"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/goweaver/weaver/internal/pipeline"
)

// A duration is accepted as Go parses it, and the store gets that value. A hint to
// a refused duration is accepted.
func FuzzDuration(f *testing.F) {
	for _, text := range []string{
		"90s", "1h.0m", "1m30s", "1.5h", "500ms", "1ms", "1500us", "1500µs", "1500μs", "999us", "0s", "0", "0.0", "", " ", "-5s", "+5s", ".5s", "5.s", "5", "5.5", "1h 30m", "90 s",
		"90 sec", "2 days", "1w", "5S", "5 Minutes.", "10M", "1d", "99999999999999999999h", "2562047h47m16.854775807s", "2562047h47m16.854775808s", "1_000s", "٣s", "1s\n", "s", "1h30", "1x", "1s1s", "1e3", "0 seconds", "0 days", "0.0001 ms", "20000 weeks", "170000000",
	} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		odd := func(r rune) bool { return r == 0 || r >= 0x7f && unicode.IsControl(r) } // JSON writes the others as \u00xx
		if !utf8.ValidString(text) || strings.ContainsFunc(text, odd) {
			return // not in a file
		}
		got, e := timeout(t, text)
		want, err := time.ParseDuration(text)
		if e == nil {
			if err != nil || got != want || got < time.Millisecond {
				t.Errorf("%q is %v, and by Go %v, %v", text, got, want, err)
			}
			return
		}
		if len(e.Problems) != 1 || e.Problems[0].Line != 4 || !strings.Contains(e.Problems[0].Message, `"timeout" of task "a"`) {
			t.Fatalf("%q: %v", text, e)
		}
		digits := strings.Trim(text, "0123456789.hmsuµn") == ""
		if err == nil && want >= time.Millisecond && digits && !hasBareDot(text) {
			t.Errorf("%q is %v by Go, and refused: %v", text, want, e)
		}
		for i, word := range strings.Fields(e.Problems[0].Hint) {
			word = strings.TrimRight(word, ",")
			if i > 0 && word[0] >= '0' && word[0] <= '9' && !strings.Contains(word, "…") {
				if _, e := timeout(t, word); e != nil {
					t.Errorf("%q is refused with the hint %q, and %q is refused as well: %v", text, e.Problems[0].Hint, word, e)
				}
			}
		}
	})
}

// An unquoted word has its JSON meaning (number, null or boolean) as written, or
// else is a text. It is refused only where YAML readers disagree about the number.
func FuzzWord(f *testing.F) {
	for _, word := range []string{
		"0", "-0", "1.50", "1e400", "12345678901234567890.000100", "-1E+5", "01", "+1", ".5", "5.", "0x10", "0o7", "0b1", "1_000", ".inf", "-.inf", ".nan", "1.2.3", "1e", "e1",
		"null", "Null", "nULL", "true", "True", "tRUE", "false", "yes", "no", "on", "off", "y", "abc", "1st", "2026-11-21", "12e03", "1.", "-", "--1", "0x", "._", "-.",
	} {
		f.Add(word)
	}
	const letters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789+-._"
	f.Fuzz(func(t *testing.T, word string) {
		if strings.Trim(word, letters) != "" || strings.Trim(word, "-.") == "" {
			return // not a word, or an indicator of YAML
		}
		p, err := pipeline.Parse([]byte("name: n\ntasks:\n  a:\n    type: a.b.c.v1\n    input: " + word + "\n"))
		if err != nil {
			if digits := strings.TrimLeft(strings.ToLower(word), "+-._"); digits != "inf" && digits != "nan" && (digits == "" || digits[0] < '0' || digits[0] > '9') {
				t.Errorf("%s is refused: %v", word, err)
			}
			return
		}
		want := word
		if !json.Valid([]byte(word)) {
			want = `"` + word + `"`
			for _, same := range []string{"null", "true", "false"} {
				if word == strings.ToUpper(same) || word == strings.ToUpper(same[:1])+same[1:] {
					want = same
				}
			}
		}
		if got := string(p.Tasks[0].Input); got != want {
			t.Errorf("%s is read as %s, want %s", word, got, want)
		}
	})
}

// hasBareDot reports a dot without digits on both sides, as in 5.s and 1h.5m.
func hasBareDot(text string) bool {
	digit := func(i int) bool { return i >= 0 && i < len(text) && text[i] >= '0' && text[i] <= '9' }
	for i, c := range text {
		if c == '.' && (!digit(i-1) || !digit(i+1)) {
			return true
		}
	}
	return false
}

// timeout parses a pipeline with one task, and returns the task's timeout as
// stored.
func timeout(t *testing.T, text string) (time.Duration, *pipeline.Error) {
	t.Helper()
	quoted, err := json.Marshal(text)
	if err != nil {
		t.Fatal(err)
	}
	p, err := pipeline.Parse([]byte("name: n\ntasks:\n  a: {run: x,\n    timeout: " + string(quoted) + "}\n"))
	if err != nil {
		var e *pipeline.Error
		if !errors.As(err, &e) {
			t.Fatalf("%q: %T: %v", text, err, err)
		}
		return 0, e
	}
	s := submit(t, p, pipeline.JobOptions{})
	if names := slices.Collect(maps.Keys(s.tasks)); len(names) != 1 || s.tasks["a"].Timeout != p.Tasks[0].Timeout {
		t.Errorf("%q is %v, and stored as %+v", text, p.Tasks[0].Timeout, s.tasks)
	}
	return p.Tasks[0].Timeout, nil
}
