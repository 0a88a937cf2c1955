package web_test

import (
	_ "embed"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/goweaver/weaver/dashboard"
)

// axe finds errors of accessibility: axe-core 4.14.1, unmodified.
//
//go:embed testdata/axe.min.js
var axe string

// full examines each page on all screens, in place of one, and in Firefox.
var full = os.Getenv("WEAVER_WEB") == "full"

// Every page loads, is accessible and fits, in both colours and on a narrow screen.
func TestPages(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.fill()
	root := w.serve(w.dashboard(dashboard.Config{Title: "production"}))
	b := openTab(t)
	b.visit(root)
	b.ready()
	pages := b.navigation()
	if len(pages) != 13 {
		t.Fatalf("the navigation has %d pages, want 13: %q", len(pages), pages)
	}
	for _, page := range []string{
		"tasks/" + w.task["ok"].String(), "tasks/" + w.task["fail"].String(), "tasks/" + w.task["block"].String(), "tasks/" + w.task["paused"].String(),
		"jobs/" + w.job.String(), "schedules/nightly-report", "queues/billing", "types/acme.mail.send.v1",
		"orders/order-filled", "orders/order-refused", "orders/order-lost", "orders/order-held",
		"tasks?q=state:failed+label.team=web", "tasks?q=stat:failed", "tasks?q=queue:none",
	} {
		list, _, below := strings.Cut(page, "/")
		if testing.Short() && list != "tasks" {
			continue
		}
		if !below || strings.Contains(strings.Join(pages, " "), list) {
			pages = append(pages, page)
		}
	}
	b.examine(root, pages)
	if full {
		examineInFirefox(t, root, pages)
	}
}

// So do the pages of a store without a task.
func TestEmptyPages(t *testing.T) {
	if testing.Short() {
		t.Skip("make test runs this")
	}
	t.Parallel()
	w := newWorld(t)
	root := w.serve(w.dashboard(dashboard.Config{}))
	b := openTab(t)
	b.visit(root)
	b.ready()
	b.examine(root, b.navigation())
}

// So do the pages of a server that answers every request of data with an error. Each says so.
func TestErrorPages(t *testing.T) {
	if testing.Short() {
		t.Skip("make test runs this")
	}
	t.Parallel()
	w := newWorld(t)
	n := newWire(w.dashboard(dashboard.Config{}))
	root := w.serve(n)
	b := openTab(t)
	b.visit(root)
	b.ready()
	pages := append(b.navigation(), "tasks/"+w.enqueue(work{Do: "ok"}).String(), "types/acme.mail.send.v1")
	b.allow("500")
	n.set("data")
	for i, page := range pages {
		if page == "about" { // it has no data
			continue
		}
		b.visit(root + page)
		b.until(`document.querySelector("main h1") && document.querySelector("main .problem, .banner.bad") && document.querySelector(".banner.bad")`)
		eval[bool](b, axe+"; true")
		width := []int64{1280, 390}[i%2]
		b.screen(width, false)
		for _, defect := range defectsOf(b, page) {
			if !strings.HasPrefix(defect, "it shows problems") {
				t.Errorf("/%s, %d px: %s", page, width, defect)
			}
		}
	}
}

