package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/goweaver/weaver"
)

// step is weaver.Step with a witness: each start of fn leaves a line in
// steps.log. Your programs call weaver.Step.
func step[T any](ctx context.Context, w *worker, name string, fn func(ctx context.Context) (T, error)) (T, error) {
	return weaver.Step(ctx, name, func(ctx context.Context) (T, error) {
		if err := w.steps.started(ctx, name); err != nil {
			var none T
			return none, err
		}
		return fn(ctx)
	})
}

// stepLog is the file steps.log: one line per start of a step's function,
// written before anything else happens in it.
//
//	2026-01-02T15:04:05.123456789Z 4242 count/net/http parse 01KABC…
//
// The task's id at the end tells the same work of several jobs apart.
type stepLog struct{ file *os.File }

// start is one line of it.
type start struct {
	at   time.Time
	pid  int
	node string // the task's name in its job
	step string
	task weaver.TaskID
}

func stepLogName(dir string) string { return filepath.Join(dir, "steps.log") }

func openStepLog(dir string) (*stepLog, error) {
	f, err := os.OpenFile(stepLogName(dir), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
	if err != nil {
		return nil, err
	}
	return &stepLog{file: f}, nil
}

// started appends a line. One write to a file opened for appending is not torn
// by a kill, and not mixed with the lines of another process.
func (l *stepLog) started(ctx context.Context, step string) error {
	cur := weaver.Current(ctx)
	line := fmt.Sprintf("%s %d %s %s %s\n", time.Now().UTC().Format(time.RFC3339Nano), os.Getpid(), cur.Node, step, cur.TaskID)
	_, err := l.file.WriteString(line)
	return err
}

func (l *stepLog) close() { _ = l.file.Close() } // nothing is buffered

// readStepLog reads the starts of all processes, in the order of the file.
func readStepLog(dir string) ([]start, error) {
	f, err := os.Open(stepLogName(dir))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }() // it was only read
	var starts []start
	lines := bufio.NewScanner(f)
	for lines.Scan() {
		s, err := parseStart(lines.Text())
		if err != nil {
			return nil, fmt.Errorf("%s:%d: %w", f.Name(), len(starts)+1, err)
		}
		starts = append(starts, s)
	}
	return starts, lines.Err()
}

func parseStart(line string) (s start, err error) {
	fields := strings.Split(line, " ")
	if len(fields) != 5 {
		return s, fmt.Errorf("%q has %d words, want time, pid, task, step and task id", line, len(fields))
	}
	s.node, s.step = fields[2], fields[3]
	var errAt, errPid, errTask error
	s.at, errAt = time.Parse(time.RFC3339Nano, fields[0])
	s.pid, errPid = strconv.Atoi(fields[1])
	s.task, errTask = weaver.ParseID(fields[4])
	return s, errors.Join(errAt, errPid, errTask)
}
