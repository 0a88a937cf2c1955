package builtin

import (
	"context"
	"time"
)

// RunCommand is the handler of Run.
var RunCommand = runner{}.run

// PipeGrace is the time that a pipe may stay open after the command ends.
const PipeGrace = pipeGrace

// SetCancelGrace sets the time for a cancelled command to end. It is for TestMain:
// commands read it without a lock.
func SetCancelGrace(d time.Duration) { cancelGrace = d }

// Fit returns the output of a command with the given streams.
func Fit(stdout, stderr string, limit int) RunOutput {
	o := &output{}
	keep := min(max(limit, minTail), maxTail)
	o.stdout.tail.max, o.stderr.tail.max = keep, keep
	o.stdout.tail.write([]byte(stdout))
	o.stderr.tail.write([]byte(stderr))
	return o.result(limit)
}

// Tail returns the n bytes kept of a stream written in pieces.
func Tail(n int, pieces []string) string {
	t := tail{max: n}
	for _, p := range pieces {
		t.write([]byte(p))
	}
	return t.text()
}

// Lines returns the number of lines of a stream written in pieces, and the last
// complete line that is not blank.
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

// RunWith returns the handler of Run for a Config.
func RunWith(cfg Config) func(context.Context, RunInput) (RunOutput, error) {
	return runner{cfg.Logs}.run
}
