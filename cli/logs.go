package cli

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/goweaver/weaver"
	"github.com/goweaver/weaver/builtin"
	"github.com/goweaver/weaver/internal/attemptlog"
	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/task"
)

// logsCmd is the verb logs.
type logsCmd struct {
	What    string `arg:"" name:"job[/task]" help:"Job, task, or task of a job (JOB/TASK)."`
	Follow  bool   `short:"f" help:"Follow the output until the job or task has ended."`
	Failed  bool   `help:"Only the failed tasks of a job."`
	Raw     bool   `help:"Raw bytes of a task, with terminal control sequences."`
	Attempt int    `placeholder:"N" help:"Attempt of a task; default: the last one."`
}

// Help is shown by logs --help.
func (logsCmd) Help() string {
	return "Prints the output of the last attempts of commands, stdout and stderr together. For a task of another type it prints the " +
		"lines and chunks of all attempts, if its engine stores them (weaver.PersistLogs, weaver.PersistEvents). For a task it prints " +
		"the text, for a job the lines of all tasks with their names; both without sequences that control a terminal, such as titles, " +
		"the clipboard, and cursor movement. --raw prints the unchanged bytes of a task. With -o json each piece of output is a JSON " +
		"object on its own line; its text is UTF-8, without times. The output is kept on the machine where the command ran: in the " +
		"folder STORE.logs next to the store's file, or for PostgreSQL in one folder per database below $XDG_STATE_HOME/weaver " +
		"(~/.local/state/weaver). An attempt keeps at most 64 MiB, its beginning and its end; all logs together about 1 GiB, the " +
		"newest."
}

// Run implements the verb.
func (c *logsCmd) Run(ctx context.Context, s *session) error {
	if c.Attempt < 0 {
		return badInput("", "--attempt %d: attempts are numbered from 1", c.Attempt)
	}
	return s.withClient(ctx, func(client *weaver.Client) error {
		dir := s.logFolder()
		if dir == "" {
			return badInput("Set HOME or XDG_STATE_HOME.", "there is no folder where this machine keeps the output of commands")
		}
		v := &logsView{
			session: s, flags: c, client: client, folder: s.logsIn(dir, nil),
			logs: make(map[task.ID]*taskLog),
		}
		codec, err := s.codec()
		if err != nil {
			return err
		}
		v.seals = s.sealedLogs(codec)
		if err := v.find(ctx); err != nil {
			return err
		}
		if shown, err := v.stored(ctx); shown || err != nil {
			return err
		}
		return errors.Join(v.run(ctx), v.close())
	})
}

// logsView is the state of one `logs` command: the selected tasks and the position in each of their logs.
type logsView struct {
	*session
	flags  *logsCmd
	client *weaver.Client
	folder *attemptlog.Folder
	seals  *logSealer

	job  task.ID // the job whose tasks are shown; zero: one task
	task task.ID
	logs map[task.ID]*taskLog
	out  logPrinter
}

// find resolves the task or job to show.
func (v *logsView) find(ctx context.Context) error {
	id, err := v.resolveOne(ctx, v.client, wantAny, v.flags.What)
	if err != nil {
		return err
	}
	if _, err := v.client.Get(ctx, id); err == nil {
		v.task = id
	} else if !errors.Is(err, store.ErrNotFound) {
		return err
	} else if _, err := v.client.Job(ctx, id); err == nil {
		v.job = id
	} else {
		return v.absent(ctx, v.client, "job or task", id, err)
	}
	switch {
	case v.job != (task.ID{}) && v.flags.Attempt > 0:
		return badInput(fmt.Sprintf("Name the task: `%s`.", v.command("logs", v.flags.What+"/TASK")), "--attempt is for a task, and %s is a job", v.flags.What)
	case v.job != (task.ID{}) && v.flags.Raw:
		return badInput(fmt.Sprintf("Name the task: `%s`.", v.command("logs", "--raw", v.flags.What+"/TASK")), "--raw is for a task, and %s is a job", v.flags.What)
	case v.json() && v.flags.Raw:
		return badInput("Leave one of them out.", "--raw prints bytes, and -o json text")
	case v.job == (task.ID{}) && v.flags.Failed:
		return badInput("Leave it out.", "--failed chooses among the tasks of a job, and %s is a task", v.flags.What)
	}
	v.out = v.printer()
	return nil
}

// run prints the output so far; with --follow until everything has ended.
func (v *logsView) run(ctx context.Context) error {
	for {
		began := time.Now()
		// Tasks are read before their logs: if an attempt had ended by then, its log is complete.
		tasks, ended, err := v.look(ctx)
		every := max(followEvery, 20*time.Since(began)) // a large job is polled less often
		if err == nil {
			err = v.check(ctx, tasks, ended)
		}
		for i := range tasks {
			if err == nil {
				err = v.show(&tasks[i])
			}
		}
		err = errors.Join(err, v.out.flush())
		switch {
		case ctx.Err() != nil && v.flags.Follow:
			return nil // users end --follow with an interrupt
		case err != nil:
			return err
		case ended || !v.flags.Follow:
			return v.explain(ctx, tasks)
		}
		pause(ctx, every)
	}
}

// look reads the selected tasks and reports whether no more output can follow.
func (v *logsView) look(ctx context.Context) (tasks []task.Task, ended bool, err error) {
	if v.job == (task.ID{}) {
		t, err := v.client.Get(ctx, v.task)
		if err != nil {
			return nil, false, err
		}
		over := t.State.Terminal() || v.flags.Attempt > 0 && attemptEnded(&t, v.flags.Attempt)
		return []task.Task{t}, over, nil
	}
	st, err := readJob(ctx, v.client, v.job)
	if err != nil {
		return nil, false, err
	}
	for i := range st.Tasks {
		if t := &st.Tasks[i]; (!v.flags.Failed || t.State == task.Failed) && t.Type == builtin.Run.Name() {
			tasks = append(tasks, *t)
		}
	}
	byStart(tasks)
	return tasks, st.State.Terminal(), nil
}

// check refuses a task that can have no log.
func (v *logsView) check(ctx context.Context, tasks []task.Task, ended bool) error {
	if v.job != (task.ID{}) {
		return nil
	}
	t := &tasks[0]
	switch {
	case t.Forgotten:
		return forgottenLog(t)
	case t.Type != builtin.Run.Name():
		return badInput(fmt.Sprintf("`%s` shows its result. An engine with the plug-in weaver.PersistLogs keeps the lines of its tasks.", v.command("task", "show", t.ID.String())),
			"%s is of type %s: only the output of commands (%s) is kept", taskLabel(t), t.Type, builtin.Run.Name())
	case v.flags.Attempt > t.AttemptNo && t.AttemptNo > 0:
		return badInput("", "--attempt %d: %s had %d so far", v.flags.Attempt, taskLabel(t), t.AttemptNo)
	case t.AttemptNo == 0 && (ended || !v.flags.Follow):
		said := "has not run yet"
		if ended {
			said = "never ran"
		}
		return badInput(fmt.Sprintf("`%s` tells why.", v.command("why", t.ID.String())), "%s %s: it is %s", taskLabel(t), said, t.State)
	}
	return nil
}

// attemptEnded reports whether an attempt is over.
func attemptEnded(t *task.Task, no int) bool {
	return t.AttemptNo > no || t.AttemptNo == no && t.State != task.Running
}
