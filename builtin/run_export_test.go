package builtin

import (
	"context"
	"time"
)

// RunCommand is the handler of Run.
var RunCommand = runner{}.run

// PipeGrace is how long a pipe may stay open when the command is gone.
const PipeGrace = pipeGrace

// SetCancelGrace changes how long a cancelled command may go on. It is for
// TestMain: commands read it without a lock.
func SetCancelGrace(d time.Duration) { cancelGrace = d }

// Fit returns the output of a command that wrote these.
func Fit(stdout, stderr string, limit int) RunOutput {
	o := &output{}
	keep := min(max(limit, minTail), maxTail)
	o.stdout.tail.max, o.stderr.tail.max = keep, keep
	o.stdout.tail.write([]byte(stdout))
	o.stderr.tail.write([]byte(stderr))
	return o.result(limit)
}

// Tail returns what is kept, in n bytes, of a stream that is written in pieces.
func Tail(n int, pieces []string) string {
	t := tail{max: n}
	for _, p := range pieces {
		t.write([]byte(p))
	}
	return t.text()
}

// Lines returns how many lines a stream has that is written in pieces, and
// the last one that is complete and not blank.
func Lines(pieces []string) (n int, last string) {
	var p partialLine
	for _, piece := range pieces {
		ends, line := p.add([]byte(piece))
		n += ends
		if len(line) > 0 {
			last = string(line)
		}
	}
	return n, last
}

// RunWith is the handler of Run that a Config makes.
func RunWith(cfg Config) func(context.Context, RunInput) (RunOutput, error) {
	return runner{cfg.Logs}.run
}
