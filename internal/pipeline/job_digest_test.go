package pipeline_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const digested = `
name: nightly
budget: {max_attempts_per_task: 3, max_duration: 10m}
env: {LANG: C}
tasks:
  fetch:
    run: curl -sf http://127.0.0.1/data.csv
    env: {PORT: 8080}
    dir: data
  hook:
    http: {url: "http://127.0.0.1/", json: {a: 1, b: [1, 2]}}
    needs: [fetch, charge]
  charge: {type: acme.billing.charge.v1, input: {a: 1.5, b: {c: d, e: f}}}
`

func TestDigestKeeps(t *testing.T) {
	t.Parallel()
	want := parse(t, digested).Digest()
	if len(want) != 64 {
		t.Errorf("the digest is %q", want)
	}
	for what, src := range map[string]string{
		"comments, order, styles": `
# A comment.
tasks:
  charge:
    input: {b: {e: "f", c: 'd'}, a: 1.5}
    type: "acme.billing.charge.v1"
  hook:
    needs: [charge, fetch]          # turned around
    http:
      json: {b: [1, 2], a: 1}
      url: http://127.0.0.1/
  fetch:
    dir: ./data/
    description: gets the data
    env:
      "PORT": "8080"
    run: >-
      curl -sf
      http://127.0.0.1/data.csv
env: {LANG: C}
budget: {max_duration: 600s, max_attempts_per_task: 3}
description: words
name: nightly
`,
		"anchors and merges": `
name: nightly
budget: {max_attempts_per_task: 3, max_duration: 10m}
env: &env {LANG: C}
tasks:
  fetch: {<<: {dir: data}, run: curl -sf http://127.0.0.1/data.csv, env: {<<: *env, PORT: 8080}}
  hook: {http: {url: "http://127.0.0.1/", json: {a: 1, b: [1, 2]}}, needs: [fetch, charge]}
  charge: {type: acme.billing.charge.v1, input: {a: 1.5, b: {c: d, e: f}}}
`,
	} {
		if got := parse(t, src).Digest(); got != want {
			t.Errorf("%s: the digest is %s, want %s", what, got, want)
		}
	}
}

