package pipeline

import "github.com/goweaver/weaver/internal/pipeline/template"

// Variables are the variables that a task takes from its env_file, or else from
// its worker.
type Variables struct {
	Task  string
	File  string   // resolved path of env_file
	Key   string   // key with the names: secret_env or headers_env; ""
	Names []string // sorted or as written
}

// Variables lists the tasks with an env_file whose path is known. baseDir is the
// folder of the pipeline.
func (p *Pipeline) Variables(baseDir string) []Variables {
	var all []Variables
	for i := range p.Tasks {
		t := &p.Tasks[i]
		d := p.definition(t, baseDir)
		v := Variables{Task: t.Name}
		switch {
		case d.Run != nil:
			v.File = d.Run.EnvFile
			if len(d.Run.SecretEnv) > 0 {
				v.Key, v.Names = "secret_env", d.Run.SecretEnv
			}
		case d.Request != nil:
			v.File, v.Key, v.Names = d.Request.EnvFile, "headers_env", d.Request.Variables()
		}
		if v.File != "" && !template.Has(v.File) {
			all = append(all, v)
		}
	}
	return all
}
