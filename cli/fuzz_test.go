package cli_test

import (
	"bytes"
	"fmt"
	"maps"
	"os"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"github.com/goweaver/weaver/cli"
)

// Every value of --store names a file or is bad input. Reading verbs create nothing, and the output is safe for a
// terminal and shows no password.
func FuzzStoreURL(f *testing.F) {
	for _, given := range []string{
		"sqlite:weaver.db", "sqlite:a b.db", "sqlite:100%.db", "sqlite:%41.db", "sqlite:a?mode=memory", "sqlite:a#b", "sqlite:", "sqlite", "sqlite:a\x00b", "sqlite:\xff",
		"sqlite:.", "sqlite:..", "sqlite::memory:", "sqlite:file:a.db", "SQLITE:a.db", "sqlite://a.db", "sqlite:a:b", "memory:", "memory", "file:a.db", "weaver.db", "", " ", ":", "a@b?c",
		"postgres://u@h/db", "postgresql:", "mysql://h", "redis:x", "C:\\weaver.db", "https://example.com/%zz", "é:a", "sqlite:a\nb", "sqlite: ", "a:b@c",
	} {
		f.Add(given, "mysql", "h/db")
		f.Add(given, "postgres", "h:5432/db?sslmode=disable")
	}
	const secret = "hunter2"
	f.Fuzz(func(t *testing.T, given, scheme, rest string) {
		path, err := cli.StorePath(given)
		if kind, name, found := strings.Cut(given, ":"); err == nil {
			if !found || kind != "sqlite" || name != path || path == "" || path == ":memory:" || strings.HasPrefix(path, "//") {
				t.Errorf("%q names the file %q", given, path)
			}
		} else {
			var stderr bytes.Buffer
			if code := cli.Report(&stderr, err); code != 2 || !strings.Contains(stderr.String(), "--store") {
				t.Errorf("%q: exit code %d, %s", given, code, stderr.String())
			}
		}
		t.Chdir(t.TempDir())
		if !strings.ContainsAny(given, "/") && path != ".." { // not a file of this machine
			var stdout, stderr bytes.Buffer
			code := cli.Run(t.Context(), cli.App{}, []string{"--store=" + given, "task", "ls"}, strings.NewReader(""), &stdout, &stderr)
			want := 3 // no such file
			if err != nil && given != "" {
				want = 2
			}
			if code != want || stdout.Len() > 0 {
				t.Errorf("%q: exit code %d, want %d, %q, %q", given, code, want, stdout.String(), stderr.String())
			}
			checkText(t, given, stderr.String())
			if entries, err := os.ReadDir("."); err != nil || len(entries) > 0 {
				t.Errorf("%q: %v was created, %v", given, entries, err)
			}
		}

		// Text before an @ is a password, except in a path.
		const letters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
		if withSecret := scheme + "://user:" + secret + "@" + rest; scheme != "" && strings.Trim(scheme, letters) == "" && scheme != "sqlite" {
			_, err := cli.StorePath(withSecret)
			var stderr bytes.Buffer
			if code := cli.Report(&stderr, err); code != 2 || strings.Contains(stderr.String(), secret) {
				t.Errorf("%q: exit code %d, %s", withSecret, code, stderr.String())
			}
			checkText(t, withSecret, stderr.String())
			shown, err := cli.ShownStore(withSecret)
			stderr.Reset()
			if err != nil && cli.Report(&stderr, err) != 2 || strings.Contains(shown+stderr.String(), secret) {
				t.Errorf("%q is shown as %q, %s", withSecret, shown, stderr.String())
			}
		}
	})
}

// checkText checks that lines of text do not control a terminal.
func checkText(t *testing.T, what, text string) {
	t.Helper()
	odd := func(r rune) bool { return r != '\n' && !unicode.IsPrint(r) }
	if text == "" || !utf8.ValidString(text) || strings.ContainsFunc(text, odd) {
		t.Errorf("%q: the answer is no printable text: %q", what, text)
	}
}

// A quoted word means itself to a shell.
func FuzzQuote(f *testing.F) {
	for _, word := range []string{"", "a", "a b", "it's", "''", `a\b`, "$(x)", "a;b", "~", "#", "a\nb", "é", "\xff", "-o", "a=b", "*", "!"} {
		f.Add(word)
	}
	f.Fuzz(func(t *testing.T, word string) {
		quoted := cli.Quote(word)
		if back, err := unquote(quoted); err != nil || back != word {
			t.Errorf("%q is quoted as %s, which is %q, %v", word, quoted, back, err)
		}
	})
}

// unquote parses one word like a shell (POSIX.1, 2.2) and refuses unquoted special characters.
func unquote(s string) (string, error) {
	var b strings.Builder
	if s == "" {
		return "", fmt.Errorf("no word")
	}
	for i := 0; i < len(s); i++ {
		switch c := s[i]; {
		case c == '\'':
			end := strings.IndexByte(s[i+1:], '\'')
			if end < 0 {
				return "", fmt.Errorf("no closing quote")
			}
			b.WriteString(s[i+1 : i+1+end])
			i += end + 1
		case c == '\\' && i+1 < len(s) && s[i+1] != '\n':
			i++
			b.WriteByte(s[i])
		case c == '~' && i == 0, c == '#' && i == 0, c >= 0x80, strings.IndexByte("|&;<>()$`\\\" \t\n*?[]{}!", c) >= 0:
			return "", fmt.Errorf("%q has a meaning of its own", c)
		default:
			b.WriteByte(c)
		}
	}
	return b.String(), nil
}

// Labels are split at the first = or refused.
func FuzzLabels(f *testing.F) {
	for _, pair := range [][2]string{{"a=b", "c=d"}, {"a=b", "a=b"}, {"a=b", "a=c"}, {"a", "b=c"}, {"=a", "b=c"}, {"a=", "a=="}, {"a=b=c", "é=\xff"}, {"", "a=b"}} {
		f.Add(pair[0], pair[1])
	}
	f.Fuzz(func(t *testing.T, a, b string) {
		want, bad := make(map[string]string), false
		for _, arg := range []string{a, b} {
			i := strings.Index(arg, "=")
			if i < 1 {
				bad = true
				continue
			}
			if old, ok := want[arg[:i]]; ok && old != arg[i+1:] {
				bad = true
			}
			want[arg[:i]] = arg[i+1:]
		}
		got, err := cli.ParseLabels(a, b)
		if (err != nil) != bad || err == nil && !maps.Equal(got, want) {
			t.Errorf("%q, %q: %v, %v; want %v", a, b, got, err, want)
		}
		if err != nil {
			var stderr bytes.Buffer
			if code := cli.Report(&stderr, err); code != 2 {
				t.Errorf("%q, %q: exit code %d", a, b, code)
			}
			checkText(t, a+", "+b, stderr.String())
		}
	})
}