// Tab reaches every control of a page in the order of the document, and leaves the last one.
func TestTabOrder(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.fill()
	root := w.serve(w.dashboard(dashboard.Config{}))
	b := openTab(t)
	b.visit(root)
	b.ready()
	for _, page := range append(b.navigation(), "tasks/"+w.task["fail"].String(), "jobs/"+w.job.String(), "orders/order-refused") {
		if testing.Short() && page != "tasks" {
			continue
		}
		b.visit(root + page)
		b.ready()
		// Rows of live pages may come meanwhile: controls are marked before the first Tab.
		want := eval[int](b, `(() => {
			const controls = [...document.querySelectorAll("a[href], button, input, select, textarea, summary, [tabindex='0']")]
				.filter((e) => e.tabIndex >= 0 && !e.disabled && e.checkVisibility({visibilityProperty: true}));
			controls.forEach((e, i) => e.dataset.order = i);
			return controls.length;
		})()`)
		last := -1
		for range want {
			b.press("\t")
			at := eval[struct {
				Order   int    `json:"order"`
				Outline string `json:"outline"`
				HTML    string `json:"html"`
			}](b, `(() => {
				const e = document.activeElement, style = getComputedStyle(e);
				return {order: Number(e.dataset.order ?? -1), outline: style.outlineStyle, html: e.outerHTML.slice(0, 150)};
			})()`)
			if at.Order != last+1 {
				t.Errorf("/%s: after control %d of %d Tab goes to %d: %s", page, last, want, at.Order, at.HTML)
				break
			}
			if at.Outline == "none" {
				t.Errorf("/%s: the focus is invisible on %s", page, at.HTML)
			}
			last = at.Order
		}
	}
}

// navigation returns the pages of the navigation, without the slash before them.
func (b *tab) navigation() []string {
	b.Helper()
	return eval[[]string](b, `[...document.querySelectorAll("nav[aria-label=Pages] a")].map((a) => a.getAttribute("href").slice(1))`)
}

// examine loads pages, and reports their defects on a wide light screen or on a narrow dark one, by turns.
func (b *tab) examine(root string, pages []string) {
	b.Helper()
	for i, page := range pages {
		b.visit(root + page)
		b.ready()
		eval[bool](b, axe+"; true")
		told := map[string]bool{}
		for _, screen := range []struct {
			width int64
			dark  bool
			turn  int
		}{{1280, false, 0}, {1280, true, -1}, {390, false, -1}, {390, true, 1}} {
			if !full && screen.turn != i%2 {
				continue
			}
			b.screen(screen.width, screen.dark)
			for _, defect := range defectsOf(b, page) {
				if !told[defect] {
					told[defect] = true
					b.Errorf("/%s, %d px, dark %v: %s", page, screen.width, screen.dark, defect)
				}
			}
		}
		b.screen(1280, false)
	}
}

// defectsOf returns what is wrong with a page.
func defectsOf(b *tab, page string) (list []string) {
	b.Helper()
	shown := eval[struct {
		Headings []string `json:"headings"`
		Problems []string `json:"problems"`
		Width    int      `json:"width"`
		Room     int      `json:"room"`
		Wide     string   `json:"wide"`
	}](b, `new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(() => {
		const width = document.documentElement.scrollWidth, room = innerWidth;
		const wide = [...document.querySelectorAll("main *")].find((e) => e.getBoundingClientRect().right > room + 1 && !e.closest(".scroll"));
		done({
			headings: [...document.querySelectorAll("h1")].map((e) => e.innerText),
			problems: [...document.querySelectorAll(".problem")].map((e) => e.innerText),
			width, room, wide: wide ? wide.outerHTML.slice(0, 300) : "",
		});
	})))`)
	if len(shown.Headings) != 1 || strings.Contains(strings.Join(shown.Headings, ""), "no such page") {
		list = append(list, fmt.Sprintf("the headings are %q", shown.Headings))
	}
	if len(shown.Problems) > 0 && !strings.Contains(page, "stat:failed") {
		list = append(list, fmt.Sprintf("it shows problems: %q", shown.Problems))
	}
	if shown.Width > shown.Room {
		list = append(list, fmt.Sprintf("it is %d px wide: %s", shown.Width, shown.Wide))
	}
	return append(list, eval[[]string](b, `axe.run(document, {runOnly: {type: "tag", values: ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa"]}, resultTypes: ["violations"]})
		.then((r) => r.violations.flatMap((v) => v.nodes.slice(0, 5).map((n) => v.id + ": " + n.failureSummary.replace(/\s+/g, " ") + " " + n.html.slice(0, 200))))`)...)
}
