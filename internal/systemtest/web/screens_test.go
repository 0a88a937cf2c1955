package web_test

import (
	"flag"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"github.com/goweaver/weaver"
	"github.com/goweaver/weaver/dashboard"
	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/task"
)

var update = flag.Bool("update", false, "write the pictures of the README (docs/images)")

// The pictures of the README show what a scripted world looks like.
func TestScreens(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.history(time.Hour)
	w.fill()
	var failed weaver.TaskID
	for range 3 {
		failed = w.enqueue(work{Do: "fail", Text: "the mailbox is full"}, weaver.Label("team", "web"))
	}
	url := w.serve(w.dashboard(dashboard.Config{}))
	b := openTab(t)
	for _, s := range []struct {
		file, page, says string
		dark             bool
	}{
		{"overview-light.png", "", "migration of the ledger", false},
		{"overview-dark.png", "", "migration of the ledger", true},
		{"task-why.png", "tasks/" + failed.String(), "All its 2 attempts are used", false},
	} {
		b.screen(1280, s.dark)
		b.visit(url + s.page)
		b.ready()
		b.until(`document.querySelector("main").innerText.includes(` + "`" + s.says + "`" + `)`)
		picture, err := chromedp.Run(b.ctx, chromedp.CaptureScreenshot())
		w.must(err)
		path := filepath.Join("..", "..", "..", "docs", "images", s.file)
		if *update {
			w.must(os.WriteFile(path, picture, 0o644))
		}
		if _, err := os.Stat(path); err != nil {
			t.Errorf("%v: run this test with -update", err)
		}
		readme, err := os.ReadFile(filepath.Join("..", "..", "..", "README.md"))
		w.must(err)
		if !strings.Contains(string(readme), "docs/images/"+s.file) {
			t.Errorf("the README does not show docs/images/%s", s.file)
		}
	}
}

// history writes statistics of a time before now, always the same ones.
func (w *world) history(span time.Duration) {
	w.Helper()
	rng := rand.New(rand.NewPCG(1, 2))
	end := time.Now().Truncate(store.StatsSlot)
	var rows []store.StatRow
	for at := end.Add(-span); at.Before(end); at = at.Add(store.StatsSlot) {
		for name, most := range map[string]int{mail.Name(): 9, report.Name(): 3} {
			row := store.StatRow{StatKey: store.StatKey{Slot: at, Type: name, Queue: "default", Outcome: task.OutcomeSuccess}}
			for range rng.IntN(most) {
				row.Count++
				row.Run.Add(time.Duration(40+rng.IntN(400)) * time.Millisecond)
				row.Wait.Add(time.Duration(1+rng.IntN(20)) * time.Millisecond)
			}
			if row.Count > 0 {
				rows = append(rows, row)
			}
		}
		if rng.IntN(12) == 0 {
			row := store.StatRow{StatKey: store.StatKey{Slot: at, Type: mail.Name(), Queue: "default", Outcome: task.OutcomeFailure, ErrorKind: task.KindHandler}, Count: 1}
			row.Run.Add(time.Duration(300+rng.IntN(900)) * time.Millisecond)
			row.Wait.Add(2 * time.Millisecond)
			rows = append(rows, row)
		}
	}
	w.must(w.client.Store().WriteStats(w.Context(), w.client.Namespace(), rows...))
}
