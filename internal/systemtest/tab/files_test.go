package tab_test

import (
	"archive/zip"
	"bytes"
	"context"
	"encoding/base64"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/goweaver/weaver"
	"github.com/goweaver/weaver/cli"
	"github.com/goweaver/weaver/store/sqlite"
)

// command runs weaver, and returns what it printed.
func command(t *testing.T, args ...string) string {
	t.Helper()
	var out bytes.Buffer
	if code := cli.Run(context.Background(), cli.App{}, args, nil, &out, &out); code != 0 {
		t.Fatalf("weaver %s: exit code %d\n%s", strings.Join(args, " "), code, out.String())
	}
	return out.String()
}

// The files of a tab are downloaded, opened and changed on a machine, and restored in another browser. The same
// file's capsule is shown by the dashboard in the tab.
func TestE2EFiles(t *testing.T) {
	if os.Getenv("WEAVER_E2E") == "" {
		t.Skip("make e2e runs this")
	}
	t.Parallel()
	url := serve(t)
	b := start(t, t.TempDir())
	p := b.open(url)
	id := p.small()
	if found := p.check(); found != `{"tasks":1,"violations":[]}` {
		t.Errorf("the check in the tab: %s", found)
	}
	backup, err := base64.StdEncoding.DecodeString(eval[string](p, `import("./weaver.js").then((m) => m.connect().backup()).then((f) => new Promise((done) => {
		const reader = new FileReader();
		reader.onload = () => done(reader.result.slice(reader.result.indexOf(",") + 1));
		reader.readAsDataURL(f);
	}))`))
	if err != nil {
		t.Fatal(err)
	}

	// On a machine.
	dir := t.TempDir()
	z, err := zip.NewReader(bytes.NewReader(backup), int64(len(backup)))
	if err != nil {
		t.Fatal(err)
	}
	if err := os.CopyFS(dir, z); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, "payments.db")
	if out := command(t, "doctor", "--deep", "--store", "sqlite:"+path); !strings.Contains(out, "1 task") {
		t.Errorf("doctor: %s", out)
	}
	capsule := filepath.Join(t.TempDir(), "run.capsule")
	command(t, "export", id, "--to", capsule, "--store", "sqlite:"+path)
	added := enqueue(t, path)

	// In another browser, with the blobs.
	var again bytes.Buffer
	w := zip.NewWriter(&again)
	if err := w.AddFS(os.DirFS(dir)); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	b = start(t, t.TempDir())
	p = b.open(url)
	own := p.small()
	restore := func(content []byte, options string) string {
		return eval[string](p, fmt.Sprintf(`import("./weaver.js").then((m) => m.connect().restore(new Blob([%s]), %s)).then(() => "restored", (err) => err.message)`, bytesIn(content), options))
	}
	for _, c := range []struct {
		content       []byte
		options, says string
	}{
		{again.Bytes(), "{}", "download a backup of them"},
		{[]byte("hello"), "{ replace: true }", "want the ZIP file of a backup"},
		{again.Bytes()[:again.Len()/2], "{ replace: true }", "want the ZIP file of a backup"},
		{read(t, capsule), "{ replace: true }", "open it in the dashboard"},
		{append(read(t, path)[:8192:8192], make([]byte, 8192)...), "{ replace: true }", "this file cannot be restored"},
	} {
		if said := restore(c.content, c.options); !strings.Contains(said, c.says) {
			t.Errorf("restore of %d bytes with %s: %s, want %q", len(c.content), c.options, said, c.says)
		}
	}
	p.task(own) // nothing was replaced
	if said := restore(again.Bytes(), "{ replace: true }"); said != "restored" {
		t.Fatalf("restore: %s", said)
	}
	p.task(added)
	if n := p.api("GET", "v1/tasks", "a.items.length"); n != "2" {
		t.Errorf("after the restore there are %s tasks, want 2", n)
	}
	report := eval[float64](p, fmt.Sprintf(`import("./weaver.js").then(async (m) => {
		const weaver = m.connect(), history = await weaver.json("GET", "v1/tasks/%s/history");
		return (await (await weaver.fetch("v1/artifacts/" + history.artifacts[0].id )).blob()).size;
	})`, id))
	if report == 0 {
		t.Error("the report of the restored import is empty")
	}

	// The capsule, dropped on a page of the dashboard.
	d := b.open(url + "dashboard/queues")
	drop := func(name string, content []byte) {
		d.until("the page", `document.querySelector("main h1")`)
		eval[bool](d, fmt.Sprintf(`(() => {
			const drag = new DataTransfer();
			drag.items.add(new File([%s], %q));
			return document.body.dispatchEvent(new DragEvent("drop", { dataTransfer: drag, bubbles: true, cancelable: true }));
		})()`, bytesIn(content), name))
	}
	drop("notes.txt", []byte("hello"))
	d.until("the refusal", `document.body.innerText.includes("notes.txt is no capsule")`)
	drop("run.capsule", read(t, capsule))
	d.until("the capsule", `document.body.innerText.includes("run.capsule is a capsule") && document.body.innerText.includes("succeeded")`)
	eval[bool](d, fmt.Sprintf(`(location.assign("tasks/%s"), true)`, id))
	d.until("its task", `document.body.innerText.includes("run.capsule is a capsule") && document.body.innerText.includes("part 2")`)
	eval[bool](d, `([...document.querySelectorAll("button")].find((e) => e.textContent === "Close the capsule").click(), true)`)
	d.until("the program's own tasks", `!document.body.innerText.includes("is a capsule") && document.querySelector("main h1")`)
	d.until("the capsule to be deleted", `(globalThis.names ??= [], navigator.storage.getDirectory().then((r) => r.getDirectoryHandle("capsules")).then(async (c) => {
		const all = [];
		for await (const name of c.keys()) all.push(name);
		globalThis.names = all;
		globalThis.listed = true;
	}), globalThis.listed && globalThis.names.length === 0)`)
}

// small imports two payments, and returns the ID of the task.
func (p *tabPage) small() string {
	p.Helper()
	p.until("the program", `document.getElementById("state").textContent.startsWith("Ready")`)
	id := eval[string](p, `import("./weaver.js").then(async (m) => {
		const weaver = m.connect();
		const task = await weaver.enqueue("example.payments.import.v1", { name: "small.csv", csv: "date,payee,amount\n2026-11-01,Ann,3\n2026-11-02,Bob,4.5\n" });
		await weaver.signal(task.id, "confirmed", true);
		return task.id;
	})`)
	p.done(id)
	return id
}

// enqueue adds a task to a file on this machine.
func enqueue(t *testing.T, path string) string {
	t.Helper()
	db, err := sqlite.Open(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := db.Close(); err != nil {
			t.Error(err)
		}
	}()
	client, err := weaver.NewClient(db, weaver.ClientConfig{})
	if err != nil {
		t.Fatal(err)
	}
	type table struct {
		Name string `json:"name"`
		CSV  string `json:"csv"`
	}
	imports := weaver.Define[table, any]("example.payments.import.v1")
	h, err := imports.Enqueue(t.Context(), client, table{Name: "later.csv", CSV: "date,payee,amount\n2026-11-01,Ann,3\n"})
	if err != nil {
		t.Fatal(err)
	}
	return h.ID().String()
}

// task checks that the program has a task.
func (p *tabPage) task(id string) {
	p.Helper()
	if got := p.api("GET", "v1/tasks/"+id, "a.id"); got != `"`+id+`"` {
		p.Errorf("the task %s: %s", id, got)
	}
}

func read(t *testing.T, path string) []byte {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return b
}
