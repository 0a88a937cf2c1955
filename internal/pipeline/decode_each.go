package pipeline

import (
	"fmt"
	"path"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/goweaver/weaver/internal/pipeline/template"
)

// eachKeys are the keys that expand a task into one node per value.
var eachKeys = []string{"foreach", "foreach_glob", "foreach_from", "matrix"}

// each is the expansion of a task into nodes.
type each struct {
	entry
	nodes    []eachNode
	names    []string // of a matrix
	patterns []string // of foreach_glob
	from     string   // of foreach_from: its nodes are known when the job runs
	parallel int      // max_parallel; 0: no limit
}

// eachNode is one value of the expansion: an item or a combination of a matrix.
type eachNode struct {
	label  string // the part in brackets of the node's name
	item   *textValue
	matrix map[string]textValue
}

// each reads the expansion of a task, or returns nil. It returns ok false after it
// reports a mistake.
func (d *decoder) each(task entry, of string) (*each, bool) {
	before := len(d.r.all)
	var found *each
	for _, e := range task.value.entries {
		switch {
		case !slices.Contains(eachKeys, e.name):
		case found != nil:
			d.r.add(e.at, fmt.Sprintf("%s has %s and %s", of, quote(found.name), quote(e.name)), "keep one of them; a matrix has several lists of values")
		default:
			found = &each{entry: e}
		}
	}
	if found != nil {
		f := field{found.entry, of}
		switch found.name {
		case "foreach":
			d.foreach(f, found)
		case "foreach_glob":
			d.foreachGlob(f, task, found)
		case "foreach_from":
			d.foreachFrom(f, task.name, found)
		case "matrix":
			d.matrix(f, found)
		}
	}
	if d.p.Parallel > 0 {
		for _, key := range []string{"max_parallel", "concurrency"} {
			if e, ok := task.value.get(key); ok {
				d.r.add(e.at, fmt.Sprintf("%s has %q, and the pipeline has max_parallel", of, key), "keep one of them: a task counts for one limit")
				return found, false
			}
		}
	}
	if e, ok := task.value.get("max_parallel"); ok {
		d.maxParallel(field{e, of}, task, found)
	}
	return found, len(d.r.all) == before
}

func (d *decoder) maxParallel(f field, task entry, of *each) {
	limit := d.whole(f, 1, maxAttempts, "4")
	other, both := task.value.get("concurrency")
	switch {
	case of == nil:
		d.r.add(f.at, f.label()+" limits the nodes of a foreach, and the task has none",
			"write concurrency: {key: NAME, limit: 4} to limit several tasks, or give the task foreach, foreach_glob, foreach_from or matrix")
	case both:
		d.r.add(other.at, fmt.Sprintf(`%s has "max_parallel" and "concurrency"`, f.of), "keep one of them: concurrency: {key: …, limit: …} also counts other tasks with its key")
	default:
		of.parallel = limit
	}
}

// valuesIn reads a list of values. A number, true or false without quotes keeps
// its JSON type.
func (d *decoder) valuesIn(f field, example string) (values []textValue) {
	if f.value.kind != list {
		d.wrong(f, "a list of values", example)
		return nil
	}
	first := make(map[string]spot, len(f.value.items))
	for _, item := range f.value.items {
		if item.kind != scalar {
			d.wrongItem(f, item, example)
			continue
		}
		v := d.valueIn(item, f.label())
		before, again := first[v.text]
		switch {
		case strings.TrimSpace(v.text) == "":
			d.r.add(item.at, "an entry of "+f.label()+" is empty", f.example(example))
		case len(v.text) > maxParam:
			d.r.add(item.at, fmt.Sprintf("an entry of %s has %d bytes, and at most %d are allowed", f.label(), len(v.text), maxParam), "keep long texts in files of their own")
		case again:
			d.r.add(item.at, fmt.Sprintf("%s has the value %s twice, first in line %d", f.label(), quote(v.text), before.line), "remove one of them")
		case d.checkNUL(item.at, "an entry of "+f.label(), v.text):
			first[v.text] = item.at
			values = append(values, v)
		}
	}
	return values
}

func (d *decoder) valueIn(n *node, of string) textValue {
	n = d.final(n, of, atRead)
	kind := plainKind(n.text)
	return textValue{n.text, n.plain && (kind == plainNumber || kind == plainTrue || kind == plainFalse)}
}

