package redact_test

import (
	"testing"

	"github.com/goweaver/weaver/internal/redact"
	"github.com/goweaver/weaver/task"
)

func TestURL(t *testing.T) {
	t.Parallel()
	for raw, want := range map[string]string{
		"https://example.com/a%20b":         "https://example.com/a%20b",
		"https://u:p@example.com:8/a?k=v#f": "https://[redacted]@example.com:8/a?[redacted]#[redacted]",
		"mailto:me@example.com":             "mailto:[redacted]",
		"https://%zz":                       "[redacted]",
		"file:///a/b":                       "file:///a/b",
	} {
		if got := redact.URL(raw); got != want {
			t.Errorf("URL(%q) = %q, want %q", raw, got, want)
		}
	}
}

func TestArtifacts(t *testing.T) {
	t.Parallel()
	key, err := redact.CheckKey("url")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		rules []string
		want  string
	}{{nil, "https://example.com/a?[redacted]"}, {[]string{key}, "[redacted]"}} {
		list := []task.Artifact{{LinkValue: task.Link{URL: "https://example.com/a?k=v", Size: 1}.Value()}, {Name: "blob"}}
		redact.Artifacts(c.rules, list)
		if got := list[0].Link(); got.URL != c.want || got.Size != 1 || list[1].LinkValue != nil {
			t.Errorf("with %q: %+v, want %q", c.rules, list, c.want)
		}
	}
}
