package httpapi

import (
	"bytes"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/goweaver/weaver"
	"github.com/goweaver/weaver/internal/option"
	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/task"
)

// A struct has exactly the options of its place in the table, by name.
func TestOptionTable_FieldsOfCarriers(t *testing.T) {
	t.Parallel()
	for place, carrier := range map[option.Place]reflect.Type{
		option.Type:  reflect.TypeFor[store.TypeDefaults](),
		option.Child: reflect.TypeFor[task.Draft](),
		option.HTTP:  reflect.TypeFor[DraftOptions](),
	} {
		known := make(map[string]bool)
		for _, o := range option.All() {
			for i, name := range o.Fields() {
				known[name] = true
				f, ok := carrier.FieldByName(name)
				if o == &option.SchemaVersion.Spec {
					continue // store.AnnouncedType has it
				}
				if want := o.In&place != 0; ok != want {
					t.Errorf("%s has the field %s: %v, and the table says %v", carrier, name, ok, want)
				}
				if key, _, _ := strings.Cut(f.Tag.Get("json"), ","); ok && i == 0 && strings.TrimSuffix(key, "_ns") != o.Key {
					t.Errorf("%s.%s is %q in JSON, and %s in the table", carrier, name, key, o.Key)
				}
			}
		}
		known["Type"], known["Node"], known["Input"] = true, true, true // fields of a draft that are not options
		for _, f := range reflect.VisibleFields(carrier) {
			if !f.Anonymous && !known[f.Name] {
				t.Errorf("%s.%s is in no row of the table of options", carrier, f.Name)
			}
		}
	}
	if !reflect.TypeFor[task.Options]().Comparable() {
		t.Error("task.Options cannot be compared")
	}
	for i := range reflect.TypeFor[task.Options]().NumField() {
		if name := reflect.TypeFor[task.Options]().Field(i).Name; !strings.Contains(rowNames(), " "+name+" ") {
			t.Errorf("task.Options.%s is in no row of the table of options", name)
		}
	}
}

func rowNames() string {
	names := " "
	for _, o := range option.All() {
		names += o.Name + " "
	}
	return names
}

// Each option is a function of package weaver, also for Define if its place says so. The function
// accepts the example and sets the fields of each struct.
func TestOptionTable_Functions(t *testing.T) {
	t.Parallel()
	results := optionFunctions(t)
	for _, o := range option.All() {
		want := "EnqueueOption"
		switch {
		case o.In&option.Type != 0:
			want = "Option"
		case o == &option.IdempotencyKey.Spec:
			want = "KeyOption"
		}
		if got := results[o.Name]; got != want {
			t.Errorf("weaver.%s returns %q, want %s", o.Name, got, want)
		}
		if o.Doc == "" || o.Example == nil {
			t.Errorf("the row of %s has no Doc or no Example", o.Name)
		}
	}
	var s option.Settings
	for _, o := range option.Examples[weaver.EnqueueOption](option.Type | option.Child | option.HTTP) {
		o.ApplyEnqueue(&s)
	}
	if len(s.Errs) > 0 {
		t.Errorf("examples are refused: %v", s.Errs)
	}
	var d DraftOptions
	option.Copy(&d, &s.Task)
	var again option.Settings
	for _, o := range givenOptions(&d) {
		o.ApplyEnqueue(&again)
	}
	again.Task.SchemaVersion = s.Task.SchemaVersion // of a Draft
	if !reflect.DeepEqual(again, s) {
		t.Errorf("options that are copied and given again are\n%+v, want\n%+v", again, s)
	}
}

// optionFunctions returns the result types of the functions of package weaver.
func optionFunctions(t *testing.T) map[string]string {
	t.Helper()
	files, err := filepath.Glob("../*.go")
	if err != nil {
		t.Fatal(err)
	}
	results := make(map[string]string)
	for _, name := range files {
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		for _, decl := range file.Decls {
			if f, ok := decl.(*ast.FuncDecl); ok && f.Recv == nil && f.Type.Results != nil {
				if id, ok := f.Type.Results.List[0].Type.(*ast.Ident); ok {
					results[f.Name.Name] = id.Name
				}
			}
		}
	}
	return results
}

// docs/options.md contains the table.
func TestOptionTable_Docs(t *testing.T) {
	t.Parallel()
	var b bytes.Buffer
	b.WriteString(optionsIntro)
	for _, o := range option.All() {
		var where []string
		for _, p := range []struct {
			in   option.Place
			name string
		}{{option.Type, "`Define`"}, {option.Child, "children of a Decider"}, {option.HTTP, "HTTP"}, {option.Pipeline, "pipeline"}} {
			if o.In&p.in != 0 {
				where = append(where, p.name)
			}
		}
		fmt.Fprintf(&b, "| `%s` | `%s` | %s | %s | %s |\n", o.Name, o.Key, strings.Join(where, ", "), o.Default, o.Doc)
	}
	const file = "../docs/options.md"
	if *update {
		if err := os.WriteFile(file, b.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if got, err := os.ReadFile(file); err != nil || !bytes.Equal(got, b.Bytes()) {
		t.Errorf("%s is not as internal/option says: go test ./httpapi -run %s -update (%v)", file, t.Name(), err)
	}
}

const optionsIntro = `# Options of a task

Each option is a function of package weaver, which an enqueue takes: ` + "`charge.Enqueue(ctx, client, in, weaver.Timeout(time.Minute))`" + `.
Most may also be given to ` + "`weaver.Define`" + `, as the default of the type. Over HTTP and in JSON an option has its key. A pipeline
has the options marked below under their key; ` + "`retry`, `timeout`, `labels` and `concurrency`" + ` are described in [pipelines.md](pipelines.md).

This file is written from the table in ` + "`internal/option`" + `.

| Option | Key | Also in | Default | Meaning |
|---|---|---|---|---|
`
