package tab_test

import (
	"context"
	"fmt"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/chromedp"

	"github.com/goweaver/weaver/store"
)

// here reports whether the program runs in a tab.
const here = `document.getElementById("state").textContent.includes("runs in this tab")`

// leaders returns the tabs in which the program runs.
func leaders(tabs []*tabPage) (list []int) {
	for i, p := range tabs {
		if eval[bool](p, here) {
			list = append(list, i)
		}
	}
	return list
}

// leader waits until the program runs in one of the tabs, and returns it and the others.
func leader(t *testing.T, tabs []*tabPage) (p *tabPage, others []*tabPage) {
	t.Helper()
	l := leaders(tabs)
	for tries := 0; len(l) == 0 && tries < 1200; tries++ {
		eval[bool](tabs[0], `new Promise((done) => setTimeout(() => done(true), 100))`)
		l = leaders(tabs)
	}
	if len(l) != 1 {
		t.Fatalf("the program runs in %d of %d tabs, want 1", len(l), len(tabs))
	}
	return tabs[l[0]], slices.Delete(slices.Clone(tabs), l[0], l[0]+1)
}

// Of ten tabs one runs the program, and all show the same. When it is closed, killed or frozen, another one goes on with
// the import, whose steps run once.
func TestE2ETabs(t *testing.T) {
	if os.Getenv("WEAVER_E2E") == "" {
		t.Skip("make e2e runs this")
	}
	t.Parallel()
	url := serve(t)
	b := start(t, t.TempDir())
	tabs := []*tabPage{b.open(url)}
	tabs[0].until("the program", here)
	for range 9 {
		p := b.open(url)
		p.until("an answer", `document.getElementById("state").textContent === "Ready."`)
		tabs = append(tabs, p)
	}
	id := tabs[9].sample()
	tabs[8].confirm(id)
	tabs[7].parts(id, 10)
	if l := leaders(tabs); fmt.Sprint(l) != "[0]" {
		t.Fatalf("the program runs in the tabs %v, want only the first one", l)
	}

	tabs[0].close()
	killed, left := leader(t, tabs[1:])
	left[0].parts(id, 60)
	killed.crash()
	frozen, awake := leader(t, left)
	awake[0].parts(id, 120)
	frozen.lifecycle(page.SetWebLifecycleStateStateFrozen)
	awake[0].done(id)
	if l := leaders(awake); len(l) != 1 {
		t.Errorf("while a tab is frozen the program runs in %d others, want 1", len(l))
	}
	frozen.lifecycle(page.SetWebLifecycleStateStateActive)
	frozen.done(id) // it shows the work of the others
	awake[1].ended(id)
}

// crash kills the process of the tab.
func (p *tabPage) crash() {
	ctx, cancel := context.WithTimeout(p.ctx, 5*time.Second) // a killed tab does not answer
	defer cancel()
	_, _ = chromedp.Call(ctx, page.Crash, cdp.Empty{})
}

func (p *tabPage) lifecycle(state page.SetWebLifecycleStateState) {
	p.Helper()
	send(p, page.SetWebLifecycleState, page.SetWebLifecycleStateParams{State: state})
}

// A machine that slept for longer than a lease goes on: the attempt whose lease ended is made again, and no step twice.
func TestE2EAsleep(t *testing.T) {
	if os.Getenv("WEAVER_E2E") == "" {
		t.Skip("make e2e runs this")
	}
	t.Parallel()
	b := start(t, t.TempDir())
	p := b.open(serve(t))
	id := p.begun()
	b.signal("-STOP")
	<-time.After(store.DefaultLease + 5*time.Second)
	b.signal("-CONT")
	p.done(id)
	p.ended(id)
	p.sound()
}

// A hidden tab's timers are late. Retries and sleeps are late with them, and the work is complete.
func TestE2ELateTimers(t *testing.T) {
	if os.Getenv("WEAVER_E2E") == "" {
		t.Skip("make e2e runs this")
	}
	t.Parallel()
	late := serveFolder(t, variant(t, "worker-*.js", func(js []byte) []byte {
		return append([]byte("const inTime = setTimeout; globalThis.setTimeout = (f, ms) => inTime(f, ms > 100 ? ms + 15_000 : ms);\n"), js...)
	}))
	p := start(t, t.TempDir()).open(late)
	id := p.sample()
	p.confirm(id)
	p.done(id)
	p.ended(id)
}

// Pages that are loaded do not need the server: another tab starts the program, and the dashboard shows its work.
func TestE2EOffline(t *testing.T) {
	if os.Getenv("WEAVER_E2E") == "" {
		t.Skip("make e2e runs this")
	}
	t.Parallel()
	url, stop := serveUntil(t, built(t))
	b := start(t, t.TempDir())
	first := b.open(url)
	first.until("the program", here)
	second := b.open(url)
	second.until("an answer", `document.getElementById("state").textContent === "Ready."`)
	d := b.open(url + "dashboard/")
	d.until("the dashboard", `document.querySelector("main h1")`)
	stop()
	id := second.sample()
	second.confirm(id)
	second.parts(id, 20)
	first.close()
	second.done(id)
	second.ended(id)
	eval[bool](d, `([...document.querySelectorAll("nav a")].find((e) => e.textContent.includes("Tasks")).click(), true)`)
	d.until("the task", `document.querySelector("main").innerText.includes("example.payments.import.v1") && document.querySelector("main").innerText.includes("succeeded")`)
}
