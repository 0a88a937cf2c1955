package builtin_test

import (
	"context"
	"os/exec"
	"strings"
	"sync"
	"testing"

	"github.com/goweaver/weaver"
	"github.com/goweaver/weaver/builtin"
	"github.com/goweaver/weaver/store/sqlite"
)

// BenchmarkRun runs `true` a thousand times in eight slots: as tasks, as bare
// processes, and by xargs.
func BenchmarkRun(b *testing.B) {
	const times, slots = 1000, 8
	b.Run("tasks", func(b *testing.B) {
		db, err := sqlite.OpenMemory(b.Context())
		if err != nil {
			b.Fatal(err)
		}
		defer db.Close()
		if err := db.Migrate(b.Context()); err != nil {
			b.Fatal(err)
		}
		eng, err := weaver.New(db, weaver.Config{Handlers: builtin.Handlers(builtin.Config{}), Concurrency: slots})
		if err != nil {
			b.Fatal(err)
		}
		inputs := make([]builtin.RunInput, times)
		for i := range inputs {
			inputs[i].Argv = []string{"true"}
		}
		for b.Loop() {
			b.StopTimer()
			handles, err := builtin.Run.EnqueueMany(b.Context(), eng, inputs)
			if err != nil {
				b.Fatal(err)
			}
			b.StartTimer()
			if err := eng.RunUntilIdle(b.Context()); err != nil {
				b.Fatal(err)
			}
			b.StopTimer()
			for _, h := range handles {
				if _, err := h.Wait(b.Context()); err != nil {
					b.Fatal(err)
				}
			}
			b.StartTimer()
		}
	})
	b.Run("handlers", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			inParallel(times, slots, func() {
				if _, err := builtin.RunCommand(context.Background(), builtin.RunInput{Argv: []string{"true"}}); err != nil {
					b.Error(err)
				}
			})
		}
	})
	b.Run("processes", func(b *testing.B) {
		for b.Loop() {
			inParallel(times, slots, func() {
				if err := exec.Command("true").Run(); err != nil {
					b.Error(err)
				}
			})
		}
	})
	b.Run("xargs", func(b *testing.B) {
		for b.Loop() {
			cmd := exec.Command("xargs", "-P8", "-n1", "true")
			cmd.Stdin = strings.NewReader(strings.Repeat("x\n", times))
			if err := cmd.Run(); err != nil {
				b.Error(err)
			}
		}
	})
}

func inParallel(times, slots int, f func()) {
	var wg sync.WaitGroup
	turns := make(chan struct{}, times)
	for range times {
		turns <- struct{}{}
	}
	close(turns)
	for range slots {
		wg.Go(func() {
			for range turns {
				f()
			}
		})
	}
	wg.Wait()
}

// BenchmarkOutput reads 100 MB of lines from a command.
func BenchmarkOutput(b *testing.B) {
	const size = 100_000_000
	b.SetBytes(size)
	for b.Loop() {
		out, err := builtin.RunCommand(context.Background(), asHelper("write", "100000000"))
		if err != nil || out.StdoutBytes != size {
			b.Fatalf("%d bytes: %v", out.StdoutBytes, err)
		}
	}
}
