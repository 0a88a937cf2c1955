package cli

import (
	"io"
	"log/slog"

	"github.com/goweaver/weaver"
	"github.com/goweaver/weaver/builtin"
	"github.com/goweaver/weaver/internal/attemptlog"
	"github.com/goweaver/weaver/task"
)

// keptLogs is where a run or a worker keeps the output of its commands: in a
// folder beside the store or of the user, or nowhere when there is none.
type keptLogs struct {
	folder *attemptlog.Folder // nil until open
	seals  *logSealer         // nil: they are not sealed
}

// open is called before the engine runs. The first error of writing is logged.
func (k *keptLogs) open(s *session, seals *logSealer, log *slog.Logger) {
	k.seals = seals
	dir := s.logFolder()
	if dir == "" {
		return
	}
	k.folder = s.logsIn(dir, func(err error) {
		log.Warn("not all output of commands is kept, only its end in the store: check the permissions and the space of the folder", "error", err)
	})
}

// close is called when the engine has ended.
func (k *keptLogs) close() {
	if k.folder != nil {
		k.folder.Close()
	}
}

// writer is what package builtin asks for when a command writes something.
func (k *keptLogs) writer(info weaver.CurrentInfo) io.WriteCloser {
	if k.folder == nil {
		return nil
	}
	a := attemptlog.Attempt{Job: info.JobID, Task: info.TaskID, No: info.AttemptNo}
	return k.seals.writer(a, k.folder.Writer(a))
}

// has reports whether there is a log of the last attempt of a task.
func (k *keptLogs) has(t *task.Task) bool {
	if k.folder == nil || t.Type != builtin.Run.Name() {
		return false
	}
	r, err := k.folder.Open(lastAttempt(t))
	if err != nil {
		return false
	}
	_ = r.Close() // nothing was read
	return true
}

func lastAttempt(t *task.Task) attemptlog.Attempt {
	return attemptlog.Attempt{Job: t.JobID, Task: t.ID, No: t.AttemptNo}
}
