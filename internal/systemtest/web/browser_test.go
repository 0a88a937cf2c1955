package web_test

import (
	"context"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"
	cdplog "github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
)

const install = "install it with: sudo apt-get install -y --no-install-recommends chromium (or: make services)"

// programs are the names of browsers; scripts/services.sh looks for the same.
var programs = []string{
	"chromium", "chromium-browser", "google-chrome", "google-chrome-stable",
	"/Applications/Google Chrome.app/Contents/MacOS/Google Chrome", "/Applications/Chromium.app/Contents/MacOS/Chromium",
}

// browser is the only one of the test program. It has a temporary profile.
var browser struct {
	sync.Once
	ctx  context.Context
	stop func()
	err  error
}

func startBrowser() {
	program := ""
	for _, name := range programs {
		if path, err := exec.LookPath(name); err == nil {
			program = path
			break
		}
	}
	if program == "" {
		browser.err = fmt.Errorf("there is no Chromium: %s", install)
		return
	}
	opts := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.ExecPath(program), chromedp.DisableGPU,
		chromedp.WSURLReadTimeout(3*time.Minute), // of the start, on a loaded machine
		// Names of other hosts have no address, so that not even a defect reaches one.
		chromedp.Flag("host-resolver-rules", "MAP * ~NOTFOUND, EXCLUDE 127.0.0.1, EXCLUDE localhost"))
	if os.Geteuid() == 0 {
		opts = append(opts, chromedp.NoSandbox)
	}
	if os.Getenv("WEAVER_E2E") != "" { // with programs in tabs, whose second compilation takes the cores
		opts = append(opts, chromedp.Flag("js-flags", "--liftoff-only"))
	}
	alloc, end := chromedp.NewExecAllocator(context.Background(), opts...)
	ctx, cancel := chromedp.NewContext(alloc)
	browser.ctx = ctx
	browser.stop = func() {
		cancel()
		end()
	}
	if err := chromedp.Do(ctx); err != nil {
		browser.err = fmt.Errorf("start %s: %w", program, err)
	}
}

// tab is one tab of the browser. Its test fails if the tab reports a defect.
type tab struct {
	testing.TB
	ctx   context.Context
	close func()

	mu      sync.Mutex
	host    string // of the last visit
	defects []string
	allowed []string
}

// openTab opens a tab with storage, cookies and shared workers of its own. It closes at the end of the test.
func openTab(t testing.TB) *tab {
	t.Helper()
	browser.Do(startBrowser)
	if browser.err != nil {
		t.Fatal(browser.err)
	}
	return newTab(t, chromedp.WithNewBrowserContext())
}

// beside opens a tab that shares the storage, cookies and shared workers of b, and ends before it.
func (b *tab) beside() *tab {
	b.Helper()
	return newTab(b.TB, chromedp.WithExistingBrowserContext(chromedp.FromContext(b.ctx).BrowserContextID))
}

func newTab(t testing.TB, opts ...chromedp.ContextOption) *tab {
	t.Helper()
	b := &tab{TB: t}
	b.ctx, b.close = chromedp.NewContext(browser.ctx, append(opts, chromedp.WithListener(b.listen))...)
	if err := chromedp.Do(b.ctx); err != nil {
		t.Fatal(err)
	}
	b.screen(1280, false)
	t.Cleanup(func() {
		b.close()
		b.mu.Lock()
		defer b.mu.Unlock()
		for _, defect := range b.defects {
			t.Error(defect)
		}
	})
	return b
}

