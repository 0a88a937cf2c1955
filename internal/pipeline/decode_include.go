package pipeline

import (
	"fmt"
	"path/filepath"
	"slices"
)

// maxIncludes is the maximum number of included files.
const maxIncludes = 100

// maxIncluded is the maximum total size of included files, in bytes.
const maxIncluded = 4 * MaxSize

// ReadFile reads an included file. The path is as written: absolute, or relative
// to the folder of the including file. ReadFile decides which files are allowed.
// Its error describes the problem with the file, as in "there is no such file".
type ReadFile func(path string) ([]byte, error)

// includes reads the files that the key include names. The shared settings of an
// included file apply to its own tasks only. It includes no files, its tasks need
// each other only, and its paths are relative to its own folder: it has the same
// meaning wherever it is included.
func (d *decoder) includes(f field) {
	const example = "[common.yaml]"
	paths := d.nameList(f, example)
	if f.value.kind == list && len(f.value.items) == 0 {
		d.r.add(f.spot(), f.label()+" is empty", f.example(example))
	}
	if len(paths) > maxIncludes {
		d.r.add(f.at, fmt.Sprintf("%s names %d files, and at most %d are allowed", f.label(), len(paths), maxIncludes), "put their tasks into fewer files")
		return
	}
	seen := make(map[string]bool, len(paths))
	for _, p := range paths {
		path := d.filledText(p, "common.yaml")
		if path == "" {
			continue
		}
		if clean := filepath.Clean(path); seen[clean] {
			d.r.add(p.spot(), fmt.Sprintf("%s is included twice", quote(path)), "remove one of them")
			continue
		} else {
			seen[clean] = true
		}
		d.include(p, path)
	}
}

// include reads one file. A decoder of its own collects its mistakes, whose places
// are in that file.
func (d *decoder) include(f field, path string) {
	if d.given.Read == nil {
		d.r.add(f.spot(), fmt.Sprintf("%s cannot be included here: no other file is read", quote(path)), "write its tasks into this file")
		return
	}
	src, err := d.given.Read(path)
	if err != nil {
		d.r.add(f.spot(), fmt.Sprintf("the included file %s cannot be read: %v", quote(path), err), "the path begins at the folder of this file")
		return
	}
	if d.includedBytes += len(src); d.includedBytes > maxIncluded {
		d.r.add(f.spot(), fmt.Sprintf("the included files have more than %d MiB together", maxIncluded>>20), "include fewer or smaller ones")
		return
	}
	r := &reporter{src: newSource(src), file: path}
	folder := filepath.Dir(path)
	if folder == "." {
		folder = ""
	}
	inner := newDecoder(r, Given{Types: d.given.Types, Partial: d.given.Partial, BaseDir: resolve(d.given.BaseDir, folder), Glob: d.given.Glob})
	inner.p.Budget = d.p.Budget
	inner.filled = d.filled
	if isForeign(src, true) {
		r.add(r.src.whole(), "the included file has no tasks", "write them, or leave it out of include")
	} else if root := readTree(src, r); root != nil {
		inner.includedFile(root)
	}
	d.filled = inner.filled
	d.others = append(d.others, inner)
	if n := len(d.includedTasks) + len(inner.p.Tasks); n > MaxTasks {
		d.r.add(f.spot(), fmt.Sprintf("the included files have %d tasks, and at most %d are allowed", n, MaxTasks), "split the pipeline into several ones")
		return
	}
	for _, name := range inner.names {
		if first, again := d.included[name]; again {
			d.r.add(f.spot(), fmt.Sprintf("%s and %s both have a task %s", quote(first), quote(path), quote(name)), "rename one of them")
			return
		}
	}
	for _, name := range inner.names {
		d.included[name] = path
		if s := inner.shapes[name]; s != nil {
			d.shapes[name] = s
		}
	}
	for _, of := range []struct {
		to   *[]Task
		from []Task
	}{{&d.includedTasks, inner.p.Tasks}, {&d.p.globs, inner.p.globs}, {&d.p.idle, inner.p.idle}} {
		for _, t := range of.from {
			if _, again := d.nodes[t.Name]; again {
				d.r.add(f.spot(), fmt.Sprintf("two tasks of the included files are named %s", quote(t.Name)), "rename one of them")
				return
			}
			t.from, t.folder = inner.p, folder
			*of.to = append(*of.to, t)
			if of.to != &d.p.globs { // a glob has the task's name, not a node's
				d.nodes[t.Name] = struct{}{}
			}
		}
	}
}

// includedFile decodes an included file.
func (d *decoder) includedFile(root *node) {
	if root.kind != mapping {
		d.r.add(root.at, "the file is "+root.describe()+", not a mapping", form)
		return
	}
	top := d.fields(root, "the included file", includedLevel)
	if top.tasks != nil {
		d.tasks(*top.tasks)
	} else if includedLevel.lacks(root, "tasks") {
		d.r.add(d.r.src.whole(), "the included file has no tasks", "write them, or leave it out of include")
	}
	d.checkTimeout(root)
	d.checkOwnRetry(top)
}

// addIncluded puts the included tasks before the file's own tasks.
func (d *decoder) addIncluded(f field) {
	for _, name := range d.names {
		if path, taken := d.included[name]; taken {
			d.r.add(d.places[name], fmt.Sprintf("the task %s is in %s, too, which is included", quote(name), quote(path)), "rename one of them")
		}
	}
	if len(d.includedTasks) == 0 {
		return
	}
	if n := len(d.includedTasks) + len(d.p.Tasks); n > MaxTasks {
		d.r.add(f.at, fmt.Sprintf("the pipeline has %d tasks with those of included files, and at most %d are allowed", n, MaxTasks), "split it into several pipelines")
	}
	d.p.Tasks = slices.Concat(d.includedTasks, d.p.Tasks)
	d.entries = slices.Concat(make([]entry, len(d.includedTasks)), d.entries) // included tasks were checked in their file
}

// defaults returns the file whose shared settings apply to a task.
func (p *Pipeline) defaults(t *Task) *Pipeline {
	if t.from != nil {
		return t.from
	}
	return p
}
