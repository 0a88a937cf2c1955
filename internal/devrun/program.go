package devrun

import (
	"context"
	"errors"
	"fmt"
	"os"
	"runtime"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/goweaver/weaver/internal/group"
	"github.com/goweaver/weaver/internal/procgroup"
)

// program is a process group that is running or has ended.
type program struct {
	process *procgroup.Process
	began   time.Time
	gone    atomic.Bool // the whole group has ended

	done chan struct{} // closed after the group has ended and its output is printed
	// Set before done is closed.
	state *os.ProcessState
	err   error // of waiting
	took  time.Duration
}

// start starts a program and prints its output under the name source.
func start(g *group.Group, out *Output, source, dir string, env, argv []string) (*program, error) {
	path, err := find(dir, argv[0])
	if err != nil {
		return nil, err
	}
	r, w, err := os.Pipe() // one pipe for both streams keeps their order
	if err != nil {
		return nil, fmt.Errorf("start %s: %w", argv[0], err)
	}
	p := &program{done: make(chan struct{})}
	started := make(chan error, 1)
	g.Go(source, func(context.Context) error {
		runtime.LockOSThread() // see procgroup.Start
		process, err := procgroup.Start(procgroup.Program{Path: path, Argv: argv, Env: env, Dir: dir, Stdout: w, Stderr: w})
		closing := w.Close()
		if err = errors.Join(err, closing); process == nil {
			runtime.UnlockOSThread()
			started <- errors.Join(err, r.Close())
			return nil
		}
		p.process, p.began = process, time.Now()
		read := make(chan struct{})
		g.Go(source+" output", func(context.Context) error {
			defer close(read)
			return p.read(r, &splitter{out: out, source: source})
		})
		started <- nil
		process.Await()
		runtime.UnlockOSThread()
		p.state, p.err = process.Clear()
		p.took = time.Since(p.began)
		p.leave(r)
		<-read
		close(p.done)
		return nil
	})
	if err := <-started; err != nil {
		return nil, fmt.Errorf("start %s: %w", argv[0], err)
	}
	return p, nil
}

// Limits for reading after the group has ended. If the pipe is still open then, a process with its own session holds
// it. All output of the group is already in the pipe.
const (
	lateWait  = 500 * time.Millisecond // time without output
	lateBytes = 1 << 20                // capacity of a pipe
)

// leave marks the group as gone and lets read finish.
func (p *program) leave(r *os.File) {
	p.gone.Store(true)
	if r.SetReadDeadline(time.Now().Add(lateWait)) != nil { // Windows
		time.AfterFunc(lateWait, func() { _ = r.Close() })
	}
}

// read prints the program's output until its end, and closes r.
func (p *program) read(r *os.File, lines *splitter) error {
	defer func() { _ = r.Close() }() // r was only read
	defer lines.end()
	buf := make([]byte, 32<<10)
	for waited, late := time.Duration(0), 0; waited < lateWait && late < lateBytes; {
		began := time.Now()
		n, err := r.Read(buf)
		if p.gone.Load() {
			// Time during which the terminal blocked does not count.
			waited, late = waited+time.Since(began), late+n
			_ = r.SetReadDeadline(time.Now().Add(lateWait - waited))
		}
		lines.write(buf[:n])
		if err != nil {
			return nil // the end, or no output for lateWait
		}
	}
	return nil
}

// how describes the end of a program.
func (p *program) how() string {
	if p.err != nil {
		return fmt.Sprintf("ended: %v", p.err)
	}
	if s, ok := p.state.Sys().(syscall.WaitStatus); ok && s.Signaled() {
		return fmt.Sprintf("was ended by the signal %q", s.Signal())
	}
	return fmt.Sprintf("exited with code %d", p.state.ExitCode())
}

func (p *program) succeeded() bool { return p.err == nil && p.state.Success() }
