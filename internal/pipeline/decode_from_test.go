package pipeline_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/goweaver/weaver"
	"github.com/goweaver/weaver/builtin"
	"github.com/goweaver/weaver/internal/pipeline"
	"github.com/goweaver/weaver/internal/pipeline/value"
	"github.com/goweaver/weaver/task"
)

const fromList = `
name: media
env: {DIR: '{{"{{"}} x'}
params: {out: {default: out}}
tasks:
  list: {run: ls}
  day: {run: date}
  convert:
    run: [ffmpeg, "{{.item}}", "{{.params.out}}/{{.tasks.day.stdout}}-{{.item}}"]
    foreach_from: list
    needs: [list, day]
    max_parallel: 4
    retry: {max_attempts: 3}
    labels: {a: b}
  call: {http: {url: "https://a.example/{{.item}}"}, foreach_from: list, needs: [list], concurrency: {key: api, limit: 2}}
  join: {run: cat, needs: [convert, call]}
`

// A task with foreach_from is one task of the job, with the command or request in
// its input.
func TestForeachFrom(t *testing.T) {
	t.Parallel()
	p := parse(t, fromList)
	equal(t, "tasks", names(p), "list day convert call join")
	got := submit(t, p, pipeline.JobOptions{Identity: "/a.yaml"})
	in := input[builtin.ForeachInput](t, got, "convert")
	equal(t, "the need", in.Task, "list")
	equal(t, "the arguments", strings.Join(in.Run.Argv, " "), "ffmpeg {{.item}} out/{{.tasks.day.stdout}}-{{.item}}")
	equal(t, "a literal", in.Run.Env["DIR"], `{{"{"}}{{"{"}} x`)
	equal(t, "templates", in.Run.Templates, true)
	equal(t, "max_parallel", in.MaxParallel, 4)
	equal(t, "the type", got.tasks["convert"].Type, builtin.Foreach.Name())
	equal(t, "its attempts", got.tasks["convert"].MaxAttempts, 3)
	equal(t, "its label", got.tasks["convert"].Labels["a"], "b")
	equal(t, "a key of its own", got.tasks["convert"].ConcurrencyKey+got.tasks["call"].ConcurrencyKey, "")
	call := input[builtin.ForeachInput](t, got, "call")
	equal(t, "the URL", call.Request.URL, "https://a.example/{{.item}}")
	equal(t, "the key of its nodes", call.ConcurrencyKey, "api")
	equal(t, "their limit", call.ConcurrencyLimit, 2)
	equal(t, "the needs of join", strings.Join(got.needs["join"], " "), "convert call")

	for _, change := range [][2]string{{"foreach_from: list\n", "foreach_from: day\n"}, {"max_parallel: 4", "max_parallel: 5"}, {"ffmpeg", "ffprobe"}} {
		other := parse(t, strings.Replace(fromList, change[0], change[1], 1))
		if other.Digest() == p.Digest() {
			t.Errorf("with %s the digest is the same", change[1])
		}
	}
	equal(t, "the graph", strings.Contains(p.Graph().List(), "\n2  convert (one for each value of list)  <- list, day\n"), true)
}

// A rerun knows the values of a kept task.
func TestForeachFromKept(t *testing.T) {
	t.Parallel()
	p := parse(t, fromList)
	equal(t, "what is needed", strings.Join(p.NeedsValues([]string{"list", "day"}), " "), "list day")
	said := func(name, text string) *value.Output {
		raw, err := json.Marshal(builtin.RunOutput{Stdout: text, StdoutBytes: int64(len(text))})
		if err != nil {
			t.Fatal(err)
		}
		return &value.Output{Task: name, Kind: value.Command, State: task.Succeeded, Raw: raw}
	}
	kept := map[string]*value.Output{"list": said("list", "a {{.item}}\nb\n"), "day": said("day", "{{.item}}\n")}
	filled, err := p.Fill(kept)
	if err != nil {
		t.Fatal(err)
	}
	got := submit(t, p, pipeline.JobOptions{Kept: []string{"list", "day"}, Filled: filled})
	in := input[builtin.ForeachInput](t, got, "convert")
	equal(t, "the need", in.Task, "")
	equal(t, "the values", string(in.Values[0])+string(in.Values[1]), `"a {{.item}}""b"`)
	equal(t, "the argument", in.Run.Argv[2], `out/{{"{"}}{{"{"}}.item}}-{{.item}}`)

	// An empty list is known too.
	if filled, err = p.Fill(map[string]*value.Output{"list": said("list", "\n")}); err != nil {
		t.Fatal(err)
	}
	in = input[builtin.ForeachInput](t, submit(t, p, pipeline.JobOptions{Kept: []string{"list"}, Filled: filled}), "convert")
	equal(t, "the need of none", in.Task, "")

	kept["list"].State = task.Failed
	if _, err := p.Fill(kept); err == nil || !strings.Contains(err.Error(), `task "convert": `) {
		t.Errorf("with a list that failed: %v", err)
	}
}

// An update reruns the task when its list changes or when it lists another task.
func TestForeachFromUpdate(t *testing.T) {
	t.Parallel()
	p := parse(t, fromList)
	earlier := make(map[string]pipeline.Earlier)
	for name, stored := range submit(t, p, pipeline.JobOptions{}).tasks {
		earlier[name] = pipeline.Earlier{State: weaver.StateSucceeded, Needed: true, Work: stored.Metadata[pipeline.MetaWork]}
	}
	equal(t, "what runs", len(p.Update(earlier).Run), 0)
	other := parse(t, strings.Replace(fromList, "foreach_from: list\n", "foreach_from: day\n", 1)).Update(earlier)
	equal(t, "with another list", other.Run[0].Name+" "+other.Run[0].Why, "convert it changed")
	again := parse(t, strings.Replace(fromList, "list: {run: ls}", "list: {run: ls -a}", 1)).Update(earlier)
	equal(t, "with another command of the list", again.Run[1].Name+" "+again.Run[1].Why, "convert it needs list")
}
