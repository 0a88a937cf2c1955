package tab_test

import (
	"bytes"
	"context"
	"encoding/base64"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"

	"github.com/goweaver/weaver/cli"
	"github.com/goweaver/weaver/internal/systemtest/firefox"
)

const install = "install it with: sudo apt-get install -y --no-install-recommends chromium (or: make services)"

// limit is the maximum wait for a page on a loaded machine.
const limit = 10 * time.Minute

// browser is a Chromium with a profile of its own, which a killed browser leaves to the next one.
type browser struct {
	*testing.T
	profile string
	ctx     context.Context
	stop    func()
}

func start(t *testing.T, profile string) *browser {
	t.Helper()
	var program string
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome", "google-chrome-stable"} {
		if path, err := exec.LookPath(name); err == nil {
			program = path
			break
		}
	}
	if program == "" {
		t.Fatalf("there is no Chromium: %s", install)
	}
	opts := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.ExecPath(program), chromedp.DisableGPU, chromedp.UserDataDir(profile),
		chromedp.WSURLReadTimeout(limit),
		chromedp.Flag("host-resolver-rules", "MAP insecure.test 127.0.0.1, MAP * ~NOTFOUND, EXCLUDE 127.0.0.1, EXCLUDE localhost"))
	if !full() {
		// The browser's second compiler takes the processors for longer than a short test takes.
		opts = append(opts, chromedp.Flag("js-flags", "--liftoff-only"))
	}
	if os.Geteuid() == 0 {
		opts = append(opts, chromedp.NoSandbox)
	}
	alloc, end := chromedp.NewExecAllocator(context.Background(), opts...)
	ctx, cancel := chromedp.NewContext(alloc)
	b := &browser{T: t, profile: profile, ctx: ctx, stop: sync.OnceFunc(func() { cancel(); end() })}
	t.Cleanup(b.stop)
	if err := chromedp.Do(ctx); err != nil {
		t.Fatalf("start %s: %v", program, err)
	}
	return b
}

// kill ends the browser and all its processes at once.
func (b *browser) kill() {
	b.Helper()
	b.signal("-9")
	b.stop()
}

// signal sends a signal to all processes of the browser.
func (b *browser) signal(name string) {
	b.Helper()
	p := chromedp.FromContext(b.ctx).Browser.Process()
	out, err := exec.Command("pgrep", "-f", "--", "--user-data-dir="+b.profile).Output()
	if err != nil {
		b.Fatalf("pgrep: %v", err)
	}
	for _, pid := range append(strings.Fields(string(out)), fmt.Sprint(p.Pid)) {
		_ = exec.Command("kill", name, pid).Run() // a child may have ended with its parent
	}
}

// tabPage is a page in a tab.
type tabPage struct {
	*testing.T
	ctx     context.Context
	close   func()
	firefox *firefox.Browser // nil in Chromium

	mu  sync.Mutex
	log []string
}

func (b *browser) open(url string) *tabPage {
	b.Helper()
	p := &tabPage{T: b.T}
	p.ctx, p.close = chromedp.NewContext(b.ctx, chromedp.WithListener(func(ev any) {
		switch ev := ev.(type) {
		case *runtime.EventConsoleAPICalled:
			var texts []string
			for _, a := range ev.Args {
				texts = append(texts, string(a.Value), a.Description)
			}
			p.note(string(ev.Type) + ": " + strings.Join(texts, " "))
		case *runtime.EventExceptionThrown:
			p.note("exception: " + ev.ExceptionDetails.Text)
		}
	}))
	b.Cleanup(func() {
		p.close()
		if b.Failed() {
			p.mu.Lock()
			defer p.mu.Unlock()
			b.Logf("the page %s: %s", url, strings.Join(p.log, "\n"))
		}
	})
	if err := chromedp.Do(p.ctx, chromedp.Navigate(url)); err != nil {
		b.Fatal(err)
	}
	return p
}

// openFirefox opens a page in a Firefox of its own, in which some preferences are true.
func openFirefox(t *testing.T, url string, preferences ...string) *tabPage {
	t.Helper()
	f := firefox.Start(t, preferences...)
	f.Open(url)
	return &tabPage{T: t, firefox: f}
}

func (p *tabPage) note(text string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.log = append(p.log, text)
}

