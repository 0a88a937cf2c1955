//go:build unix && !aix

package builtin_test

import (
	"context"
	"fmt"
	"log"

	"github.com/goweaver/weaver"
	"github.com/goweaver/weaver/builtin"
	"github.com/goweaver/weaver/store/sqlite"
)

// The output of one command as an argument of another.
func ExampleRunInput_templates() {
	ctx := context.Background()
	db, err := sqlite.OpenMemory(ctx)
	if err != nil {
		log.Fatal(err)
	}
	defer db.Close()
	if err := db.Migrate(ctx); err != nil {
		log.Fatal(err)
	}
	eng, err := weaver.New(db, weaver.Config{Handlers: builtin.Handlers(builtin.Config{})})
	if err != nil {
		log.Fatal(err)
	}
	j := weaver.NewJob("report")
	day := j.Add("day", builtin.Run.With(builtin.RunInput{Argv: []string{"echo", "2026-11-22"}}))
	j.Add("report", builtin.Run.With(builtin.RunInput{
		Argv:      []string{"echo", "the report of {{.tasks.day.stdout}}"},
		Templates: true,
	}), weaver.Needs(day))
	h, err := eng.Submit(ctx, j)
	if err != nil {
		log.Fatal(err)
	}
	if err := eng.RunUntilIdle(ctx); err != nil {
		log.Fatal(err)
	}
	out, err := builtin.Run.JobOutput(ctx, eng, h.ID(), "report")
	if err != nil {
		log.Fatal(err)
	}
	fmt.Print(out.Stdout)
	// Output: the report of 2026-11-22
}
