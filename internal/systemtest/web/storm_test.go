package web_test

import (
	"testing"

	"github.com/goweaver/weaver/dashboard"
)

// Through hundreds of changes the focus stays where it is and rows do not move; afterwards each page shows what
// a fresh load shows.
func TestStorm(t *testing.T) {
	if testing.Short() {
		t.Skip("make test runs this")
	}
	t.Parallel()
	w := newWorld(t)
	w.enqueue(work{Do: "ok", Text: "first"})
	url := w.serve(w.dashboard(dashboard.Config{}))
	list := openTab(t)
	list.visit(url + "about")
	list.ready()
	eval[bool](list, `localStorage.setItem("weaver.time", "exact") ?? true`) // ages differ from moment to moment
	list.visit(url + "tasks")
	list.ready()
	list.until(`document.querySelector("tr[data-id]")`)
	list.press("j")
	const focused = `document.activeElement.closest("tr")?.dataset.id + document.activeElement.getBoundingClientRect().top`
	before := eval[string](list, focused)
	pages := map[string]*tab{}
	for _, page := range []string{"", "queues", "jobs", "inbox"} {
		pages[page] = list.beside()
		pages[page].visit(url + page)
		pages[page].ready()
	}
	for range 100 { // each is enqueued, starts and ends
		w.enqueue(work{Do: "ok"})
	}
	w.enqueue(work{Do: "block"})
	list.until(`document.querySelector(".list-head button")?.innerText.includes("50 or more new")`)
	if after := eval[string](list, focused); after != before {
		t.Errorf("the focus was on %s, and is on %s", before, after)
	}
	list.press("\u001b")
	list.click(".list-head button", "new")
	pages["tasks"] = list
	fresh := list.beside()
	const text = `document.querySelector("main").innerText.replace(/\d+ \w+( \d+ s)? ago/g, "ago")` // of runs
	for page, b := range pages {
		fresh.visit(url + page)
		fresh.ready()
		shown, want := "", ""
		for range 40 { // statistics come every ten seconds
			if shown, want = eval[string](b, text), eval[string](fresh, text); shown == want {
				break
			}
			fresh.reload()
			fresh.ready()
		}
		if shown != want {
			t.Errorf("/%s shows\n%s\nand a fresh load\n%s", page, shown, want)
		}
	}
}
