package web_test

import (
	"encoding/json"
	"errors"
	"net/http"
	"regexp"
	"strings"
	"testing"

	"github.com/goweaver/weaver/dashboard"
	"github.com/goweaver/weaver/httpapi"
)

// No page has a button that the server would refuse, or a value that the user may not read.
func TestAccess(t *testing.T) {
	t.Parallel()
	const verbs = `[...document.querySelectorAll("main button, main [role=menuitem]")].map((e) => (e.getAttribute("aria-label") ?? "") + e.textContent).filter((s) => /retry|\\bcancel\\b|rerun|pause|resume|delete|answer|unblock|repair|signal|submit|set a limit|change|trigger|run now|backfill|select|hold|release|unlock|settle|requeue|withdraw/i.test(s)).join("; ")`
	for name, c := range map[string]struct {
		access   httpapi.Access
		readOnly bool
		verbs    bool
		values   bool
	}{
		"read":              {httpapi.Read, false, false, false},
		"read and payloads": {httpapi.Read | httpapi.Payloads, false, false, true},
		"operate":           {httpapi.Full, false, true, true},
		"read-only":         {httpapi.Full, true, false, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := worldWith(t, func(cfg *httpapi.Config) {
				cfg.Authorize = httpapi.Open(httpapi.Principal{Name: "ann", Access: c.access})
			})
			w.fill()
			url := w.serve(w.dashboard(dashboard.Config{ReadOnly: c.readOnly}))
			b := openTab(t)
			shown := 0
			for _, page := range w.pages() {
				b.visit(url + page)
				b.ready()
				switch got := eval[string](b, verbs); {
				case got != "" && !c.verbs && page != "events": // its Pause stops the display
					t.Errorf("%s has the buttons %s", page, got)
				case got != "":
					shown++
				}
			}
			if c.verbs && shown < 10 {
				t.Errorf("%d pages have buttons, want 10 or more", shown)
			}
			b.visit(url + "tasks/" + w.task["ok"].String() + "?tab=values")
			b.ready()
			if got := eval[bool](b, `!!document.querySelector("[data-tab=values]")`); got != c.values {
				t.Errorf("the page of a task shows values: %v, want %v", got, c.values)
			}
			if !c.verbs {
				b.allow("403")
				status := eval[int](b, `fetch(new URL("v1/tasks/`+w.task["fail"].String()+`/retry", `+"`"+url+"`"+`), {method: "POST", headers: {"Content-Type": "application/json"}, body: "{}"}).then((r) => r.status)`)
				if status != http.StatusForbidden {
					t.Errorf("a retry was answered with %d", status)
				}
			}
		})
	}
}

// pages returns the addresses of all pages of a filled world.
func (w *world) pages() []string {
	return []string{
		"", "inbox", "tasks", "tasks/" + w.task["fail"].String(), "tasks/" + w.task["block"].String(), "tasks/" + w.task["run"].String(), "jobs", "jobs/" + w.job.String(),
		"queues", "queues/billing", "workers", "schedules", "schedules/nightly-report", "types", "types/acme.mail.send.v1",
		"orders", "orders/order-refused", "orders/order-held", "limits", "events", "audit", "about",
	}
}

// Without a login each page asks for one and shows nothing else. After it the page of an object is the one that was opened.
func TestAccess_NoLogin(t *testing.T) {
	if testing.Short() {
		t.Skip("make test runs this")
	}
	t.Parallel()
	token, line := httpapi.NewToken("ann", httpapi.Full)
	tokens, err := httpapi.ReadTokens(strings.NewReader(line))
	if err != nil {
		t.Fatal(err)
	}
	w := worldWith(t, func(cfg *httpapi.Config) { cfg.Authorize, cfg.Login = tokens.Authorize, tokens })
	w.fill()
	url := w.serve(w.dashboard(dashboard.Config{}))
	b := openTab(t)
	b.allow("401")
	data := regexp.MustCompile(`(?i)pages:|acme|billing|nightly|order|\d`)
	for _, page := range w.pages() {
		b.visit(url + page)
		b.until(`document.querySelector("input[name=token]")`)
		if shown := eval[string](b, `(document.querySelector("nav, table") ? "pages: " : "") + document.body.innerText`); data.MatchString(shown) {
			t.Errorf("/%s shows %q", page, shown)
		}
		if !strings.Contains(page, "/") {
			continue
		}
		b.signIn(token)
		b.ready()
		if at := eval[string](b, "location.href"); at != url+page {
			t.Errorf("after the login at /%s the address is %s", page, at)
		}
		eval[bool](b, `fetch("`+url+`logout", {method: "POST"}).then((r) => r.ok)`)
	}
}

// A field that Redact hides is in no page, form or copied text.
func TestAccess_Redact(t *testing.T) {
	t.Parallel()
	const secret = "4929-0000-hidden-card"
	w := newWorld(t)
	url := w.serve(w.dashboard(dashboard.Config{}))
	w.enqueue(work{Do: "ok"}) // its worker has announced the type
	draft := `{"task_type":"acme.mail.send.v1","input":{"do":"wait","text":"` + secret + `"},"redact":["input/text"],"delay":"1h"}`
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url+"v1/tasks", strings.NewReader(draft))
	w.must(err)
	req.Header.Set("Content-Type", "application/json")
	res, err := http.DefaultClient.Do(req)
	w.must(err)
	var enqueued struct{ ID string }
	w.must(errors.Join(json.NewDecoder(res.Body).Decode(&enqueued), res.Body.Close()))
	if res.StatusCode != http.StatusCreated {
		t.Fatalf("the enqueue was answered with %d", res.StatusCode)
	}
	b := openTab(t)
	b.allow("/logs?") // there are none
	everything := func(where string) {
		t.Helper()
		b.until(`!document.querySelector("main .loading")`)
		eval[bool](b, `(() => { navigator.clipboard.writeText = (text) => { window.copied = (window.copied ?? "") + text; return Promise.resolve(); }; return true; })()`)
		eval[bool](b, `(() => { for (const e of document.querySelectorAll("main button[aria-label^=Copy], dialog button[aria-label^=Copy]")) e.click(); return true; })()`)
		if all := eval[string](b, `document.documentElement.outerHTML + [...document.querySelectorAll("input, textarea")].map((e) => e.value).join() + (window.copied ?? "") + location.href`); strings.Contains(all, secret) {
			t.Errorf("%s shows the hidden field", where)
		}
	}
	b.visit(url + "tasks?q=state:pending")
	b.ready()
	everything("the list")
	for _, tab := range []string{"history", "values", "logs", "related", "events", "audit"} {
		b.visit(url + "tasks/" + enqueued.ID + "?tab=" + tab)
		b.ready()
		everything("the tab " + tab)
	}
	b.press("e")
	b.until(`document.querySelector("dialog[open] input[type=checkbox]")`)
	b.tabTo("With another input")
	b.press(" ")
	b.until(`document.querySelector("dialog[open] textarea")`)
	everything("the form of a rerun")
}
