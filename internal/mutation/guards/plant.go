package main

import (
	"cmp"
	"context"
	"fmt"
	"os/exec"
	"path/filepath"
	"slices"
	"time"

	"github.com/goweaver/weaver/internal/mutation"
)

// plant builds the test binary of a proof with a defect and runs it n times. The
// proof must find the defect in each run, and pass without it. The text has the
// number of runs that found it, their median duration, and the failed test.
func (b *bench) plant(ctx context.Context, g *guard, n int) (verdict, string) {
	files, err := b.code.without(g)
	if err != nil {
		return wrong, err.Error()
	}
	if g.run == "" || len(g.tests) != 1 {
		return wrong, "want one package and a run line"
	}
	if out, err := b.test(ctx, g); err != nil {
		return wrong, fmt.Sprintf("the proof fails without the defect: %v\n%s", err, out)
	}
	overlay, err := mutation.NewOverlay(files)
	if err != nil {
		return wrong, err.Error()
	}
	defer overlay.Remove()
	binary := filepath.Join(overlay.Dir, "proof.test")
	build := append(append([]string{"test"}, b.flags...), "-c", "-overlay="+overlay.File, "-o", binary, "./"+g.tests[0])
	if out, err := mutation.Go(ctx, b.code.root, build...); err != nil {
		return wrong, fmt.Sprintf("%v\n%s", err, out)
	}
	var took []time.Duration
	by := ""
	for range n {
		play := exec.CommandContext(ctx, binary, "-test.failfast", "-test.timeout="+b.timeout.String(), "-test.run="+g.run)
		play.Dir = filepath.Join(b.code.root, filepath.FromSlash(g.tests[0]))
		began := time.Now()
		out, err := play.CombinedOutput()
		v, what := outcome(string(out), err)
		if v == wrong {
			return v, what
		}
		if v == killed {
			took, by = append(took, time.Since(began)), cmp.Or(by, what)
		}
	}
	slices.Sort(took)
	text := fmt.Sprintf("found %d/%d", len(took), n)
	if len(took) > 0 {
		text += fmt.Sprintf(", median %.1f s, %s", took[len(took)/2].Seconds(), by)
	}
	if len(took) < n {
		return survived, text
	}
	return killed, text
}
