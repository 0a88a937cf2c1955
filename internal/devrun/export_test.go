package devrun

// MaxLine is the length at which a line is split.
const MaxLine = maxLine

// Plan is the plan for a command.
type Plan struct {
	Dir, Folder string
	Argv, Build []string
}

// PlanOf returns the plan for a command.
func PlanOf(dir string, command ...string) (Plan, error) {
	p, err := newPlan(dir, command)
	return Plan{p.dir, p.folder, p.argv, p.build}, err
}

// RootOf returns the folder to watch for a command.
func RootOf(dir string, command ...string) (string, bool, error) {
	p, err := newPlan(dir, command)
	if err != nil {
		return "", false, err
	}
	root, deep := p.root()
	return root, deep, nil
}

// Split prints pieces of a program's output.
func Split(o *Output, pieces ...string) {
	s := splitter{out: o, source: sourceApp}
	for _, p := range pieces {
		s.write([]byte(p))
	}
	s.end()
}

// Watched returns the watched files below a folder.
func Watched(root string, deep bool) []string {
	w := watcher{root: root, deep: deep}
	return differences(nil, w.scan())
}