// eval returns the value of an expression, or of its promise.
func eval[T any](p *tabPage, expression string) T {
	p.Helper()
	if p.firefox != nil {
		var v T
		p.firefox.Eval(expression, &v)
		return v
	}
	v, err := chromedp.Run(p.ctx, chromedp.Evaluate[T](expression, chromedp.EvalAwaitPromise))
	if err != nil {
		p.Fatalf("%s: %v", expression, err)
	}
	return v
}

// until waits until an expression is true.
func (p *tabPage) until(what, expression string) {
	p.Helper()
	looks := fmt.Sprintf(`new Promise((done) => {
		const look = () => { try { if (%s) return done(true); } catch {} setTimeout(look, 50); };
		look();
	})`, expression)
	if p.firefox != nil {
		p.firefox.Eval(looks, nil)
		return
	}
	ctx, cancel := context.WithTimeout(p.ctx, limit)
	defer cancel()
	_, err := chromedp.Run(ctx, chromedp.Evaluate[bool](looks, chromedp.EvalAwaitPromise))
	if err != nil && strings.Contains(err.Error(), "navigated") && ctx.Err() == nil { // the document was replaced
		p.until(what, expression)
		return
	}
	if err != nil {
		text, _ := chromedp.Run(p.ctx, chromedp.Evaluate[string]("document.body.innerText"))
		p.Fatalf("waiting for %s: %v\n%s", what, err, text)
	}
}

// api sends a request to the program and returns a JSON expression of its answer.
func (p *tabPage) api(method, path, expression string) string {
	p.Helper()
	return eval[string](p, fmt.Sprintf(`import(new URL("weaver.js", location.origin + "/").href).then((m) => m.connect().json(%q, %q)).then((a) => JSON.stringify(%s))`, method, path, expression))
}

// bytesIn returns an expression of JavaScript for bytes.
func bytesIn(b []byte) string {
	return fmt.Sprintf("Uint8Array.from(atob(%q), (c) => c.charCodeAt(0))", base64.StdEncoding.EncodeToString(b))
}

// file returns the content of a file of the program.
func (p *tabPage) file(name string) []byte {
	p.Helper()
	text := eval[string](p, fmt.Sprintf(`(async () => {
		const root = await navigator.storage.getDirectory();
		const file = await (await root.getFileHandle(%q)).getFile();
		const bytes = new Uint8Array(await file.arrayBuffer());
		let s = "";
		for (let i = 0; i < bytes.length; i += 32768) s += String.fromCharCode(...bytes.subarray(i, i + 32768));
		return btoa(s);
	})()`, name))
	b, err := base64.StdEncoding.DecodeString(text)
	if err != nil {
		p.Fatal(err)
	}
	return b
}

// site is the example, built once.
var site struct {
	sync.Once
	dir string
	err error
}

// serve serves the example. It returns the address.
func serve(t *testing.T) string {
	t.Helper()
	return serveFolder(t, built(t))
}

// built returns the folder of the example.
func built(t *testing.T) string {
	t.Helper()
	site.Do(func() {
		dir, err := os.MkdirTemp("", "weaver-tab-")
		if err != nil {
			site.err = err
			return
		}
		var out bytes.Buffer
		site.dir = filepath.Join(dir, "site")
		if code := cli.Run(context.Background(), cli.App{}, []string{"browser", "build", "github.com/goweaver/weaver/examples/browser", "--out", site.dir, "--plain"}, nil, &out, &out); code != 0 {
			site.err = fmt.Errorf("weaver browser build: exit code %d\n%s", code, out.String())
		}
	})
	if site.err != nil {
		t.Fatal(site.err)
	}
	return site.dir
}

// serveFolder serves a folder until the end of the test, or until it is stopped.
func serveFolder(t *testing.T, dir string) string {
	t.Helper()
	url, _ := serveUntil(t, dir)
	return url
}

func serveUntil(t *testing.T, dir string) (url string, stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	var done sync.WaitGroup
	done.Go(func() {
		_ = cli.Run(ctx, cli.App{}, []string{"browser", "serve", dir, "--addr", "127.0.0.1:0"}, nil, w, w)
		_ = w.Close()
	})
	stop = sync.OnceFunc(func() { cancel(); done.Wait() })
	t.Cleanup(stop)
	line := make([]byte, 4096)
	n, err := r.Read(line)
	if err != nil {
		t.Fatal(err)
	}
	url, _, _ = strings.Cut(string(line[:n]), " ")
	return strings.TrimSpace(url), stop
}

func TestMain(m *testing.M) {
	code := m.Run()
	if site.dir != "" {
		_ = os.RemoveAll(filepath.Dir(site.dir))
	}
	os.Exit(code)
}
