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

	"github.com/chromedp/chromedp"

	files "github.com/goweaver/weaver/browser/page"
)

// The conformance suite of stores passes on the browser's private file system: the same test binary, built for js. In
// make e2e it plays a sample of the cases; with WEAVER_TAB=full all, which takes seven minutes.
func TestE2EStore(t *testing.T) {
	if os.Getenv("WEAVER_E2E") == "" {
		t.Skip("make e2e runs this")
	}
	t.Parallel()
	args := []string{"-test.run=^TestConformanceFile$/^(Claim|ConcurrentWaits|ReapCrash)$", "-test.v", "-test.short"}
	if os.Getenv("WEAVER_TAB") == "full" {
		args = []string{"-test.run=^TestConformanceFile$", "-test.v"}
	}
	inTab(t, "github.com/goweaver/weaver/store/sqlite", args...)
}

// inTab runs the tests of a package in a tab.
func inTab(t *testing.T, pkg string, args ...string) {
	t.Helper()
	program := filepath.Join(t.TempDir(), "tests.wasm")
	build := exec.CommandContext(t.Context(), "go", "test", "-c", "-vet=off", "-trimpath", "-o", program, pkg)
	build.Env = append(os.Environ(), "GOOS=js", "GOARCH=wasm", "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("build the tests of %s: %v\n%s", pkg, err, out)
	}
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
	p := start(t, t.TempDir()).open(server.URL)
	// take returns the output since the last call, and waits for some.
	var all strings.Builder
	for {
		text, err := chromedp.Run(p.ctx, chromedp.Evaluate[string]("take()", chromedp.EvalAwaitPromise))
		if err != nil {
			t.Fatal(err)
		}
		var got struct {
			Text   string
			Result *int
		}
		if err := json.Unmarshal([]byte(text), &got); err != nil {
			t.Fatal(err)
		}
		all.WriteString(got.Text)
		if got.Result == nil {
			continue
		}
		passed := strings.Count(all.String(), "--- PASS")
		t.Logf("%d tests passed, %d skipped", passed, strings.Count(all.String(), "--- SKIP"))
		if *got.Result != 0 || passed < 10 {
			t.Errorf("the tests of %s in a tab: exit code %d\n%s", pkg, *got.Result, all.String())
		}
		return
	}
}
