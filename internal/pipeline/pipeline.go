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
	MaxName  = value.MaxName // bytes of the name of a pipeline or task
)

// Pipeline is a valid file.
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
	Schedule   *Schedule         // nil without one
	Parallel   int               // max_parallel: how many tasks of the job run at once; 0: any
	Params     []Param           // in the order of the file
	Tasks      []Task            // in the order of the file; an expanded task as its nodes
	Warnings   Warnings          // valid settings that are probably mistakes

	globs []Task // unexpanded tasks with foreach_glob
	idle  []Task // tasks left out: their needs cannot fail, or they need such a task
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

// Task is one task of a pipeline. It has exactly one of Argv, Shell, HTTP, Approve
// and Type.
type Task struct {
	Name    string
	Argv    []string              // run: [a, b]
	Shell   string                // run: "a b"
	HTTP    *builtin.RequestInput // http: {…}
	Approve *builtin.ApproveInput // approve: {…}
	Type    string                // type: acme.billing.charge.v1, with Input
	Input   json.RawMessage

	// Templates reports that a text of Argv, Env or HTTP references needs. All of them
	// are templates then: see builtin.RunInput.
	Templates bool

	from              *Pipeline // of an included task: its file; nil: the pipeline
	folder            string    // of an included task: the folder of its file, relative to the pipeline's
	Hook              string    // key of on: success, failure or done; "": not a hook
	Undo              *Task     // undo: {…}; Pipeline.Tasks has it too
	Undoes            string    // the task that this undo undoes; "": not an undo
	After             []string  // of a hook: undos, which run before it
	Needs             []string
	If                task.EdgeKind // outcomes of Needs that let it run; "": success
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

	Group       string // the expanded task of a node; "": the task has one node
	MaxParallel int    // maximum of running nodes of Group; 0: no limit

	From   string            // foreach_from: the need with the values; the command or request has {{.item}}
	Values []json.RawMessage // of From in an update that keeps it; nil: unknown

	patterns []string // of foreach_glob, in Pipeline.globs
	stable   []string // Needs, with unexpanded tasks for nodes that depend on files; nil: same as Needs
}

// Retry limits the attempts of a task and sets the pauses between them. A zero
// field is not set in the file.
type Retry struct {
	MaxAttempts int
	Base        time.Duration
	Max         time.Duration
}
