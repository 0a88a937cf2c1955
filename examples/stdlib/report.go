package main

import (
	"bytes"
	"context"
	"encoding/csv"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
)

// The files of the result.
const (
	reportMD  = "report.md"
	reportCSV = "report.csv"
)

// Plan is the input of the report.
type Plan struct {
	Packages []string // sorted
}

// Summary is the output of the report.
type Summary struct {
	Version                           string
	Packages, Files, Lines, Functions int
}

// String is the summary in one line.
func (s Summary) String() string {
	return fmt.Sprintf("%s has %d packages, %d files, %d lines and %d functions", s.Version, s.Packages, s.Files, s.Lines, s.Functions)
}

// row is one package of the report.
type row struct {
	Package string
	Counted
}

// report joins the outputs of the tasks that it needs and writes the files.
//
// A step whose function was cut off runs again, so what it does outside of the
// database must bear repetition: here the same bytes are put in the same place
// in one move, so that a reader finds the whole old file or the whole new one.
// For the same reason nothing of the moment (time, pid, who ran what) goes
// into the files.
func (w *worker) report(ctx context.Context, plan Plan) (Summary, error) {
	rows := make([]row, len(plan.Packages))
	for i, pkg := range plan.Packages {
		// Output reads the result of a need by its name in the job. It is in
		// the store already: reading it again costs little, so it is no step.
		counted, err := Count.Output(ctx, nodeCount(pkg))
		if err != nil {
			return Summary{}, err
		}
		rows[i] = row{pkg, counted}
	}
	version, err := Flaky.Output(ctx, nodeFlaky)
	if err != nil {
		return Summary{}, err
	}
	sum := summarize(version, rows)
	for _, file := range []struct {
		name   string
		render func(Summary, []row) []byte
	}{{reportCSV, renderCSV}, {reportMD, renderMarkdown}} {
		_, err := step(ctx, w, "write-"+file.name, func(ctx context.Context) (string, error) {
			if err := pause(ctx, w.cfg.pace); err != nil {
				return "", err
			}
			return file.name, writeFile(filepath.Join(w.cfg.dir, file.name), file.render(sum, rows))
		})
		if err != nil {
			return Summary{}, err
		}
	}
	return sum, nil
}

func summarize(version string, rows []row) Summary {
	s := Summary{Version: version, Packages: len(rows)}
	for _, r := range rows {
		s.Files += r.Files
		s.Lines += r.Lines
		s.Functions += r.Functions
	}
	return s
}

func renderCSV(_ Summary, rows []row) []byte {
	var buf bytes.Buffer
	out := csv.NewWriter(&buf)
	_ = out.Write([]string{"package", "files", "lines", "functions", "longest_function", "longest_function_lines"}) // a Buffer takes everything
	for _, r := range rows {
		_ = out.Write([]string{r.Package, strconv.Itoa(r.Files), strconv.Itoa(r.Lines), strconv.Itoa(r.Functions), r.Longest.Name, strconv.Itoa(r.Longest.Lines)})
	}
	out.Flush()
	return buf.Bytes()
}

func renderMarkdown(sum Summary, rows []row) []byte {
	var buf bytes.Buffer
	fmt.Fprintf(&buf, "# The Go standard library in numbers\n\n%s.\n", sum)

	// Stable sorts of rows that came sorted by name: ties always fall alike.
	top := func(title, heads string, compare func(a, b row) int, cells func(r row) string) {
		const most = 10
		sorted := slices.Clone(rows)
		slices.SortStableFunc(sorted, compare)
		fmt.Fprintf(&buf, "\n## %s\n\n%s", title, heads)
		for _, r := range sorted[:min(most, len(sorted))] {
			fmt.Fprintf(&buf, "| %s |\n", cells(r))
		}
	}
	top("The largest packages", "| package | files | lines | functions |\n|---|---:|---:|---:|\n",
		func(a, b row) int { return b.Lines - a.Lines },
		func(r row) string {
			return fmt.Sprintf("%s | %d | %d | %d", r.Package, r.Files, r.Lines, r.Functions)
		})
	top("The longest functions", "| package | function | lines |\n|---|---|---:|\n",
		func(a, b row) int { return b.Longest.Lines - a.Longest.Lines },
		func(r row) string { return fmt.Sprintf("%s | %s | %d", r.Package, r.Longest.Name, r.Longest.Lines) })
	return buf.Bytes()
}

// writeFile puts data into a file in one move: a temporary file, onto the
// disk, renamed. It leaves no half file under the name, ever.
func writeFile(name string, data []byte) (err error) {
	tmp, err := os.CreateTemp(filepath.Dir(name), filepath.Base(name)+".*.tmp")
	if err != nil {
		return err
	}
	// Crash here or below: the temporary file stays behind, and does no harm.
	defer func() {
		if err != nil {
			err = errors.Join(err, os.Remove(tmp.Name()))
		}
	}()
	_, err = tmp.Write(data)
	if err == nil {
		err = tmp.Chmod(0o644)
	}
	if err == nil {
		err = tmp.Sync() // else a power failure may leave an empty file under the new name
	}
	if err = errors.Join(err, tmp.Close()); err != nil {
		return err
	}
	return os.Rename(tmp.Name(), name)
}
