package vet

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"strings"
)

// listed is a package in the output of go list.
type listed struct {
	ImportPath, Dir, Name, Export string

	GoFiles, CgoFiles []string
	Deps              []string
	ImportMap         map[string]string
	Standard, DepOnly bool
	Module            *struct{ Main bool }
	Error             *struct{ Err string }
}

// load lists packages and all their imports, compiled.
func load(ctx context.Context, dir string, patterns []string) ([]*listed, error) {
	args := append([]string{"list", "-e", "-deps", "-export", "-json=ImportPath,Dir,Name,Export,GoFiles,CgoFiles,Deps,ImportMap,Standard,DepOnly,Module,Error", "--"}, patterns...)
	cmd := exec.CommandContext(ctx, "go", args...)
	cmd.Dir = dir
	var out, said bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &said
	if err := cmd.Run(); err != nil {
		if errors.Is(err, exec.ErrNotFound) {
			return nil, errors.New("the go command is not in PATH, and packages are read with it: install Go")
		}
		return nil, fmt.Errorf("go list: %w: %s", err, strings.TrimSpace(said.String()))
	}
	var pkgs []*listed
	for dec := json.NewDecoder(&out); ; {
		p := new(listed)
		switch err := dec.Decode(p); {
		case errors.Is(err, io.EOF):
			return pkgs, nil
		case err != nil:
			return nil, fmt.Errorf("read what go list prints: %w", err)
		case p.Error != nil:
			return nil, fmt.Errorf("%s: %s", p.ImportPath, strings.TrimSpace(p.Error.Err))
		}
		pkgs = append(pkgs, p)
	}
}
