package cli_test

import (
	"testing"
	"time"

	"github.com/goweaver/weaver/cli"
)

func TestTimes(t *testing.T) {
	t.Parallel()
	for at, want := range map[time.Time]string{
		{}:                         "",
		ago(time.Millisecond):      "just now (2026-11-20T11:59:59Z)",
		ago(2 * time.Second):       "2s ago (2026-11-20T11:59:58Z)",
		now:                        "in a moment (2026-11-20T12:00:00Z)",
		in(500 * time.Microsecond): "in a moment (2026-11-20T12:00:00Z)",
		in(3 * time.Hour):          "in 3h (2026-11-20T15:00:00Z)",
	} {
		if got := cli.When(now, at); got != want {
			t.Errorf("when %v: got %q, want %q", at, got, want)
		}
	}
	for d, want := range map[time.Duration]string{
		-time.Second: "<1ms", time.Microsecond: "<1ms", 1234 * time.Microsecond: "1ms", 1500 * time.Millisecond: "1.5s",
		12345 * time.Millisecond: "12.3s", 90 * time.Second: "1m30s",
	} {
		if got := cli.Took(d); got != want {
			t.Errorf("took %v: got %s, want %s", d, got, want)
		}
	}
	for d, want := range map[time.Duration]string{time.Hour: "1h", 90 * time.Second: "1m30s", 10 * time.Minute: "10m", 100 * time.Millisecond: "100ms", 30 * time.Second: "30s"} {
		if got := cli.Setting(d); got != want {
			t.Errorf("setting %v: got %s, want %s", d, got, want)
		}
	}
}

func TestOneLine(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		text  string
		limit int
		want  string
	}{
		{"plain", 9, "plain"},
		{" two\n lines\t", 9, "two lines"},
		{"bell\a and \x1b[2J", 20, "bell� and �[2J"},
		{"日本語のとても長いメッセージ", 9, "日本語のとても長…"},
		{"012345678", 9, "012345678"},
		{"0123456789", 9, "01234567…"},
	} {
		if got := cli.OneLine(tt.text, tt.limit); got != tt.want {
			t.Errorf("%q: got %q, want %q", tt.text, got, tt.want)
		}
	}
}

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
	// Colours take no room.
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
