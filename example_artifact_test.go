package weaver_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"strings"

	"github.com/goweaver/weaver"
	"github.com/goweaver/weaver/blob"
	"github.com/goweaver/weaver/store/sqlite"
)

// Report writes a file, which is stored as an artifact.
var Report = weaver.Define[string, weaver.ArtifactRef]("acme.reports.write.v1")

// A handler stores a file as an artifact of its task, and the client reads it.
func ExamplePutArtifact() {
	ctx := context.Background()
	db, err := sqlite.OpenMemory(ctx)
	if err != nil {
		log.Fatal(err)
	}
	defer db.Close()
	if err := db.Migrate(ctx); err != nil {
		log.Fatal(err)
	}
	eng, err := weaver.New(db, weaver.Config{
		Bucket: blob.NewMemory(), // blob.Dir("blobs") stores it in a folder
		Handlers: []weaver.Handler{Report.Handler(func(ctx context.Context, month string) (weaver.ArtifactRef, error) {
			return weaver.PutArtifact(ctx, "reports/"+month+".csv", strings.NewReader("day,sales\n1,42\n"), weaver.ContentType("text/csv"))
		})},
	})
	if err != nil {
		log.Fatal(err)
	}
	h, err := Report.Enqueue(ctx, eng, "2026-11")
	if err != nil {
		log.Fatal(err)
	}
	if err := eng.RunUntilIdle(ctx); err != nil {
		log.Fatal(err)
	}
	ref, err := h.Wait(ctx)
	if err != nil {
		log.Fatal(err)
	}
	r, err := eng.OpenArtifact(ctx, ref)
	if err != nil {
		log.Fatal(err)
	}
	data, err := io.ReadAll(r)
	if err := errors.Join(err, r.Close()); err != nil {
		log.Fatal(err)
	}
	fmt.Printf("%s, %d bytes\n%s", ref.Name, ref.Blob.Size, data)
	// Output:
	// reports/2026-11.csv, 15 bytes
	// day,sales
	// 1,42
}
