package cli

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/goweaver/weaver"
	"github.com/goweaver/weaver/internal/pipeline"
	"github.com/goweaver/weaver/internal/text"
	"github.com/goweaver/weaver/schema"
	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/task"
)

type submitCmd struct {
	What             string `arg:"" name:"file|type" help:"Pipeline file (.yaml or .yml), or a task type."`
	Input            string `arg:"" optional:"" name:"json" help:"Input of a task, - for the standard input; default null."`
	ForceUnknownType bool   `help:"Also store tasks of unknown types, with unchecked input."`
	paramFlags
	pipelineFlags
	taskFlags
}

// taskFlags are the options of a single task; nil means not given.
type taskFlags struct {
	IdempotencyKey *string        `placeholder:"KEY" group:"task" help:"Idempotency key: the task is enqueued once."`
	ConcurrencyKey *string        `placeholder:"KEY" group:"task" help:"Concurrency key: tasks with this key run one at a time."`
	Queue          *string        `placeholder:"NAME" group:"task" help:"Queue; default: default."`
	Priority       *int           `placeholder:"N" group:"task" help:"Priority, 1 (first) to 9 (last); default 5."`
	Delay          *time.Duration `placeholder:"DURATION" group:"task" help:"Minimum delay before the start."`
	MaxAttempts    *int           `placeholder:"N" group:"task" help:"Maximum number of attempts; default 5."`
	Timeout        *time.Duration `placeholder:"DURATION" group:"task" help:"Time limit of one attempt; default: no limit."`
	Label          []string       `sep:"none" placeholder:"KEY=VALUE" group:"task" help:"Label for filters; repeatable."`
	FairBy         *string        `placeholder:"LABEL" group:"task" help:"Label by whose values tasks take turns."`
	RateLimit      *string        `placeholder:"KEY=N/PERIOD[,BURST]" group:"task" help:"How many tasks with the key start in a period: partner=10/s,5."`
}

// submitted is the JSON output of submit.
type submitted struct {
	JobID       string `json:"job_id,omitempty"`
	TaskID      string `json:"task_id,omitempty"`
	Name        string `json:"name,omitempty"`      // name of the job
	Type        string `json:"task_type,omitempty"` // type of the task
	Disposition string `json:"disposition"`         // created or existing; of a schedule also changed
	Cancelled   string `json:"cancelled_job_id,omitempty"`
	Store       string `json:"store"` // the path of its file

	Schedule *weaver.ScheduleInfo `json:"schedule,omitempty"` // of a file with a schedule

	Params json.RawMessage `json:"params,omitempty"` // of the pipeline, by name

	Warnings []fileMistake `json:"warnings,omitempty"` // about the file
}

// Help is shown by submit --help.
func (submitCmd) Help() string {
	return "Stores a job of a pipeline or a single task; a worker runs it. A file with a schedule is stored as a schedule of its name, which a worker fires; submitted again, it is changed. An unknown type is one that neither this program knows nor a " +
		"worker of the store: with --force-unknown-type its tasks get default options. `weaver run --help` describes --resume, " +
		"--fresh, --update, --from and --only."
}

