package redis

import (
	"strings"
	"testing"

	"github.com/goweaver/weaver/delivery"
)

func TestURLs(t *testing.T) {
	t.Parallel()
	for url, want := range map[string]string{ // network, addresses, user:password, database, master set, TLS, prefix
		"redis://":                             "tcp|localhost:6379|:|0||false|weaver",
		"redis://cache":                        "tcp|cache:6379|:|0||false|weaver",
		"redis://cache/":                       "tcp|cache:6379|:|0||false|weaver",
		"redis://:p%40%2F%3A%23@cache:7000/3":  "tcp|cache:7000|:p@/:#|3||false|weaver",
		"redis://joe:pw@a,b:7001,c/1?prefix=x": "tcp|a:6379, b:7001, c:6379|joe:pw|1||false|x",
		"redis://[::1]:7000,[::2]":             "tcp|[::1]:7000, [::2]:6379|:|0||false|weaver",
		"rediss://cache?db=2":                  "tcp|cache:6379|:|2||true|weaver",
		"redis+sentinel://:pw@a,b:1/main":      "tcp|a:26379, b:1|:pw|0|main|false|weaver",
		"rediss+sentinel://a/main/4":           "tcp|a:26379|:|4|main|true|weaver",
		"unix:///run/redis.sock?db=1":          "unix|/run/redis.sock|:|1||false|weaver",
		"unix://:pw@/run/redis.sock":           "unix|/run/redis.sock|:pw|0||false|weaver",
	} {
		got, err := parse(url)
		if err != nil {
			t.Errorf("parse(%q): %v", url, err)
		} else if text := got.text(); text != want {
			t.Errorf("parse(%q) = %s, want %s", url, text, want)
		}
	}
}

func TestURLs_Wrong(t *testing.T) {
	t.Parallel()
	for url, want := range map[string]string{
		"":                             "has no scheme",
		"localhost:6379":               "has no scheme",
		"kafka://a":                    `unknown scheme "kafka"; use redis://, rediss://, redis+sentinel://, rediss+sentinel:// or unix://`,
		"REDIS://a":                    "unknown scheme",
		"redis://a:port":               "cannot be parsed",
		"redis://a:0":                  "cannot be parsed",
		"redis://a:70000":              "cannot be parsed",
		"redis://a/one":                "database is not a number",
		"redis://a/-1":                 "database is not a number",
		"redis://a/1/2":                "database is not a number",
		"redis://a?bd=1":               `unknown parameter "bd"`,
		"redis://a#1":                  "cannot be parsed",
		"redis://a?db=%zz":             "cannot be parsed",
		"redis+sentinel://a":           "names the master set",
		"unix://run/redis.sock":        "has the form unix:///path",
		"unix://":                      "has the form unix:///path",
		"redis://:sec ret@a":           "cannot be parsed",
		"redis://:se/cret@a":           "cannot be parsed",
		"redis://:se?cret@a":           "cannot be parsed",
		"redis://:se#cret@a":           "cannot be parsed",
		"redis://:se%cret@a":           "cannot be parsed",
		"redis://joe:secret:cret@a:b":  "cannot be parsed",
		"redis://secret:cret@a/secret": "database is not a number",
	} {
		_, err := parse(url)
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "cret") {
			t.Errorf("parse(%q) = %v, want %q and no password", url, err, want)
		}
	}
}

// text returns the content of a target for a test.
func (t target) text() string {
	o := t.option
	secure := "false"
	if o.TLSConfig != nil {
		secure = "true"
	}
	return strings.Join([]string{t.network, t.addr(), o.Username + ":" + o.Password, string(rune('0' + o.SelectDB)), o.Sentinel.MasterSet, secure, t.prefix}, "|")
}

// All keys of a namespace are in one hash tag, and no two lanes share a key.
func TestKeys(t *testing.T) {
	t.Parallel()
	seen := make(map[string]string)
	names := []string{"", "a", "a:b", ":", "{", "}", "{}", "%", "%7B", "é", "\xc3", "a\nb", " "}
	for _, ns := range names {
		k := keysOf("weaver", ns)
		tag, rest, ok := strings.Cut(k.hints(delivery.Lane{}), "}")
		if !ok || len(tag) < 2 || strings.LastIndexByte(tag, '{') != 0 || strings.ContainsAny(rest, "{}") {
			t.Errorf("namespace %q has the hash tag %q", ns, tag)
		}
		for _, a := range names {
			all := []string{k.queues(a), k.news(a)}
			for _, b := range names {
				all = append(all, k.hints(delivery.Lane{Queue: a, Type: b}))
			}
			for i, key := range all {
				if !strings.HasPrefix(key, tag+"}:") || strings.Count(key, "{")+strings.Count(key, "}") != 2 {
					t.Errorf("the key %q is not in the hash tag %q", key, tag)
				}
				if other := seen[key]; other != "" {
					t.Errorf("key %d of %q, %q is that of %s", i, ns, a, other)
				}
				seen[key] = ns + "," + a
			}
		}
	}
}
