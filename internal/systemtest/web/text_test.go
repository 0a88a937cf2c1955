package web_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/goweaver/weaver"
	"github.com/goweaver/weaver/dashboard"
)

// Texts of users are shown as texts: no element, no request and no code comes of them.
func TestText(t *testing.T) {
	t.Parallel()
	const nasty = `<script>window.bad=1</script><img src=x onerror="window.bad=2"><a href="javascript:window.bad=3">x</a> &amp; ` +
		"\u202egnissim\u2066 \u200f\x01\x1b[31m\x7f {{1+1}} ${2+2}"
	w := newWorld(t)
	var pages []string
	for _, do := range []string{"ok", "fail", "block"} {
		id := w.enqueue(work{Do: do, Text: nasty}, weaver.Label("order", `<b onclick=x>"'&`))
		pages = append(pages, "tasks/"+id.String())
	}
	job := weaver.NewJob(`<i>job`)
	job.Add("a", report.With(work{Do: "fail", Text: nasty}))
	h, err := w.client.Submit(t.Context(), job)
	w.must(err)
	_, _ = w.client.WaitJob(t.Context(), h.ID()) // its failure is an error
	w.must(w.client.PauseQueue(t.Context(), "billing", weaver.Reason(nasty)))
	root := w.serve(w.dashboard(dashboard.Config{Title: nasty[:60], Links: []dashboard.Link{{Name: `<u>logs`, URL: "https://logs.example/{id}?type={type}"}}}))
	b := openTab(t)
	b.visit(root)
	b.ready()
	pages = append(pages, "jobs/"+h.ID().String(), "tasks?q="+`%3Cscript%3Ealert(1)%3C/script%3E`)
	pages = append(pages, b.navigation()...)
	for _, page := range pages {
		b.visit(root + page)
		b.ready()
		defect := eval[string](b, fmt.Sprintf(`(() => {
			if (window.bad) return "code ran: " + window.bad;
			const made = document.querySelector('script:not([src*="assets/"]), img, a[href^="javascript:" i], [onclick], [onerror], main b[onclick], iframe');
			if (made) return "it is an element: " + made.outerHTML.slice(0, 200);
			if (%v && !document.body.innerText.includes("<script>window.bad=1</script>")) return "the text is not shown: " + document.querySelector("main").innerText.slice(0, 2000);
			return "";
		})()`, strings.HasPrefix(page, "tasks/")))
		if defect != "" {
			t.Errorf("/%s: %s", page, defect)
		}
	}
}