func TestDigestChanges(t *testing.T) {
	t.Parallel()
	seen := make(map[string]string)
	for _, src := range []string{
		"name: a\ntasks: {a: {run: echo}}",
		"name: b\ntasks: {a: {run: echo}}",
		"name: a\ntasks: {b: {run: echo}}",
		"name: a\ntasks: {a: {run: echo }, b: {run: echo}}",
		"name: a\ntasks: {a: {run: [echo]}}",
		"name: a\ntasks: {a: {run: [echo, a, b]}}",
		"name: a\ntasks: {a: {run: [echo, b, a]}}",
		"name: a\ntasks: {a: {run: echo a}}",
		"name: a\ntasks: {a: {run: echo, env: {A: b}}}",
		"name: a\ntasks: {a: {run: echo, env: {A: c}}}",
		"name: a\ninherit_env: [A]\ntasks: {a: {run: echo}}",
		"name: a\ntimeout: 1m\ntasks: {a: {run: echo}}",
		"name: a\nretry: {max_attempts: 7}\ntasks: {a: {run: echo}}",
		"name: a\nretry: {max_attempts: 1, base: 7s}\ntasks: {a: {run: echo}}",
		"name: a\nenv_file: x\ntasks: {a: {run: echo}}",
		"name: a\nsecret_env: x\ntasks: {a: {run: echo}}",
		"name: a\ntasks: {a: {run: echo, env_file: y}}",
		"name: a\ntasks: {a: {run: echo, secret_env: y}}",
		"name: a\ntasks: {a: {run: echo, artifacts: y}}",
		"name: a\ntasks: {a: {run: echo, artifacts_optional: y}}",
		"name: a\ntasks: {a: {run: echo, artifacts_optional: y, artifacts_ttl: 1h}}",
		"name: a\ntasks: {a: {http: {url: http://a/, headers_env: {A: b}}}}",
		"name: a\nenv_file: x\ntasks: {a: {http: {url: http://a/, headers_env: {A: b}}}}",
		"name: a\ndir: x\ntasks: {a: {run: echo}}",
		"name: a\nlabels: {a: b}\ntasks: {a: {run: echo}}",
		"name: a\nbudget: {max_duration: 1h}\ntasks: {a: {run: echo}}",
		"name: a\nbudget: {max_attempts_per_task: 2}\ntasks: {a: {run: echo}}",
		"name: a\nbudget: {max_total_attempts: 2}\ntasks: {a: {run: echo}}",
		"name: a\nbudget: {max_cost: 2}\ntasks: {a: {run: echo}}",
		"name: a\nbudget: {max_repairs: 2}\ntasks: {a: {run: echo}}",
		"name: a\nbudget: {max_no_progress: 2}\ntasks: {a: {run: echo}}",
		"name: a\ntasks: {a: {run: echo, retry: {max_attempts: 2}}}",
		"name: a\ntasks: {a: {run: echo, retry: {max_attempts: 2, base: 1s}}}",
		"name: a\ntasks: {a: {run: echo, retry: {max_attempts: 2, max: 1s}}}",
		"name: a\ntasks: {a: {run: echo, timeout: 1s}}",
		"name: a\ntasks: {a: {run: echo, concurrency: x}}",
		"name: a\ntasks: {a: {run: echo, concurrency: {key: x, limit: 2}}}",
		"name: a\ntasks: {a: {run: echo, priority: 1}}",
		"name: a\ntasks: {a: {run: echo}, b: {run: echo, needs: [a]}}",
		"name: a\ntasks: {a: {run: echo}, b: {run: echo, needs: [a], if: failed}}",
		"name: a\ntasks: {a: {run: echo}, b: {run: echo, needs: [a], if: done}}",
		"name: a\ntasks: {a: {run: echo, allow_failure: true}, b: {run: echo, needs: [a]}}",
		"name: a\ntasks: {a: {run: echo}}\non: {done: {run: echo}}",
		"name: a\ntasks: {a: {run: echo}}\non: {failure: {run: echo}}",
		"name: a\ntasks: {a: {run: echo}}\non: {success: {run: echo}}",
		"name: a\ntasks: {a: {approve: x}}",
		"name: a\ntasks: {a: {approve: y}}",
		"name: a\ntasks: {a: {approve: {message: x, timeout: 1h}}}",
		"name: a\ntasks: {a: {type: a.b.c.v1}}",
		"name: a\ntasks: {a: {type: a.b.c.v1, input: {}}}",
		"name: a\ntasks: {a: {type: a.b.c.v1, input: 1}}",
		"name: a\ntasks: {a: {type: a.b.c.v1, input: 1.0}}",
		`name: a` + "\n" + `tasks: {a: {type: a.b.c.v1, input: "1"}}`,
		"name: a\ntasks: {a: {type: a.b.c.v1, input: [1, 2]}}",
		"name: a\ntasks: {a: {type: a.b.c.v1, input: [2, 1]}}",
		"name: a\ntasks: {a: {http: {url: http://a/}}}",
		"name: a\ntasks: {a: {http: {url: http://a/, method: PUT}}}",
		"name: a\ntasks: {a: {http: {url: http://a/, headers: {A: b}}}}",
		"name: a\ntasks: {a: {http: {url: http://a/, json: 1}}}",
		"name: a\ntasks: {a: {http: {url: http://a/, body: 1}}}",
		"name: a\ntasks: {a: {http: {url: http://a/, expect: 200}}}",
		"name: a\ntasks: {a: {http: {url: http://a/, timeout: 1s}}}",
		"name: a\ntasks: {a: {http: {url: http://a/, max_redirects: 0}}}",
		"name: a\ntasks: {a: {http: {url: http://a/, until: {status: 200}}}}",
		"name: a\ntasks: {a: {http: {url: http://a/, until: {status: 200, every: 1s}}}}",
		"name: a\ntasks: {a: {http: {url: http://a/, until: {json: .a, equals: null}}}}",
		"name: a\ntasks: {a: {http: {url: http://a/, until: {json: .a, not: null}}}}",
	} {
		d := parse(t, src).Digest()
		if other, ok := seen[d]; ok {
			t.Errorf("two files have the same digest:\n%s\n\n%s", other, src)
		}
		seen[d] = src
	}
}

// Running jobs have stored this digest. A change of it must also change the first
// line of the encoding and the changelog.
func TestDigestStays(t *testing.T) {
	t.Parallel()
	src, err := os.ReadFile(filepath.Join("testdata", "ok", "every-key.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	// A new key changes the digest of files that have it only.
	first := strings.Replace(string(src), "  max_total_attempts: 50\n  max_cost: 5000000\n  max_repairs: 1\n  max_no_progress: 20\n", "", 1)
	equal(t, "the digest", parse(t, first).Digest(), "4b91d522bb7572e57a4ca673a3ab1e932e55def5ea69239e46f0ec5344bb343f")
}
