package tab_test

import (
	"fmt"
	"os"
	"testing"

	"github.com/chromedp/cdproto/page"
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

// Of ten tabs one runs the program, and all show the same. When it is closed or frozen, another one goes on with the
// import, whose steps run once.
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
	tabs[9].parts(id, 60)
	left := tabs[1:]
	l := leaders(left)
	if len(l) != 1 {
		t.Fatalf("after the first tab was closed the program runs in %d tabs, want 1", len(l))
	}
	frozen := left[l[0]]
	frozen.lifecycle(page.SetWebLifecycleStateStateFrozen)
	var awake []*tabPage
	for _, p := range left {
		if p != frozen {
			awake = append(awake, p)
		}
	}
	awake[0].done(id)
	if l := leaders(awake); len(l) != 1 {
		t.Errorf("while a tab is frozen the program runs in %d others, want 1", len(l))
	}
	frozen.lifecycle(page.SetWebLifecycleStateStateActive)
	frozen.done(id) // it shows the work of the others
	awake[1].ended(id)
}

func (p *tabPage) lifecycle(state page.SetWebLifecycleStateState) {
	p.Helper()
	send(p, page.SetWebLifecycleState, page.SetWebLifecycleStateParams{State: state})
}
