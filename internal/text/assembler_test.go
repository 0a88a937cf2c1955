package text

import (
	"reflect"
	"strings"
	"testing"
	"unicode/utf8"
)

// assembled writes blocks and returns the lines; the last one is unfinished.
func assembled(blocks ...string) (lines []string) {
	var a Assembler
	for _, b := range blocks {
		a.Write(b, func(line string) { lines = append(lines, line) })
	}
	return append(lines, a.Rest())
}

func TestAssembler(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name, in string
		want     []string
	}{
		{"nothing", "", []string{""}},
		{"lines", "one\ntwo\n\nthree", []string{"one", "two", "", "three"}},
		{"windows", "one\r\ntwo\r\n", []string{"one", "two", ""}},
		{"progress bar", " 10 %\r 20 %\r100 %\ndone\r", []string{"100 %", "done"}},
		{"shorter rewrite", "long text\rab\n", []string{"ab", ""}},
		{"spinner", "|\b/\b-\b\\ \n", []string{"\\", ""}},
		{"cursor to the first column", "|\x1b[1G/\x1b[1G-\n", []string{"-", ""}},
		{"tabs", "a\tbc\td\n", []string{"a       bc      d", ""}},
		{"japanese", "日本語\n終", []string{"日本語", "終"}},
		{"ideographic space", "a\u3000b\n", []string{"a\u3000b", ""}},
		{"family", "👩\u200d💻\n", []string{"👩\u200d💻", ""}},
		{"combining", "e\u0301\n", []string{"e\u0301", ""}},
		{"colours", "\x1b[1;31mred\x1b[0m plain\x1b[m\n", []string{"red plain", ""}},
		{"256 colours", "\x1b[38;5;196mred\x1b[38:2::1:2:3mx\n", []string{"redx", ""}},
		{"private mode", "\x1b[?25lhidden\x1b[?25h\x1b[>4;2m\x1b[!p\n", []string{"hidden", ""}},
		{"title by BEL", "\x1b]0;own\aafter\n", []string{"after", ""}},
		{"title by ST", "\x1b]0;own\x1b\\after\n", []string{"after", ""}},
		{"clipboard", "\x1b]52;c;cm0gLXJm\x07after\n", []string{"after", ""}},
		{"link", "\x1b]8;;http://x\x1b\\text\x1b]8;;\x1b\\\n", []string{"text", ""}},
		{"device control", "\x1bP$q\"p\x1b\\after\x1b_apc\x1b\\\x1b^pm\x1b\\\x1bXsos\x1b\\!\n", []string{"after!", ""}},
		{"8-bit", "\u009b31mred\u009d0;own\u009cafter\u0085\n", []string{"redafter\ufffd", ""}},
		{"short escapes", "\x1bcreset\x1b7\x1b8\x1b=\x1b(B\x1b#8\n", []string{"reset", ""}},
		{"never closed", "a\x1b]0;own\nb\x1b[31\nc\x1b\nd\n", []string{"a", "b", "c", "d", ""}},
		{"closed by another", "a\x1b[3\x1b[31mb\x1b]x\x1b[31mc\n", []string{"abc", ""}},
		{"cancelled", "a\x1b[3\x18b\n", []string{"ab", ""}},
		{"double escape", "a\x1b\x1b[31mb\n", []string{"ab", ""}},
		{"other controls", "a\x00b\x07c\x0bd\x7fe\n", []string{"a\ufffdb\ufffdc\ufffdd\ufffde", ""}},
		{"direction", "a\u202eb\u2066c\u2028d\n", []string{"a\ufffdb\ufffdc\ufffdd", ""}},
		{"invalid", "a\xffb\xe3\x81\n", []string{"a\ufffdb\ufffd\ufffd", ""}},
		{"ends in a character", "a\xe3\x81", []string{"a\ufffd"}},
		{"long", strings.Repeat("é", 9000) + "\n", []string{strings.Repeat("é", 4000), strings.Repeat("é", 4000), strings.Repeat("é", 1000), ""}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			if got := assembled(tc.in); !reflect.DeepEqual(got, tc.want) {
				t.Errorf("lines of %.80q:\n%.200q, want\n%.200q", tc.in, got, tc.want)
			}
			if len(tc.in) > 200 {
				return
			}
			for i := range len(tc.in) + 1 {
				if got := assembled(tc.in[:i], tc.in[i:]); !reflect.DeepEqual(got, tc.want) {
					t.Errorf("split at byte %d: %q, want %q", i, got, tc.want)
				}
			}
			if got := assembled(strings.Split(tc.in, "")...); utf8.ValidString(tc.in) && !reflect.DeepEqual(got, tc.want) {
				t.Errorf("character by character: %q, want %q", got, tc.want)
			}
		})
	}
}

// No output of a command can control a terminal.
func FuzzAssembler(f *testing.F) {
	f.Add("a\x1b[31mb\x1b]0;t\a\xff\u202e", 3)
	f.Fuzz(func(t *testing.T, in string, at int) {
		at = min(max(at, 0), len(in))
		split := assembled(in[:at], in[at:])
		if whole := assembled(in); !reflect.DeepEqual(whole, split) {
			t.Errorf("%q: %q, split at %d: %q", in, whole, at, split)
		}
		for _, line := range split {
			for _, r := range line {
				if r < ' ' || r >= 0x7f && r < 0xa0 || r == 0x202e {
					t.Errorf("%q lets %U through: %q", in, r, line)
				}
			}
			if !utf8.ValidString(line) || utf8.RuneCountInString(line) > MaxLine {
				t.Errorf("%q makes the line %q", in, line)
			}
		}
	})
}

func TestSeen(t *testing.T) {
	t.Parallel()
	var a Assembler
	for _, step := range []struct{ block, want string }{
		{" 10", " 10"},
		{" %\r", " 10 %"}, // until the next line overwrites it
		{" 20 %", " 20 %"},
		{"\x1b[", " 20 %"},
		{"31m!", " 20 %!"},
		{"\n", ""},
	} {
		a.Write(step.block, func(string) {})
		if got := a.Seen(); got != step.want {
			t.Errorf("after %q: %q, want %q", step.block, got, step.want)
		}
	}
}

// With Colors a line keeps its colours and no other control sequence.
func TestAssemblerColors(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		"\x1b[1;31mred\x1b[0m plain":             "\x1b[1;31mred\x1b[0m plain\x1b[0m",
		"\u009b38:5:3mx":                         "\x1b[38:5:3mx\x1b[0m",
		"\x1b[2J\x1b[1;1Hx\x1b]0;title\a":        "x",
		"\x1b[?25m\x1b[>4;1mx\x1b[ my":           "xy",
		"\x1b[31ma\b\b\b\bb":                     "\x1b[31mab\x1b[0m",
		"50%\r\x1b[32m100%":                      "\x1b[32m100%\x1b[0m",
		"\x1b[" + strings.Repeat("1", 40) + "mx": "x",
		"\x1b[31\x1b[32mx":                       "\x1b[32mx\x1b[0m",
		"plain":                                  "plain",
	} {
		a := Assembler{Colors: true}
		var lines []string
		a.Write(in+"\nnext\n", func(line string) { lines = append(lines, line) })
		if len(lines) != 2 || lines[0] != want || lines[1] != "next" {
			t.Errorf("%q: got %q, want %q", in, lines, want)
		}
	}
}
