package pipeline_test

import (
	"strings"
	"testing"
)

// Tabs and escapes that the lexer reads correctly reach the command.
func TestTabsAndEscapesThatAreKept(t *testing.T) {
	t.Parallel()
	for value, want := range map[string]string{
		"|\n      echo a\n      \techo b\t":   "echo a\n\techo b\t",
		"'echo a\tb'":                         "echo a\tb",
		`"echo a\tb"`:                         "echo a\tb",
		"\"echo a\\\tb\"":                     "echo a\tb",
		`"\x41\u00e9\ud83d\ude42 \U0001F642"`: "Aé🙂 🙂",
		"echo a\t# comment":                   "echo a",
	} {
		p := parse(t, "name: n\ntasks:\n  a:\n    run: "+value+"\n")
		if got := p.Tasks[0].Shell; strings.TrimSuffix(got, "\n") != want {
			t.Errorf("%q is read as %q, want %q", value, got, want)
		}
	}
}
