package tab_test

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	files "github.com/goweaver/weaver/browser/page"
)

const module = "github.com/goweaver/weaver"

// full reports whether the tests have their full size, and run in Firefox, too: make soak-tab.
func full() bool { return os.Getenv("WEAVER_TAB") == "full" }

// The conformance suite of stores passes on the browser's private file system: the same test binary, built for js. In
// make e2e it plays a sample of the cases; in make soak-tab all.
func TestE2EStore(t *testing.T) {
	if os.Getenv("WEAVER_E2E") == "" {
		t.Skip("make e2e runs this")
	}
	t.Parallel()
	args := []string{"-test.run=^TestConformanceFile$/^(Claim|ConcurrentWaits|ReapCrash)$", "-test.short"}
	if full() {
		args = []string{"-test.run=^TestConformanceFile$"}
	}
	inBrowsers(t, "store/sqlite", nil, args...)
}

// The tests of weavertest and the examples of package weaver pass in a tab: the same test binaries, built for js. All
// of them are there, and who is skipped says why.
func TestE2ESuites(t *testing.T) {
	if os.Getenv("WEAVER_E2E") == "" {
		t.Skip("make e2e runs this")
	}
	t.Parallel()
	inBrowsers(t, "weavertest", declared(t, "weavertest", "^$"))
	inBrowsers(t, "", declared(t, "", "^Test"), "-test.run=^Example")
}

// inBrowsers runs the tests of a package in a tab: of Chromium, and in full size of Firefox. The tests in want must be
// among those that end.
func inBrowsers(t *testing.T, pkg string, want []string, args ...string) {
	t.Helper()
	program := filepath.Join(t.TempDir(), "tests.wasm")
	build := exec.CommandContext(t.Context(), "go", "test", "-c", "-vet=off", "-trimpath", "-o", program, strings.TrimSuffix(module+"/"+pkg, "/"))
	build.Env = append(os.Environ(), "GOOS=js", "GOARCH=wasm", "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("build the tests of %s: %v\n%s", pkg, err, out)
	}
	url := serveTests(t, program, append(args, "-test.v", "-test.timeout=45m"))
	browsers := map[string]func(t *testing.T) func() string{
		"Chromium": func(t *testing.T) func() string {
			p := start(t, t.TempDir()).open(url)
			return func() string { return eval[string](p, "take()") }
		},
	}
	if full() {
		browsers["Firefox"] = func(t *testing.T) func() string {
			p := openFirefox(t, url)
			return func() string { return eval[string](p, "take()") }
		}
	}
	for name, open := range browsers {
		t.Run(filepath.Base(module+"/"+pkg)+" in "+name, func(t *testing.T) {
			check(t, play(t, open(t)), want)
		})
	}
}

// play returns what the tests print. take returns what they printed since its last call, and waits for that.
func play(t *testing.T, take func() string) string {
	t.Helper()
	var all strings.Builder
	for {
		var got struct {
			Text   string
			Result *int
		}
		if err := json.Unmarshal([]byte(take()), &got); err != nil {
			t.Fatal(err)
		}
		all.WriteString(got.Text)
		if got.Result == nil {
			continue
		}
		if *got.Result != 0 {
			t.Errorf("the tests ended with exit code %d:\n%s", *got.Result, all.String())
		}
		return all.String()
	}
}

// serveTests serves a page that runs a test binary. It returns the address.
func serveTests(t *testing.T, program string, args []string) string {
	t.Helper()
	goroot, err := exec.CommandContext(t.Context(), "go", "env", "GOROOT").Output()
	if err != nil {
		t.Fatal(err)
	}
	env := map[string]string{"WEAVER_CONFORMANCE": os.Getenv("WEAVER_TAB")}
	mux := http.NewServeMux()
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) { http.ServeFile(w, r, "testdata/tests.html") })
	mux.HandleFunc("/worker.js", func(w http.ResponseWriter, r *http.Request) { http.ServeFileFS(w, r, files.Files, "worker.js") })
	mux.HandleFunc("/wasm_exec.js", func(w http.ResponseWriter, r *http.Request) {
		http.ServeFile(w, r, filepath.Join(strings.TrimSpace(string(goroot)), "lib", "wasm", "wasm_exec.js"))
	})
	mux.HandleFunc("/program.wasm", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/wasm")
		http.ServeFile(w, r, program)
	})
	mux.HandleFunc("/start.json", func(w http.ResponseWriter, _ *http.Request) {
		_ = json.NewEncoder(w).Encode(map[string]any{"kind": "start", "exec": "wasm_exec.js", "wasm": "program.wasm", "args": append([]string{"tests"}, args...), "env": env})
	})
	server := httptest.NewServer(mux)
	t.Cleanup(server.Close)
	return server.URL
}
