package devrun

// MaxLine is the length at which a line is cut.
const MaxLine = maxLine

// Plan is how a command would be run.
type Plan struct {
	Dir, Folder string
	Argv, Build []string
}

// PlanOf reads a command.
func PlanOf(dir string, command ...string) (Plan, error) {
	p, err := newPlan(dir, command)
	return Plan{p.dir, p.folder, p.argv, p.build}, err
}

// RootOf returns the folder that is watched for a command.
func RootOf(dir string, command ...string) (string, bool, error) {
	p, err := newPlan(dir, command)
	if err != nil {
		return "", false, err
	}
	root, deep := p.root()
	return root, deep, nil
}

// Split prints pieces of what a program writes.
func Split(o *Output, pieces ...string) {
	s := splitter{out: o, source: sourceApp}
	for _, p := range pieces {
		s.write([]byte(p))
	}
	s.end()
}

// Watched returns the files below a folder that are watched.
func Watched(root string, deep bool) []string {
	w := watcher{root: root, deep: deep}
	return differences(nil, w.scan())
}
