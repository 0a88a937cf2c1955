package pipeline_test

import (
	"errors"
	"fmt"

	"github.com/goweaver/weaver/internal/pipeline"
)

func ExampleParse() {
	src := []byte(`name: nightly
tasks:
  fetch: {run: curl -sfO https://example.com/data.csv}
  clean:
    run: [python3, clean.py]
    neds: [fetch]
    timeout: 10 minutes
`)
	_, err := pipeline.Parse(src)
	var mistakes *pipeline.Error
	if errors.As(err, &mistakes) {
		fmt.Print(mistakes.Format("nightly.yaml", src))
	}
	// Output:
	// nightly.yaml:6:5: unknown key "neds" of task "clean"
	//     6 |     neds: [fetch]
	//       |     ^^^^
	//   did you mean "needs"?
	// nightly.yaml:7:14: "timeout" of task "clean" is "10 minutes", which is not a duration
	//     7 |     timeout: 10 minutes
	//       |              ^^^^^^^^^^
	//   write 10m
}