// Run implements the verb.
func (c *submitCmd) Run(ctx context.Context, s *session) error {
	if task.CheckTypeName(c.What) == nil {
		return c.submitTask(ctx, s)
	}
	if ext := strings.ToLower(c.What); !strings.HasSuffix(ext, ".yaml") && !strings.HasSuffix(ext, ".yml") {
		return badInput("Give a file such as nightly.yaml, or a task type such as acme.mail.send.v1.", "submit %q: this is neither a .yaml file nor the name of a task type", c.What)
	}
	switch {
	case c.Input != "":
		return badInput("", "submit %s: a pipeline takes no further input, but %q was given", c.What, c.Input)
	case !c.isZero():
		return badInput("Write them into the file.", "submit %s: the flags of a single task do not apply to a pipeline", c.What)
	}
	params, err := c.values()
	if err != nil {
		return err
	}
	unknown := s.unknownTypes(ctx, c.ForceUnknownType)
	types := pipeline.Types{Known: s.types(), Unknown: unknown.problem}
	file, err := s.readPipeline(c.What, fileInputs{types, params, c.Update && len(params) == 0, c.IncludeDir})
	if err = cmp.Or(unknown.err, err); err != nil {
		return err
	}
	s.useStoreOf(file)
	s.warn(file)
	if file.Schedule != nil {
		return c.submitSchedule(ctx, s, file)
	}
	return s.withProducer(ctx, func(client *weaver.Client) error {
		st, err := s.begin(ctx, client, file, "submit", c.pipelineFlags)
		if err != nil {
			return err
		}
		if st.id == (weaver.JobID{}) {
			return s.nothing(file, st)
		}
		got := submitted{
			JobID: st.id.String(), Name: file.Name, Disposition: "created",
			Store: s.storePlace(), Warnings: fileMistakes(file.Warnings.Problems),
			Params: json.RawMessage(file.ParamsJSON()),
		}
		if st.resumed {
			got.Disposition = "existing"
		}
		if st.ended != nil {
			got.Cancelled = st.ended.ID.String()
		}
		if s.json() {
			return s.writeJSON(got)
		}
		if st.resumed {
			s.printf("%s: job %s is unfinished and goes on; nothing was added.\n", title(file.Name, file.ParamsJSON()), st.id)
		} else {
			s.printf("%s: job %s, %s.\n", title(file.Name, file.ParamsJSON()), st.id, text.Plural(len(file.Tasks), "task"))
		}
		if got.Cancelled != "" {
			s.printf("The unfinished job %s was cancelled.\n", got.Cancelled)
		}
		worker := []string{"worker"}
		if len(s.app.Handlers) > 0 {
			worker = append(worker, "--handlers", "app,builtin")
		}
		s.printf("A worker runs it: `%s`; `%s` shows it.\n", s.command(worker...), s.command("job", "show", got.JobID))
		return nil
	})
}

// withProducer is withWork with a client.
func (s *session) withProducer(ctx context.Context, fn func(*weaver.Client) error) error {
	return s.withWork(ctx, func(st store.Store) error {
		client, err := s.newClient(st, true)
		if err == nil && !s.bucketAway() {
			err = client.CheckBucket(ctx)
		}
		if err != nil {
			return err
		}
		err = fn(client)
		s.warnOfHints()
		return err
	})
}

func (f *taskFlags) isZero() bool {
	return len(f.Label) == 0 && f.IdempotencyKey == nil && f.ConcurrencyKey == nil && f.Queue == nil &&
		f.Priority == nil && f.Delay == nil && f.MaxAttempts == nil && f.Timeout == nil && f.FairBy == nil && f.RateLimit == nil
}

func (f *taskFlags) options() ([]weaver.EnqueueOption, error) {
	var opts []weaver.EnqueueOption
	if f.IdempotencyKey != nil {
		opts = append(opts, weaver.IdempotencyKey(*f.IdempotencyKey))
	}
	if f.ConcurrencyKey != nil {
		opts = append(opts, weaver.ConcurrencyKey(*f.ConcurrencyKey))
	}
	if f.Queue != nil {
		opts = append(opts, weaver.Queue(*f.Queue))
	}
	if f.Priority != nil {
		opts = append(opts, weaver.Priority(*f.Priority))
	}
	if f.Delay != nil {
		opts = append(opts, weaver.Delay(*f.Delay))
	}
	if f.MaxAttempts != nil {
		opts = append(opts, weaver.MaxAttempts(*f.MaxAttempts))
	}
	if f.Timeout != nil {
		opts = append(opts, weaver.Timeout(*f.Timeout))
	}
	if f.FairBy != nil {
		opts = append(opts, weaver.FairBy(*f.FairBy))
	}
	if f.RateLimit != nil {
		limit, err := parseRateLimit(*f.RateLimit)
		if err != nil {
			return nil, badInput("For example --rate-limit partner=10/s or, with a burst, --rate-limit partner=600/1m,5.", "--rate-limit %q: %w", *f.RateLimit, err)
		}
		opts = append(opts, limit)
	}
	labels, err := parseLabels(f.Label)
	for k, v := range labels {
		opts = append(opts, weaver.Label(k, v))
	}
	return opts, err
}

