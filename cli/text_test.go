package cli_test

import (
	"testing"

	"github.com/goweaver/weaver/cli"
)

func TestTable(t *testing.T) {
	t.Parallel()
	rows := [][]string{{"a", "", "long value", "x"}, {"ü", "", "b", ""}}
	want := "K  VALUE       NOTE\n" + "a  long value  x\n" + "ü  b\n"
	if got := cli.Table(false, []string{"K", "NONE", "VALUE", "NOTE"}, rows...); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	// Wide letters take two columns.
	wide := [][]string{{"日本", "x"}, {"a", "y"}, {"e\u0301", "z"}}
	if got, want := cli.Table(false, []string{"K", "V"}, wide...), "K     V\n日本  x\na     y\ne\u0301     z\n"; got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	// Colour codes take no width.
	want = "\x1b[1mK\x1b[0m  \x1b[1mVALUE\x1b[0m       \x1b[1mNOTE\x1b[0m\n" + "\x1b[31ma\x1b[0m  long value  x\n" + "\x1b[31mü\x1b[0m  b\n"
	if got := cli.Table(true, []string{"K", "NONE", "VALUE", "NOTE"}, rows...); got != want {
		t.Errorf("got\n%q\nwant\n%q", got, want)
	}
}

func TestDidYouMean(t *testing.T) {
	t.Parallel()
	for word, want := range map[string]string{
		"faild": " (did you mean failed?)", "run": " (did you mean running?)", "complete": " (did you mean succeeded?)",
		"canceled": " (did you mean cancelled?)", "x": "", "": "", "something": "",
	} {
		if got := cli.DidYouMean(word, "running", "failed", "succeeded", "cancelled"); got != want {
			t.Errorf("%q: got %q, want %q", word, got, want)
		}
	}
}

func TestQuote(t *testing.T) {
	t.Parallel()
	for word, want := range map[string]string{"plain-1.db": "plain-1.db", "": "''", "two words": "'two words'", "it's": `'it'\''s'`, "$HOME": "'$HOME'"} {
		if got := cli.Quote(word); got != want {
			t.Errorf("%q: got %s, want %s", word, got, want)
		}
	}
}
