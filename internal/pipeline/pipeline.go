package pipeline

import (
	"encoding/json"
	"time"

	"github.com/goweaver/weaver/builtin"
	"github.com/goweaver/weaver/internal/pipeline/value"
	"github.com/goweaver/weaver/task"
)

// Limits of a file.
const (
	MaxSize  = 1 << 20 // bytes
	MaxTasks = 10_000
	MaxName  = value.MaxName // bytes of the name of a pipeline or of a task
)

// Pipeline is a file without mistakes.
type Pipeline struct {
	Name       string
	Budget     Budget
	Retry      Retry             // of every task, field by field
	Timeout    time.Duration     // of every task
	Labels     map[string]string // of every task
	Env        map[string]string // of every command
	InheritEnv []string          // of every command
	EnvFile    string            // of every command; as written
	SecretEnv  []string          // of every command
	Dir        string            // of every command; as written
	Params     []Param           // in the order of the file
	Tasks      []Task            // in the order of the file; of a task with foreach its nodes
	Warnings   Warnings          // what can be run and is most likely not meant so

	globs []Task // tasks with foreach_glob, as the file has them
	idle  []Task // tasks that are left out: nothing that they need can fail, or they need such a task
}

// Budget limits the whole job; zero fields set no limit.
type Budget struct {
	MaxAttemptsPerTask int
	MaxTotalAttempts   int
	MaxDuration        time.Duration
	MaxCost            int // micro-units
	MaxRepairs         int
	MaxNoProgress      int
}

// Task is one task of a pipeline. Exactly one of Argv, Shell, HTTP,
// Approve and Type is given.
type Task struct {
	Name    string
	Argv    []string              // run: [a, b]
	Shell   string                // run: "a b"
	HTTP    *builtin.RequestInput // http: {…}
	Approve *builtin.ApproveInput // approve: {…}
	Type    string                // type: acme.billing.charge.v1, with Input
	Input   json.RawMessage

	// Templates says that a text of Argv, Env or HTTP has values of needs, so that
	// all of them are templates: see builtin.RunInput.
	Templates bool

	from              *Pipeline // of an included task: what it has from its file; nil: the pipeline
	folder            string    // of an included task: that of its file, from the pipeline's
	Hook              string    // of the key on: success, failure or done; "": it is no hook
	Undo              *Task     // undo: {…}; it is among the tasks of the pipeline, too
	Undoes            string    // the task that it undoes; "": it is no undo
	After             []string  // of a hook: undos, which come before it
	Needs             []string
	If                task.EdgeKind // how it takes the ends of Needs; "": success
	AllowFailure      bool
	Retry             Retry
	Timeout           time.Duration
	Env               map[string]string
	InheritEnv        []string
	EnvFile           string // as written
	SecretEnv         []string
	Dir               string // as written
	Artifacts         []string
	ArtifactsOptional []string
	ArtifactsTTL      time.Duration
	Labels            map[string]string
	ConcurrencyKey    string
	ConcurrencyLimit  int // 0: the default
	Priority          int // 0: the default
	task.Options

	Group       string // of a node, the task of the file; "" for a task that is one node
	MaxParallel int    // how many nodes of Group run at once; 0: no limit

	From   string            // foreach_from: the need whose output has the values; the command or request has {{.item}}
	Values []json.RawMessage // of From, if they are known: it is kept by an update; nil: not known

	patterns []string // of foreach_glob, in Pipeline.globs
	stable   []string // Needs, with the task for nodes that depend on files; nil: as Needs
}

// Retry says how often a task is attempted, and the pauses between. Zero
// fields mean that the file does not say.
type Retry struct {
	MaxAttempts int
	Base        time.Duration
	Max         time.Duration
}
