package cli

import (
	"io"
	"log/slog"

	"github.com/goweaver/weaver"
	"github.com/goweaver/weaver/builtin"
	"github.com/goweaver/weaver/internal/attemptlog"
	"github.com/goweaver/weaver/task"
)

// keptLogs stores the command output of a run or worker in a folder next to the store or of the user. It stores
// nothing if there is no such folder.
type keptLogs struct {
	folder *attemptlog.Folder // nil until open
	seals  *logSealer         // nil: no encryption
}

// open must be called before the engine runs. The first write error is logged.
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

// close must be called after the engine has ended.
func (k *keptLogs) close() {
	if k.folder != nil {
		k.folder.Close()
	}
}

// writer is the callback of package builtin for the output of a command.
func (k *keptLogs) writer(info weaver.CurrentInfo) io.WriteCloser {
	if k.folder == nil {
		return nil
	}
	a := attemptlog.Attempt{Job: info.JobID, Task: info.TaskID, No: info.AttemptNo}
	return k.seals.writer(a, k.folder.Writer(a))
}

// has reports whether the last attempt of a task has a log.
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
