package tab_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/goweaver/weaver/store/sqlite"
)

// sample starts the import of the page's sample, and returns the ID of its task.
func (p *tabPage) sample() string {
	p.Helper()
	p.until("the program", `document.getElementById("state").textContent.startsWith("Ready")`)
	before := p.api("GET", "v1/tasks", "a.items.map((t) => t.id)")
	eval[bool](p, `(document.getElementById("sample").click(), true)`)
	added := fmt.Sprintf(`[...document.querySelectorAll("#imports li")].find((li) => !%s.includes(li.id))`, before)
	p.until("the import", added)
	return eval[string](p, added+".id")
}

// begun starts an import, and returns its ID when 20 of its 500 parts are done.
func (p *tabPage) begun() string {
	p.Helper()
	id := p.sample()
	p.confirm(id)
	p.parts(id, 20)
	return id
}

// confirm presses the button of an import.
func (p *tabPage) confirm(id string) {
	p.Helper()
	p.until("the button", fmt.Sprintf(`document.getElementById(%q).querySelector("button")`, id))
	eval[bool](p, fmt.Sprintf(`(document.getElementById(%q).querySelector("button").click(), true)`, id))
}

// parts waits until an import has so many parts behind it.
func (p *tabPage) parts(id string, n int) {
	p.Helper()
	p.until(fmt.Sprint(n, " parts"), fmt.Sprintf(`document.getElementById(%q).dataset.state === "succeeded" || document.getElementById(%[1]q).querySelector("progress").value >= %d`, id, n))
}

func (p *tabPage) done(id string) {
	p.Helper()
	p.until("the end of "+id, fmt.Sprintf(`document.getElementById(%q)?.dataset.state === "succeeded"`, id))
}

// ended checks the whole record of an import that succeeded: each of its steps was completed once.
func (p *tabPage) ended(id string) {
	p.Helper()
	var got struct {
		State string
		Total struct {
			Payments int
			Cents    int64
		}
		Steps     []string
		Artifacts []string
	}
	raw := p.api("GET", "v1/tasks/"+id+"/history", `{state: a.task.state, total: a.task.output, steps: a.steps.filter((s) => s.state === "completed").map((s) => s.name), artifacts: a.artifacts.map((f) => f.name)}`)
	if err := json.Unmarshal([]byte(raw), &got); err != nil {
		p.Fatal(err)
	}
	names := make(map[string]int)
	for _, s := range got.Steps {
		names[s]++
	}
	for i := range 500 {
		if n := names[fmt.Sprint("part ", i+1)]; n != 1 {
			p.Errorf("part %d is recorded %d times", i+1, n)
		}
	}
	// 2,000 payments of i % 97 + 0.25.
	var cents int64
	for i := 1; i <= 2000; i++ {
		cents += int64(i%97)*100 + 25
	}
	if got.State != "succeeded" || got.Total.Payments != 2000 || got.Total.Cents != cents || len(got.Artifacts) != 1 {
		p.Errorf("the import ended as %s, want 2,000 payments of %d cents and a report", raw, cents)
	}
}

// sound opens a copy of the file outside of the browser and checks it.
func (p *tabPage) sound() {
	p.Helper()
	path := filepath.Join(p.TempDir(), "payments.db")
	if err := os.WriteFile(path, p.file("payments.db"), 0o600); err != nil {
		p.Fatal(err)
	}
	if err := os.WriteFile(path+"-journal", p.file("payments.db-journal"), 0o600); err != nil {
		p.Fatal(err)
	}
	db, err := sqlite.Open(p.Context(), path)
	if err != nil {
		p.Fatal(err)
	}
	defer func() {
		if err := db.Close(); err != nil {
			p.Error(err)
		}
	}()
	var text string
	if err := db.DB().QueryRowContext(p.Context(), "PRAGMA integrity_check").Scan(&text); err != nil || text != "ok" {
		p.Errorf("the file: %s, %v", text, err)
	}
}

// An import goes on after its page was reloaded in the middle of its steps and after its tab was closed. The dashboard
// shows it in the same origin without a server.
func TestE2EImport(t *testing.T) {
	if os.Getenv("WEAVER_E2E") == "" {
		t.Skip("make e2e runs this")
	}
	t.Parallel()
	url := serve(t)
	b := start(t, t.TempDir())
	p := b.open(url)
	id := p.begun()
	eval[bool](p, `(location.reload(), true)`)
	p.until("the page after the reload", `document.getElementById("state").textContent.startsWith("Ready")`)
	p.parts(id, 60)
	p.close()
	p = b.open(url)
	p.done(id)
	p.ended(id)
	p.sound()

	d := b.open(url + "dashboard/tasks/" + id)
	const task = `document.body.innerText.includes("example.payments.import.v1") && document.body.innerText.includes("part 500")`
	d.until("the task in the dashboard", task)

	if !full() {
		return
	}
	p = openFirefox(t, url)
	id = p.begun()
	p.firefox.Open(url) // anew
	p.done(id)
	p.ended(id)
	p.sound()
	p.firefox.Open(url + "dashboard/tasks/" + id)
	p.until("the task in the dashboard", task)
}

// Each acknowledged import ends, and no step of it runs twice, though the page is reloaded, the tab closed and the
// browser killed in the middle of its steps.
func TestE2EBrowserKilled(t *testing.T) {
	if os.Getenv("WEAVER_E2E") == "" {
		t.Skip("make e2e runs this")
	}
	t.Parallel()
	url := serve(t)
	profile := t.TempDir()
	rounds := 5
	if full() {
		rounds = 50
	}
	var ids []string
	for i := range rounds {
		b := start(t, profile)
		p := b.open(url)
		id := p.sample()
		ids = append(ids, id)
		p.confirm(id)
		p.parts(id, 1+i*37%120)
		eval[bool](p, `(location.reload(), true)`)
		p.parts(id, 130+i*53%120)
		p.close()
		p = b.open(url)
		p.parts(id, 260+i*71%200)
		b.kill()
	}
	p := start(t, profile).open(url)
	for _, id := range ids {
		p.done(id)
	}
	for _, id := range ids {
		p.ended(id)
	}
	if found := p.check(); found != fmt.Sprintf(`{"tasks":%d,"violations":[]}`, rounds) {
		t.Errorf("the check in the tab: %s", found)
	}
	p.sound()
}

// check returns what `weaver doctor` would find in the tab.
func (p *tabPage) check() string {
	p.Helper()
	return eval[string](p, `import("./weaver.js").then((m) => m.connect().check()).then((c) => JSON.stringify(c))`)
}
