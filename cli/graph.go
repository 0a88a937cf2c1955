package cli

import "github.com/goweaver/weaver/internal/pipeline"

type graphCmd struct {
	File string `arg:"" name:"file" help:"Pipeline file (YAML)."`
	paramFlags
	Format string `enum:"ascii,dot,mermaid" default:"ascii" placeholder:"FORMAT" help:"Format: ascii (by level), dot (Graphviz) or mermaid."`
}

// graph is the JSON output of graph.
type graph struct {
	Name  string      `json:"name"` // name of the pipeline
	Tasks []graphTask `json:"tasks"`
}

type graphTask struct {
	Name  string   `json:"name"`
	Level int      `json:"level"` // 1 for a task without needs
	Needs []string `json:"needs,omitempty"`
}

// Run implements the verb.
func (c *graphCmd) Run(s *session) error {
	if s.json() && c.Format != "ascii" {
		return badInput("Keep one of them.", "--format %s and -o json ask for two formats", c.Format)
	}
	params, err := c.values()
	if err != nil {
		return err
	}
	f, err := s.readPipeline(c.File, fileInputs{pipeline.Types{Known: s.types()}, params, true, c.IncludeDir})
	if err != nil {
		return err
	}
	switch {
	case s.json():
		return s.writeJSON(graphOf(f))
	case c.Format == "dot":
		s.printf("%s", f.Graph().DOT())
	case c.Format == "mermaid":
		s.printf("%s", f.Graph().Mermaid())
	default:
		s.printf("%s", f.Graph().List())
	}
	return nil
}

func graphOf(f *pipelineFile) graph {
	g := graph{Name: f.Name, Tasks: []graphTask{}}
	needs := f.Needs()
	for i, wave := range f.Waves() {
		for _, name := range wave {
			g.Tasks = append(g.Tasks, graphTask{Name: name, Level: i + 1, Needs: needs[name]})
		}
	}
	return g
}
