package main

import (
	"bytes"
	"strings"
	"testing"
)

// The example prints the output promised by its comment.
func TestExample(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	if err := run(t.Context(), &out); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]int{
		`"Name": "enqueue acme.billing.charge.v1"`: 1, `"Name": "run acme.billing.charge.v1"`: 3, `"Name": "step pay"`: 2,
		`"Name": "run acme.mail.send.v1"`: 1, `"previous attempt"`: 2, `"Name": "weaver.attempt.duration"`: 1,
	} {
		if got := strings.Count(out.String(), name); got != want {
			t.Errorf("%s is there %d times, want %d", name, got, want)
		}
	}
	if !strings.Contains(out.String(), "trace_id=") {
		t.Error("no line of the log names its trace")
	}
}
