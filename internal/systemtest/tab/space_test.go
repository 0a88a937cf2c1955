package tab_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/storage"
	"github.com/chromedp/chromedp"

	"github.com/goweaver/weaver/store/sqlite"
)

// mostBytes is a little more than the example has. Its download is a sixth of them (docs/adr/0076-size.md).
const mostBytes = 34_000_000

// The example stays as small as it is.
func TestE2ESize(t *testing.T) {
	if os.Getenv("WEAVER_E2E") == "" {
		t.Skip("make e2e runs this")
	}
	names, err := filepath.Glob(filepath.Join(built(t), "program-*.wasm"))
	if err != nil || len(names) != 1 {
		t.Fatal(names, err)
	}
	info, err := os.Stat(names[0])
	if err != nil {
		t.Fatal(err)
	}
	if info.Size() > mostBytes {
		t.Errorf("the example has %d bytes, want at most %d: find the new packages with `go list -deps`", info.Size(), mostBytes)
	}
}

// send sends a command of the DevTools protocol to a page.
func send[P, R any](p *tabPage, call cdp.Command[P, R], params P) {
	p.Helper()
	if err := chromedp.Do(p.ctx, chromedp.Func(func(ctx context.Context, t *chromedp.Target) error {
		_, err := cdp.Call(ctx, t, call, params)
		return err
	})); err != nil {
		p.Fatal(err)
	}
}

// When the browser has no space left, requests fail with a sentence, and the work goes on once there is space again.
func TestE2EFull(t *testing.T) {
	if os.Getenv("WEAVER_E2E") == "" {
		t.Skip("make e2e runs this")
	}
	t.Parallel()
	p := start(t, t.TempDir()).open(serve(t))
	id := p.begun()
	origin := eval[string](p, "location.origin")
	limit := eval[float64](p, "navigator.storage.estimate().then((e) => e.usage)") + 200_000
	send(p, storage.OverrideQuotaForOrigin, storage.OverrideQuotaForOriginParams{Origin: origin, QuotaSize: &limit})
	said := eval[string](p, `(async () => {
		const weaver = (await import("./weaver.js")).connect();
		for (let i = 0; i < 100; i++) {
			try {
				await weaver.enqueue("example.payments.import.v1", { name: "large", csv: "x".repeat(50_000) }, { delay: "1h" });
			} catch (err) { return err.message; }
		}
		return "nothing failed";
	})()`)
	if said != "No space is left for the store." {
		t.Errorf("a task without space: %q", said)
	}
	send(p, storage.OverrideQuotaForOrigin, storage.OverrideQuotaForOriginParams{Origin: origin})
	p.done(id)
	p.ended(id)
	p.sound()
}

// A program whose files are deleted while it runs says so, and accepts nothing that would be lost.
func TestE2ECleared(t *testing.T) {
	if os.Getenv("WEAVER_E2E") == "" {
		t.Skip("make e2e runs this")
	}
	t.Parallel()
	url := serve(t)
	b := start(t, t.TempDir())
	p := b.open(url)
	p.begun()
	other := b.open(url)
	other.until("an answer", `document.getElementById("state").textContent === "Ready."`)
	send(p, storage.ClearDataForOrigin, storage.ClearDataForOriginParams{Origin: strings.TrimSuffix(url, "/"), StorageTypes: "all"})
	for _, p := range []*tabPage{p, other} {
		p.says("were deleted while it ran")
		if said := eval[string](p, `import("./weaver.js").then((m) => m.connect().enqueue("example.payments.import.v1", {})).catch((err) => err.message)`); !strings.Contains(said, "were deleted while it ran") {
			t.Errorf("a task after the end: %s", said)
		}
	}
	eval[bool](p, `(location.reload(), true)`)
	p.until("the page after the reload", `document.getElementById("state").textContent.startsWith("Ready")`)
	if n := p.api("GET", "v1/tasks", "a.items.length"); n != "0" {
		t.Errorf("after the reload there are %s tasks, want none", n)
	}
}

// says waits until the page tells the state of the program in these words.
func (p *tabPage) says(words string) {
	p.Helper()
	p.until(words, fmt.Sprintf(`document.getElementById("state").textContent.includes(%q)`, words))
}

// variant returns a copy of the example's folder with one file changed.
func variant(t *testing.T, pattern string, change func([]byte) []byte) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "site")
	if err := os.CopyFS(dir, os.DirFS(built(t))); err != nil {
		t.Fatal(err)
	}
	names, err := filepath.Glob(filepath.Join(dir, pattern))
	if err != nil || len(names) != 1 {
		t.Fatal(names, err)
	}
	b, err := os.ReadFile(names[0])
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(names[0], change(b), 0o600); err != nil {
		t.Fatal(err)
	}
	return dir
}

// A page that cannot run the program says why in a sentence, and loses nothing.
func TestE2ECannotRun(t *testing.T) {
	if os.Getenv("WEAVER_E2E") == "" {
		t.Skip("make e2e runs this")
	}
	t.Parallel()
	b := start(t, t.TempDir())
	url := serve(t)

	b.open(strings.Replace(url, "127.0.0.1", "insecure.test", 1)).says("secure context")

	cut := serveFolder(t, variant(t, "program-*.wasm", func(wasm []byte) []byte { return wasm[:len(wasm)/3] }))
	b.open(cut).says("It was cut short on the way, or changed")

	refused := serveFolder(t, variant(t, "worker-*.js", func(js []byte) []byte {
		return append([]byte("navigator.storage.getDirectory = () => Promise.reject(new DOMException('refused', 'SecurityError'));\n"), js...)
	}))
	b.open(refused).says("gives this page no files (refused). A private window")
	if full() {
		openFirefox(t, url, "browser.privatebrowsing.autostart").says("gives this page no files")
	}

	// A program of another origin.
	p := b.open(cut)
	said := eval[string](p, fmt.Sprintf(`import("./weaver.js").then((m) => m.connect({ base: %q }).enqueue("x", 1)).catch((err) => err.message)`, url))
	if !strings.Contains(said, "another origin") {
		t.Errorf("a program of another origin: %s", said)
	}

	// A database of a newer version of the program.
	path := filepath.Join(t.TempDir(), "payments.db")
	db, err := sqlite.Open(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	if err = db.Migrate(t.Context()); err == nil {
		_, err = db.DB().ExecContext(t.Context(), "INSERT INTO weaver_schema_versions SELECT max(version) + 1, 'from_the_future', 'x', 1 FROM weaver_schema_versions")
	}
	if err == nil {
		err = db.Close()
	}
	if err != nil {
		t.Fatal(err)
	}
	newer, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	plain := b.open(url + "weaver.d.ts") // a document without the program
	plain.put("payments.db", newer)
	p = b.open(url)
	p.says("use the newer weaver")
	const header = 100 // it has the journal mode, which is another one in a tab
	if got := plain.file("payments.db"); string(got[header:]) != string(newer[header:]) {
		t.Errorf("the newer database was changed")
	}
}

// put writes a file of the program.
func (p *tabPage) put(name string, content []byte) {
	p.Helper()
	eval[bool](p, fmt.Sprintf(`(async () => {
		const root = await navigator.storage.getDirectory();
		const out = await (await root.getFileHandle(%q, { create: true })).createWritable();
		await out.write(%s);
		await out.close();
		return true;
	})()`, name, bytesIn(content)))
}