// listen notes the defects of the page.
func (b *tab) listen(ev any) {
	switch ev := ev.(type) {
	case *runtime.EventConsoleAPICalled:
		if ev.Type == "error" || ev.Type == "assert" {
			var texts []string
			for _, a := range ev.Args {
				texts = append(texts, string(a.Value), a.Description)
			}
			b.note("console: " + strings.Join(texts, " "))
		}
	case *runtime.EventExceptionThrown:
		d := ev.ExceptionDetails
		text := fmt.Sprintf("exception: %s at %s:%d", d.Text, d.URL, d.LineNumber)
		if d.Exception != nil {
			text += " " + d.Exception.Description
		}
		b.note(text)
	case *cdplog.EventEntryAdded:
		if ev.Entry.Level == "error" || ev.Entry.Source == "security" {
			b.note(fmt.Sprintf("log: %s: %s %s", ev.Entry.Source, ev.Entry.Text, ev.Entry.URL))
		}
	case *network.EventRequestWillBeSent:
		u, err := url.Parse(ev.Request.URL)
		b.mu.Lock()
		host := b.host
		b.mu.Unlock()
		if err != nil || u.Scheme != "data" && u.Scheme != "about" && u.Host != host {
			b.note("a request to another host: " + ev.Request.URL)
		}
	}
}

func (b *tab) note(defect string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, text := range b.allowed {
		if strings.Contains(defect, text) {
			return
		}
	}
	b.defects = append(b.defects, defect)
}

// allow makes messages with a text no defects from now on.
func (b *tab) allow(text string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.allowed = append(b.allowed, text)
}

// screen sets the width and the colours.
func (b *tab) screen(width int64, dark bool) {
	b.Helper()
	scheme := "light"
	if dark {
		scheme = "dark"
	}
	err := chromedp.Do(b.ctx, chromedp.EmulateViewport(width, 900))
	if err == nil {
		_, err = chromedp.Call(b.ctx, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{Features: []*emulation.MediaFeature{
			{Name: "prefers-color-scheme", Value: scheme},
			{Name: "prefers-reduced-motion", Value: "reduce"}, // no half of a transition is judged
		}})
	}
	if err != nil {
		b.Fatal(err)
	}
}

// visit loads a document.
func (b *tab) visit(address string) {
	b.Helper()
	u, err := url.Parse(address)
	if err != nil {
		b.Fatal(err)
	}
	b.mu.Lock()
	b.host = u.Host
	b.mu.Unlock()
	if err := chromedp.Do(b.ctx, chromedp.Navigate(address)); err != nil {
		b.Fatalf("load %s: %v", address, err)
	}
}

func (b *tab) reload() {
	b.Helper()
	if err := chromedp.Do(b.ctx, chromedp.Reload()); err != nil {
		b.Fatal(err)
	}
}

// eval returns the value of an expression, or of its promise.
func eval[T any](b *tab, expression string) T {
	b.Helper()
	v, err := chromedp.Run(b.ctx, chromedp.Evaluate[T](expression, chromedp.EvalAwaitPromise))
	if err != nil {
		b.Fatalf("%.500s: %v", expression, err)
	}
	return v
}

// until waits for a condition of the page.
func (b *tab) until(condition string) {
	b.Helper()
	never := eval[string](b, waiting(condition))
	if never != "" {
		b.Fatalf("%s: %s", condition, never)
	}
}

// waiting is a promise of "" when a condition holds, or of the page's text after a long time.
func waiting(condition string) string {
	return `new Promise((done) => {
		const end = Date.now() + 90_000;
		const look = () => {
			let error = "";
			try {
				if (` + condition + `) return done("");
			} catch (err) {
				error = String(err);
			}
			if (Date.now() > end) return done("it never was so " + error + " at " + location.href + ":\n" + document.body.innerText.slice(0, 3000));
			setTimeout(look, 30);
		};
		look();
	})`
}

// shown is true when the page shows its content, live.
const shown = `document.querySelector("main h1") && document.querySelector(".link-state.live") && !document.querySelector("main .loading")`

// ready waits until the page shows its content, live.
func (b *tab) ready() {
	b.Helper()
	b.until(shown)
}

// click clicks the first element that a selector and a text select.
func (b *tab) click(selector, text string) {
	b.Helper()
	find := fmt.Sprintf(`[...document.querySelectorAll(%q)].find((e) => e.textContent.includes(%q))`, selector, text)
	b.until(find)
	eval[bool](b, find+`.click() ?? true`)
}
