package text

import (
	"strings"
	"testing"
)

func TestCleaner(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		"": "", "one\ntwo\n\nthree": "one\ntwo\n\nthree", "a\tb\r\nc\r\n": "a\tb\nc\n", " 10 %\r100 %\r": " 10 %\n100 %\n",
		"\x1b[31mred\x1b[0m": "red", "\x1b]0;title\x07a": "a", "\x1b]52;c;cm0gLXJm\x1b\\a": "a", "\u009b31mred\u009d0;own\u009cb": "redb", "a\x9bb": "a\ufffdb",
		"a\x1b]0;own\nb\x1b[3\nc": "a\nb\nc", "ab\b\bc": "abc", "a\x00\x7f\u0085": "a\ufffd\ufffd\ufffd", "a\u202eb": "a\ufffdb", "half \xe2": "half \ufffd",
		"\x1bP$q\"p\x1b\\b\x1b_apc\x1b\\c\x1bcd": "bcd", "x\x1b[2Ky\x1b[1Gz": "xy\nz", "日本\u3000": "日本\u3000", strings.Repeat("é", 9000): strings.Repeat("é", 9000),
	} {
		for _, size := range []int{len(in) + 1, 1} {
			var c Cleaner
			var got strings.Builder
			for rest := in; rest != ""; {
				n := min(size, len(rest))
				got.WriteString(c.Clean(rest[:n]))
				rest = rest[n:]
			}
			got.WriteString(c.End())
			if got.String() != want {
				t.Errorf("%.60q in blocks of %d: %.60q, want %.60q", in, size, got.String(), want)
			}
		}
	}
	c := Cleaner{Colors: true}
	if got, want := c.Clean("\x1b[31mred\x1b[2J\x1b]0;own\x07\n")+c.End(), "\x1b[31mred\n\x1b[0m"; got != want {
		t.Errorf("with colours: %q, want %q", got, want)
	}
}
