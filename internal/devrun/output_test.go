package devrun_test

import (
	"bytes"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/goweaver/weaver/internal/devrun"
)

func TestOutput(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("ä", devrun.MaxLine) // two bytes each
	for name, c := range map[string]struct {
		pieces []string
		want   []string
	}{
		"lines":         {[]string{"a\nb\n"}, []string{"a", "b"}},
		"in pieces":     {[]string{"a", "b\n", "\nc"}, []string{"ab", "", "c"}},
		"without end":   {[]string{"tail"}, []string{"tail"}},
		"of Windows":    {[]string{"a\r\nb"}, []string{"a", "b"}},
		"nothing":       {[]string{""}, nil},
		"a long line":   {[]string{"x", long, "\n"}, nil},
		"just too long": {[]string{strings.Repeat("x", devrun.MaxLine+1) + "\n"}, []string{strings.Repeat("x", devrun.MaxLine), "x"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var b bytes.Buffer
			devrun.Split(devrun.NewOutput(&b), c.pieces...)
			var got []string
			for line := range strings.Lines(b.String()) {
				text, ok := strings.CutPrefix(line, "app   | ")
				if text = strings.TrimSuffix(text, "\n"); !ok || len(text) > devrun.MaxLine || !utf8.ValidString(text) {
					t.Fatalf("a line of %d bytes begins %.20q", len(line), line)
				}
				got = append(got, text)
			}
			if name == "a long line" {
				if whole := strings.Join(got, ""); whole != "x"+long || len(got) != 3 {
					t.Errorf("%d lines with %d bytes, want 3 with all", len(got), len(whole))
				}
			} else if !slices.Equal(got, c.want) {
				t.Errorf("printed %q, want %q", got, c.want)
			}
		})
	}
}
