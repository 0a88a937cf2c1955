package text

import (
	"fmt"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"
)

func TestRecordedText(t *testing.T) {
	t.Parallel()
	if got := OneLine("a\x1b[31m\n\n  b\tc\r\n\x07", 80); got != "a b c \ufffd" {
		t.Errorf("OneLine = %q", got)
	}
	if got := FirstLine("\n \n  exit  status 3\nmore", 80); got != "exit status 3" {
		t.Errorf("FirstLine = %q", got)
	}
	if got := FirstLine("\n", 80); got != "" {
		t.Errorf("FirstLine of nothing = %q", got)
	}
	if got := fmt.Sprintf("%q", Lines("a\n\nb\n")); got != `["a" "" "b"]` {
		t.Errorf("Lines = %s", got)
	}
}

func TestOneLine(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		recorded string
		limit    int
		want     string
	}{
		{"plain", 9, "plain"},
		{" two\n lines\t", 9, "two lines"},
		{"bell\a and \x1b[2J", 20, "bell� and"},
		{"日本語のとても長いメッセージ", 9, "日本語の…"},
		{"012345678", 9, "012345678"},
		{"0123456789", 9, "01234567…"},
	} {
		if got := OneLine(tc.recorded, tc.limit); got != tc.want {
			t.Errorf("%q: got %q, want %q", tc.recorded, got, tc.want)
		}
	}
}

// OneLine returns a printable line within the limit, and is idempotent.
func FuzzOneLine(f *testing.F) {
	for _, recorded := range []string{"", "plain", "日本語", " two\n lines\t", "bell\a and \x1b[2J", "日本語のとても長いメッセージ", "\xff\xfe", "a\u2028b", "\u202ereversed", "e\u0301", "\u00a0", "\ufeff"} {
		f.Add(recorded, uint8(8))
		f.Add(recorded, uint8(3))
	}
	f.Fuzz(func(t *testing.T, recorded string, limit uint8) {
		most := 1 + int(limit)
		got := OneLine(recorded, most)
		acts := func(r rune) bool { return unicode.IsControl(r) || r == '\u202e' || r == '\u2028' }
		if Width(got) > most || !utf8.ValidString(got) || strings.ContainsFunc(got, acts) {
			t.Errorf("%q in %d: %q", recorded, most, got)
		}
		if again := OneLine(got, most); again != got && again != strings.Join(strings.Fields(got), " ") {
			t.Errorf("%q in %d: %q, and again %q", recorded, most, got, again)
		}
		plain := strings.Join(strings.Fields(recorded), " ") == recorded && isASCII(recorded) && !strings.ContainsFunc(recorded, unicode.IsControl)
		if plain && len(recorded) <= most && got != recorded {
			t.Errorf("%q fits into %d and became %q", recorded, most, got)
		}
	})
}
