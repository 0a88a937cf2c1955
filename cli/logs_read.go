package cli

import (
	"cmp"
	"context"
	"errors"
	"io"
	"io/fs"
	"slices"
	"time"

	"github.com/goweaver/weaver/internal/attemptlog"
	"github.com/goweaver/weaver/task"
)

// followEvery is the poll interval of `logs -f`.
const followEvery = 200 * time.Millisecond

// taskLog is the position in the logs of a task.
type taskLog struct {
	task  *task.Task
	no    int           // the attempt
	log   io.ReadCloser // nil if not opened yet, or closed at its end
	over  bool          // the attempt has ended and is shown completely
	found bool          // it has a log
}

// show prints the output of a task since the last call.
func (v *logsView) show(t *task.Task) error {
	if t.AttemptNo == 0 {
		return nil
	}
	l := v.logs[t.ID]
	if l == nil {
		l = &taskLog{no: cmp.Or(v.flags.Attempt, t.AttemptNo)}
		v.logs[t.ID] = l
	}
	l.task = t
	for {
		if err := v.read(t, l); err != nil {
			return err
		}
		if v.flags.Attempt > 0 || l.no >= t.AttemptNo {
			return nil
		}
		l.no, l.over, l.found = l.no+1, false, false // it was tried again meanwhile
	}
}

// read prints the available output of an attempt; all of it if the attempt has ended.
func (v *logsView) read(t *task.Task, l *taskLog) (err error) {
	if l.over {
		return nil
	}
	if l.log == nil {
		l.log, err = v.open(attemptlog.Attempt{Job: t.JobID, Task: t.ID, No: l.no})
		l.found = err == nil
	}
	if l.found {
		err = v.copy(t, l)
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if attemptEnded(t, l.no) {
		l.over = true
		return errors.Join(v.out.end(t, l.no), l.close())
	}
	return nil
}

// open opens the log of an attempt. It returns fs.ErrNotExist if there is no log.
func (v *logsView) open(a attemptlog.Attempt) (io.ReadCloser, error) {
	r, err := v.folder.Open(a)
	if err != nil {
		return nil, err
	}
	return v.seals.reader(a, r), nil
}

func (v *logsView) copy(t *task.Task, l *taskLog) error {
	buf := make([]byte, 32<<10)
	for {
		n, err := l.log.Read(buf)
		if n > 0 {
			if err := v.out.block(t, l.no, buf[:n]); err != nil {
				return err
			}
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

func (l *taskLog) close() error {
	if l.log == nil {
		return nil
	}
	log := l.log
	l.log = nil
	return log.Close()
}

// close prints the unfinished lines of running commands.
func (v *logsView) close() error {
	var errs []error
	for _, l := range v.logs {
		if l.log != nil {
			errs = append(errs, v.out.end(l.task, l.no), l.close())
		}
	}
	return errors.Join(append(errs, v.out.flush())...)
}

// byStart sorts tasks by start time.
func byStart(tasks []task.Task) {
	slices.SortStableFunc(tasks, func(a, b task.Task) int { return a.StartedAt.Compare(b.StartedAt) })
}

// pause waits for d or the end of ctx.
func pause(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-timer.C:
	}
}