func (d *decoder) foreach(f field, to *each) {
	for _, v := range d.valuesIn(f, "[a, b]") {
		to.nodes = append(to.nodes, eachNode{label: v.text, item: &v})
	}
	if f.value.kind == list && len(f.value.items) == 0 {
		d.warnings.add(f.spot(), fmt.Sprintf("%s has no values, so nothing runs for it", f.label()), "what needs the task runs as if it had succeeded")
	}
}

// foreachGlob lists the files that match, relative to the command's folder.
func (d *decoder) foreachGlob(f field, task entry, to *each) {
	const example = `"*.mp4", or a list of patterns`
	if f.value.kind == list && len(f.value.items) == 0 {
		d.r.add(f.spot(), f.label()+" is an empty list", f.example(example))
	}
	dir, open := d.p.Dir, d.given.Partial && template.Has(d.p.Dir) // open: it names a missing param
	if own, ok := task.value.get("dir"); ok && own.value.kind == scalar {
		if names(own.value, "item") {
			d.r.add(own.spot(), fmt.Sprintf(`"dir" of %s names the item, and foreach_glob looks for files in it`, f.of), "write the folder into the pattern: foreach_glob: \"in/*.mp4\"")
			return
		}
		quiet := *d
		quiet.r = &reporter{src: d.r.src} // reading the task reports its mistakes
		dir, open = quiet.final(own.value, "", atRead).text, d.opensTree(own.value)
	}
	dir = resolve(d.given.BaseDir, dir)
	seen := make(map[string]bool)
	for _, item := range d.nameList(f, example) {
		pattern := d.final(item.value, f.label(), atRead).text
		if !d.pattern(item, f, pattern) {
			continue
		}
		to.patterns = append(to.patterns, pattern)
		if open = open || d.opensTree(item.value); open || d.given.Glob == nil {
			continue
		}
		files, err := d.given.Glob(dir, pattern)
		if err != nil {
			d.r.add(item.spot(), fmt.Sprintf("%s: the files of %s cannot be listed: %v", f.label(), quote(pattern), err), "")
			continue
		}
		for _, file := range files {
			switch {
			case !utf8.ValidString(file):
				d.r.add(item.spot(), fmt.Sprintf("%s finds %s, whose name is not UTF-8", f.label(), quote(file)), "rename the file")
			case !seen[file]:
				seen[file] = true
				item := file
				if strings.HasPrefix(file, "-") { // so that no program reads it as an option
					item = "./" + file
				}
				to.nodes = append(to.nodes, eachNode{label: file, item: &textValue{text: item}})
			}
		}
	}
	slices.SortFunc(to.nodes, func(a, b eachNode) int { return strings.Compare(a.label, b.label) })
	if len(to.nodes) == 0 && !open {
		d.warnings.add(f.spot(), fmt.Sprintf("%s matches no file in %s", f.label(), dirName(dir)), "what needs the task runs as if it had succeeded")
	}
}

// names reports whether a text names a value of the given root.
func names(n *node, root string) bool {
	parsed, err := template.Parse(n.text)
	return err == nil && slices.ContainsFunc(parsed.Paths(), func(p template.Path) bool { return p[0] == root })
}

func dirName(dir string) string {
	if dir == "" {
		return "the folder of the pipeline"
	}
	return dir
}

// pattern checks a pattern of file names.
func (d *decoder) pattern(item, f field, pattern string) bool {
	_, err := path.Match(pattern, "")
	switch {
	case strings.TrimSpace(pattern) == "":
		return d.r.add(item.spot(), "a pattern of "+f.label()+" is empty", f.example(`"*.mp4"`))
	case strings.ContainsRune(pattern, 0):
		return d.checkNUL(item.spot(), f.label(), pattern)
	case strings.Contains(pattern, "**"):
		return d.r.add(item.spot(), fmt.Sprintf("%s in %s has **, which is not supported", quote(pattern), f.label()), `write a pattern for each depth: ["*.mp4", "*/*.mp4"]`)
	case err != nil:
		return d.r.add(item.spot(), fmt.Sprintf("%s in %s is not a pattern", quote(pattern), f.label()), `* is any text, ? any character and [a-z] one of several; write \[ for a bracket`)
	}
	return true
}