func (c *submitCmd) submitTask(ctx context.Context, s *session) error {
	if len(c.Param) > 0 {
		return badInput("Write the input as JSON behind the type.", "-p %s: a single task has no params", c.Param[0])
	}
	if c.Resume || c.Fresh {
		return badInput("", "--resume and --fresh are about pipelines, not about a single task")
	}
	input, err := c.readInput(s.stdin)
	if err != nil {
		return err
	}
	opts, err := c.options()
	if err != nil {
		return err
	}
	draft, err := c.draft(ctx, s, input, opts)
	if err != nil {
		return err
	}
	return s.withProducer(ctx, func(client *weaver.Client) error {
		got, err := client.EnqueueTasks(ctx, draft)
		switch {
		case errors.Is(err, weaver.ErrInvalidInput), errors.Is(err, weaver.ErrInvalidOption), errors.Is(err, weaver.ErrTooLarge):
			return badInput("", "submit: %w", err)
		case err != nil:
			return err
		}
		res := submitted{TaskID: got[0].ID.String(), Type: c.What, Disposition: string(got[0].Disposition), Store: s.storePlace()}
		if s.json() {
			return s.writeJSON(res)
		}
		if res.Disposition == "existing" {
			s.printf("Task %s has this idempotency key already; nothing was added.\n", res.TaskID)
			return nil
		}
		s.printf("Task %s of type %s.\n", res.TaskID, res.Type)
		return nil
	})
}

// maxInput limits the bytes read from the standard input. The limit of the store is far lower and has a better
// message.
const maxInput = 8 << 20

func (c *submitCmd) readInput(stdin io.Reader) (json.RawMessage, error) {
	text := c.Input
	switch text {
	case "":
		return json.RawMessage("null"), nil
	case "-":
		raw, err := io.ReadAll(io.LimitReader(stdin, maxInput+1))
		if err != nil {
			return nil, fmt.Errorf("read the input: %w", err)
		}
		if len(raw) > maxInput {
			return nil, badInput("Pass a reference to where the data is kept.", "the input is larger than %d MiB", maxInput>>20)
		}
		text = string(raw)
	}
	raw := bytes.TrimSpace([]byte(text))
	var probe json.RawMessage // decoding into an any would fail for a number that no float64 can hold
	if err := json.Unmarshal(raw, &probe); err != nil {
		return nil, badInput(`Quote it for the shell: submit `+c.What+` '{"key": "value"}'. Text needs quotes of its own: '"yes"'.`, "the input is not JSON: %w", err)
	}
	return raw, nil
}

// draft builds the task. If this program knows the type, the task gets the options of the type and the type checks
// its input.
func (c *submitCmd) draft(ctx context.Context, s *session, input json.RawMessage, opts []weaver.EnqueueOption) (weaver.Draft, error) {
	if h, known := s.types()[c.What]; known {
		return h.Draft(input, opts...), nil
	}
	unknown := s.unknownTypes(ctx, c.ForceUnknownType)
	info := unknown.info(c.What)
	problem, hint := "", ""
	if info.Name == "" && unknown.err == nil {
		problem, hint = unknown.problem(c.What)
	}
	switch {
	case unknown.err != nil:
		return weaver.Draft{}, unknown.err
	case problem != "":
		return weaver.Draft{}, badInput(sentence(hint), "submit: %s is a task type %s", c.What, problem)
	case info.Name != "":
		return announcedDraft(info, input, opts)
	}
	return weaver.NewDraft(c.What, input, opts...), nil
}

// announcedDraft builds a task of a type that workers announced, with the announced options. It checks the input
// against the schema of the type.
func announcedDraft(info store.AnnouncedType, input json.RawMessage, opts []weaver.EnqueueOption) (weaver.Draft, error) {
	inputs, err := schema.Compile(info.Input)
	if err != nil {
		return weaver.Draft{}, badInput("Submit it with --force-unknown-type, which checks nothing.", "submit: the schema that %s announced for %s cannot be used: %w", info.AnnouncedBy, info.Name, err)
	}
	if err := inputs.Validate(input); err != nil {
		return weaver.Draft{}, badInput("", "submit: the input does not fit the type %s that its workers announced: %w", info.Name, err)
	}
	return schema.DraftOf(info, input, opts...), nil
}

// sentence turns a hint into a sentence of advice.
func sentence(hint string) string {
	if hint == "" {
		return ""
	}
	return strings.ToUpper(hint[:1]) + hint[1:] + "."
}
