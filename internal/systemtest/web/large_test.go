package web_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/goweaver/weaver"
	"github.com/goweaver/weaver/dashboard"
)

// Pages stay usable with values and errors of 1 MB, a task with thousands of labels, and thousands of values of a label
// (10,000 with WEAVER_WEB=full): they show a part of what is large, and answer keys.
func TestLarge(t *testing.T) {
	if testing.Short() {
		t.Skip("make test runs this")
	}
	t.Parallel()
	n := 3_000
	if full {
		n = 10_000
	}
	w := newWorld(t)
	text := strings.Repeat("<b>0123456789 abcdefgh</b> ", 40_000)
	labels := make([]weaver.EnqueueOption, n)
	for i := range labels {
		labels[i] = weaver.Label(fmt.Sprintf("key-%05d", i), fmt.Sprintf("value %d", i))
	}
	failed := w.enqueue(work{Do: "fail", Text: text})
	done := w.enqueue(work{Do: "ok", Text: text})
	blocked := w.enqueue(work{Do: "block", Text: text})
	labelled := w.enqueue(work{Do: "wait"}, append(labels, weaver.Delay(time.Hour))...)
	drafts := make([]weaver.Draft, n)
	for i := range drafts {
		drafts[i] = mail.With(work{Do: "wait"}, weaver.Label("customer", fmt.Sprintf("customer %d", i)), weaver.Delay(time.Hour))
	}
	_, err := w.client.EnqueueTasks(t.Context(), drafts...)
	w.must(err)
	url := w.serve(w.dashboard(dashboard.Config{}))
	b := openTab(t)
	for page, says := range map[string]string{
		"":                     "failed",
		"inbox":                "which address? <b>0123456789",
		"tasks":                fmt.Sprint("customer ", n-1),
		"tasks?q=state:failed": "the server said 550: <b>0123456789",
		"tasks?q=label.customer=%22customer%207%22": "customer 7",
		"tasks/" + failed.String():                  "the server said 550: <b>0123456789",
		"tasks/" + failed.String() + "?tab=values":  "MiB",
		"tasks/" + done.String() + "?tab=values":    "all 1,",
		"tasks/" + blocked.String():                 "which address? <b>0123456789",
		"tasks/" + labelled.String():                fmt.Sprint("and ", n-50, " more"),
	} {
		b.visit(url + page)
		b.ready()
		b.until(fmt.Sprintf(`document.querySelector("main").innerText.includes(%q)`, says))
		if size := eval[int](b, `document.querySelectorAll("*").length`); size > n {
			t.Errorf("/%s has %d elements", page, size)
		}
		if size := eval[int](b, `document.body.innerText.length`); size > 200_000 {
			t.Errorf("/%s shows %d characters", page, size)
		}
		b.press("?")
		b.until(`document.querySelector("dialog[open]")`)
	}
	b.visit(url + "tasks/" + done.String())
	b.ready()
	b.press("e")
	b.click("dialog label", "With another input")
	b.until(`document.querySelector("dialog textarea")`)
	b.tabTo("As JSON")
	b.fill(`{"do": "ok", "text": "short"}`)
	b.until(`document.querySelector("dialog .diff")?.innerText.includes("short")`)
	b.click("dialog button[type=submit]", "Rerun with this input")
	b.until(`document.querySelector(".toast a")`)
}