// maxLists is the maximum number of lists in a matrix.
const maxLists = 10

func (d *decoder) matrix(f field, to *each) {
	const example = "{os: [linux, mac], arch: [amd64, arm64]}"
	if !d.mapping(f, example) {
		return
	}
	d.onlyOnce(f.value, f.label())
	to.nodes = []eachNode{{}}
	for _, e := range f.value.entries {
		switch {
		case e.name == "exclude":
		case e.name == "include":
			d.r.add(e.at, f.label()+` has "include", which is not supported`, "write a task of its own for what the lists do not give")
		case len(to.names) == maxLists:
			d.r.add(e.at, fmt.Sprintf("%s has more than %d lists", f.label(), maxLists), "split it into several tasks")
			return
		case d.valueName(e, f.label()):
			of := field{e, f.label()}
			values := d.valuesIn(of, "[a, b]")
			to.names = append(to.names, e.name)
			if len(to.nodes)*len(values) > MaxTasks {
				d.tooMany(of, len(to.nodes)*len(values))
				return
			}
			to.nodes = times(to.nodes, e.name, values)
		}
	}
	if len(to.names) == 0 {
		d.r.add(f.spot(), f.label()+" has no lists of values", f.example(example))
		return
	}
	if e, ok := f.value.get("exclude"); ok {
		d.exclude(field{e, f.label()}, to)
	}
	if len(to.nodes) == 0 {
		d.warnings.add(f.spot(), fmt.Sprintf("%s has no values, so nothing runs for it", f.label()), "what needs the task runs as if it had succeeded")
	}
}

// times combines each node with each value.
func times(nodes []eachNode, name string, values []textValue) []eachNode {
	all := make([]eachNode, 0, len(nodes)*len(values))
	for _, n := range nodes {
		for _, v := range values {
			label := v.text
			if n.matrix != nil {
				label = n.label + "," + v.text
			}
			both := map[string]textValue{name: v}
			for k, w := range n.matrix {
				both[k] = w
			}
			all = append(all, eachNode{label: label, matrix: both})
		}
	}
	return all
}

// exclude removes the nodes that match all values of an entry.
func (d *decoder) exclude(f field, to *each) {
	const example = "[{os: mac, arch: amd64}]"
	items := f.value.items
	if f.value.kind == mapping {
		items = []*node{f.value}
	} else if f.value.kind != list {
		d.wrong(f, "a list of combinations", example)
		return
	}
	for _, item := range items {
		if item.kind != mapping || len(item.entries) == 0 {
			d.r.add(item.at, fmt.Sprintf("an entry of %s is %s, not the values to leave out", f.label(), item.describe()), f.example(example))
			continue
		}
		d.excludeOne(f, item, to)
	}
}

func (d *decoder) excludeOne(f field, item *node, to *each) {
	d.onlyOnce(item, f.label())
	want := make(map[string]string, len(item.entries))
	for _, e := range item.entries {
		if !slices.Contains(to.names, e.name) {
			d.r.addSuggesting(e.at, fmt.Sprintf("%s names %s, which the matrix does not have", f.label(), quote(e.name)), func() string { return adviseOf(e.name, to.names, "") })
			return
		}
		if e.value.kind != scalar {
			d.wrong(field{e, f.label()}, "a value", "mac")
			return
		}
		want[e.name] = d.valueIn(e.value, f.label()).text
	}
	before := len(to.nodes)
	to.nodes = slices.DeleteFunc(to.nodes, func(n eachNode) bool {
		for name, text := range want {
			if n.matrix[name].text != text {
				return false
			}
		}
		return true
	})
	if len(to.nodes) == before {
		d.r.add(item.at, "an entry of "+f.label()+" leaves nothing out", "write values of the matrix that are not left out already")
	}
}

// tooMany reports an expansion into more nodes than a pipeline may have tasks.
func (d *decoder) tooMany(f field, nodes int) {
	d.r.add(f.at, fmt.Sprintf("%s gives %d nodes, and a pipeline has at most %d tasks", f.label(), nodes, MaxTasks), "split it into several pipelines, or let a command do several values")
}

// maxEachName is the maximum length, in bytes, of the name of an expanded task.
const maxEachName = MaxName - 20
