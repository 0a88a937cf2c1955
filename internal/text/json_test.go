package text_test

import (
	"testing"

	"github.com/goweaver/weaver/internal/text"
)

func TestPlainJSON(t *testing.T) {
	t.Parallel()
	for raw, want := range map[string]string{
		``:                             ``,
		`{"a":"b"}`:                    `{"a":"b"}`,
		`"a \u003c b \u003E\u0026& c"`: `"a < b >&& c"`,
		`"\\u003c"`:                    `"\\u003c"`,
		`"\\\u003c"`:                   `"\\<"`,
		`"\n\u003c\""`:                 `"\n<\""`,
		`"\U003c"`:                     `"\U003c"`,
		`"\u0022\u2028"`:               `"\u0022\u2028"`,
		`"\u003`:                       `"\u003`,
		`\`:                            `\`,
		`"\u0026\`:                     `"&\`,
		"\"a\u202eb\u200dc\"":          "\"a\\u202eb\u200dc\"",
		"\"a\u009b31m\x7f\u00a0\"":     "\"a\\u009b31m\\u007f\u00a0\"",
	} {
		if got := text.PlainJSON(raw); got != want {
			t.Errorf("%s: %s, want %s", raw, got, want)
		}
	}
}
