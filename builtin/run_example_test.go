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

// A command as a task.
func ExampleRunInput() {
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
	h, err := builtin.Run.Enqueue(ctx, eng, builtin.RunInput{
		Shell: `echo "hello $NAME"; echo "a warning" >&2`,
		Env:   map[string]string{"NAME": "world"},
	})
	if err != nil {
		log.Fatal(err)
	}
	if err := eng.RunUntilIdle(ctx); err != nil {
		log.Fatal(err)
	}
	out, err := h.Wait(ctx)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Printf("%q %q\n", out.Stdout, out.Stderr)
	// Output: "hello world\n" "a warning\n"
}
