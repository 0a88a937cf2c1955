// Command agent answers a question like a language model agent, with a scripted model in place of a real one, so that
// it needs no network:
//
//	go run ./examples/agent
//
// It makes a plan and starts a task for each of its topics. It streams the model's output, pays for it from a budget,
// and repairs the task whose input the model got wrong. Then it waits for a person. It prints how to approve, and how
// to inspect all this with `weaver why`. Kill it at any moment: the same command continues. Run it with
// --budget 900 to see a budget that runs out. State and result are in ./weaver-agent.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"log"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/goweaver/weaver"
	"github.com/goweaver/weaver/store/sqlite"
	"github.com/goweaver/weaver/task"
	"github.com/goweaver/weaver/task/event"
)

// The contract: a question, the topics that a model finds in it, and a person's approval.
var (
	Answer   = weaver.Define[string, string]("example.agent.answer.v1", weaver.NoRetry())
	Research = weaver.Define[Topic, string]("example.agent.research.v1", weaver.NoRetry())

	Approved = weaver.DefineSignal[string]("approved") // the name of the person
)

// Topic is the input of one piece of research.
type Topic struct {
	Name  string `json:"name"`
	Words int    `json:"words"`
}

// Validate refuses topics that no model could answer.
func (t Topic) Validate() error {
	if t.Name == "" || t.Words < 1 {
		return fmt.Errorf("a topic has a name and 1 word or more, not %q and %d", t.Name, t.Words)
	}
	return nil
}

type program struct {
	dir   string
	model model
}

// answer plans and starts children for the plan, with inputs as the model wrote them. It then runs again and waits
// for a person.
func (p program) answer(ctx context.Context, question string) (string, error) {
	plan, err := weaver.Stream(ctx, "plan", func(ctx context.Context, emit func(any) error) ([]json.RawMessage, error) {
		said, err := p.model.ask(ctx, emit, "plan: "+question)
		var topics []json.RawMessage
		return topics, errors.Join(err, json.Unmarshal([]byte(said), &topics))
	})
	if err != nil {
		return "", err
	}
	children, err := weaver.Children(ctx)
	if err != nil {
		return "", err
	}
	if len(children) == 0 {
		fmt.Println("planned", len(plan), "topics")
		drafts := make([]weaver.Draft, len(plan))
		for i, topic := range plan {
			drafts[i] = weaver.NewDraft(Research.Name(), topic) // unchecked here: Research checks it
		}
		return "", weaver.Decompose(weaver.JoinRerun, drafts...)
	}
	var found []string
	for _, child := range children {
		text, err := Research.OutputOf(child)
		if err != nil {
			return "", err
		}
		found = append(found, text)
	}
	fmt.Println("researched", len(found), "topics")
	who, ok, err := Approved.Wait(ctx, "approval", 48*time.Hour)
	if err == nil && !ok {
		err = weaver.Permanent(errors.New("nobody approved the answer within two days"))
	}
	if err != nil {
		return "", err
	}
	fmt.Println("approved by", who)
	text := fmt.Sprintf("%s %s (approved by %s)\n", question, strings.Join(found, " "), who)
	return text, weaver.Do(ctx, "publish", func(context.Context) error { return p.write("ANSWER", text) })
}

func (p program) research(ctx context.Context, t Topic) (string, error) {
	return weaver.Stream(ctx, "think", func(ctx context.Context, emit func(any) error) (string, error) {
		return p.model.ask(ctx, emit, "research: "+t.Name)
	})
}

// repair asks the model to write a topic again. The hint states the problem, its place and the expected form.
func (p program) repair(ctx context.Context, r weaver.RepairRequest) (json.RawMessage, error) {
	fmt.Println("repairing", string(r.Raw))
	said, err := p.model.ask(ctx, nil, fmt.Sprintf("repair: %s\n%s", r.Raw, r.Hint))
	return json.RawMessage(said), err
}

// write replaces a file atomically: an interrupted write is repeated.
func (p program) write(name, text string) error {
	temporary := filepath.Join(p.dir, fmt.Sprintf(".%s.%d", name, os.Getpid()))
	if err := os.WriteFile(temporary, []byte(text), 0o644); err != nil {
		return err
	}
	return os.Rename(temporary, filepath.Join(p.dir, name))
}

func main() {
	var p program
	flag.StringVar(&p.dir, "dir", "weaver-agent", "`folder` for the database and the result")
	flag.DurationVar(&p.model.pace, "pace", 50*time.Millisecond, "time per token of the model")
	budget := flag.Int64("budget", 100_000, "maximum cost of all tokens in `micro-units`")
	question := flag.String("question", "Why is the sea salty?", "question to answer")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop)
	if err := p.run(ctx, *question, *budget); err != nil {
		log.Fatalf("agent: %v", err)
	}
}

// run works on the job of this question until it has ended; the job is submitted once.
func (p program) run(ctx context.Context, question string, budget int64) (err error) {
	if err := os.MkdirAll(p.dir, 0o755); err != nil {
		return err
	}
	db, err := sqlite.Open(ctx, filepath.Join(p.dir, "weaver.db"))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	eng, err := weaver.New(db, weaver.Config{
		Handlers:    []weaver.Handler{Answer.Handler(p.answer), Research.Handler(p.research, weaver.Repair(p.repair))},
		CrashBudget: -1, // kills are expected here
	})
	if err := errors.Join(err, db.Migrate(ctx)); err != nil {
		return err
	}
	weaver.On(eng, func(ev event.StreamChunk) { fmt.Printf("%s: %s: %v\n", ev.Node, ev.Stream, ev.Data) })
	weaver.On(eng, func(ev event.TaskSuspended) { fmt.Printf("%s: waits (%s)\n", ev.Node, ev.Waiting) })
	job := weaver.NewJob("agent", weaver.Budget{MaxCost: budget})
	job.Add("answer", Answer.With(question))
	h, err := eng.Submit(ctx, job, weaver.IdempotencyKey(question))
	if err != nil {
		return err
	}
	fmt.Printf("pid %d works on job %s: kill it at any moment (kill -9 %[1]d); the same command continues\n", os.Getpid(), h.ID())
	command := "go run ./cmd/weaver --store sqlite:" + db.Path()
	fmt.Printf("approve with: %s task signal %s/answer %s '\"ann\"'\n", command, h.ID(), Approved.Name())
	fmt.Printf("see how it stands: %s why %s/answer\n", command, h.ID())
	work, done := context.WithCancel(ctx)
	ended := make(chan error, 1)
	go func() {
		defer done()
		ended <- eng.Run(work)
	}()
	res, err := h.Wait(work)
	done()
	if err == nil && res.State != task.JobSucceeded {
		err = fmt.Errorf("the job %s", res.State)
	}
	return errors.Join(err, <-ended)
}
