// Command browser imports a table of payments in a tab of the browser or on a machine, with the same code. The import
// is durable: reload the page, close the tab or kill the program in its middle, and it goes on where it was.
//
//	go run ./examples/browser                                  # a file on this machine, pages at http://127.0.0.1:8080/
//	weaver browser build ./examples/browser --out /tmp/site    # a folder for any web server
//	weaver browser serve /tmp/site
package main

import (
	"bytes"
	"context"
	"embed"
	"encoding/csv"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/goweaver/weaver"
	"github.com/goweaver/weaver/browser"
)

//go:embed web
var web embed.FS

func main() {
	pages, err := fs.Sub(web, "web")
	if err != nil {
		panic(err) // the folder is embedded
	}
	browser.Main(browser.Config{
		File:   "payments.db",
		Pages:  pages,
		Engine: weaver.Config{Handlers: []weaver.Handler{Import.Handler(importTable)}, Concurrency: 2},
	})
}

// Table is a file with the columns date, payee and amount.
type Table struct {
	Name string `json:"name"`
	CSV  string `json:"csv"`
}

// Total is the result of an import.
type Total struct {
	Payments int                `json:"payments"`
	Cents    int64              `json:"cents"`
	Report   weaver.ArtifactRef `json:"report"`
}

var (
	// Import reads a table in up to 500 steps, once a person has confirmed it.
	Import = weaver.Define[Table, Total]("example.payments.import.v1", weaver.MaxAttempts(5), weaver.Backoff(time.Second))
	// Confirmed is sent by the button of the page.
	Confirmed = weaver.DefineSignal[bool]("confirmed")
)

const mostSteps = 500

// checked is the result of the first step.
type checked struct {
	Payments int `json:"payments"`
	PerStep  int `json:"per_step"`
}

func importTable(ctx context.Context, in Table) (Total, error) {
	rows, bad := read(in.CSV)
	found, err := weaver.Step(ctx, "check", func(context.Context) (checked, error) {
		if bad != nil {
			return checked{}, weaver.Permanent(fmt.Errorf("%s: %w", in.Name, bad))
		}
		return checked{Payments: len(rows), PerStep: (len(rows) + mostSteps - 1) / mostSteps}, nil
	})
	if err != nil {
		return Total{}, err
	}
	yes, ok, err := Confirmed.Wait(ctx, "confirmation", 24*time.Hour)
	if err != nil {
		return Total{}, err
	}
	if !ok || !yes {
		return Total{}, weaver.Permanent(errors.New("nobody confirmed the import"))
	}
	if err := weaver.Sleep(ctx, "cool-off", time.Second); err != nil { // the last moment to cancel
		return Total{}, err
	}
	failures, err := weaver.EarlierAttempts(ctx)
	if err != nil {
		return Total{}, err
	}
	failed := slices.ContainsFunc(failures, func(a weaver.AttemptInfo) bool { return a.Error != nil })
	total := Total{Payments: found.Payments}
	parts := (found.Payments + found.PerStep - 1) / found.PerStep
	for i := range parts {
		part := rows[i*found.PerStep : min((i+1)*found.PerStep, len(rows))]
		cents, err := weaver.Step(ctx, fmt.Sprintf("part %d", i+1), func(ctx context.Context) (int64, error) { return book(ctx, part, i == 3 && !failed) })
		if err != nil {
			return Total{}, err
		}
		total.Cents += cents
		if err := weaver.Progress(ctx, float64(i+1), float64(parts), "part "+strconv.Itoa(i+1)); err != nil {
			return Total{}, err
		}
	}
	total.Report, err = weaver.PutArtifact(ctx, "report.csv", bytes.NewReader(report(rows)), weaver.ContentType("text/csv"))
	return total, err
}

// book books a part. The bank refuses one part once, so that the attempt is repeated: the parts before it stay.
func book(ctx context.Context, part []payment, refused bool) (cents int64, err error) {
	if refused {
		return 0, errors.New("the bank does not answer")
	}
	for _, p := range part {
		cents += p.cents
	}
	select {
	case <-time.After(10 * time.Millisecond): // the bank works
		return cents, nil
	case <-ctx.Done():
		return 0, context.Cause(ctx)
	}
}

type payment struct {
	payee string
	cents int64
}

// read returns the payments of a table, or its first mistake with the line.
func read(table string) (rows []payment, err error) {
	lines := csv.NewReader(strings.NewReader(table))
	lines.FieldsPerRecord = 3
	all, err := lines.ReadAll()
	switch {
	case err != nil:
		return nil, err
	case len(all) < 2:
		return nil, errors.New("the table has no payments: want a first line date,payee,amount and one line per payment")
	}
	for i, line := range all[1:] {
		amount, err := strconv.ParseFloat(line[2], 64)
		if err != nil {
			return nil, fmt.Errorf("line %d: the amount %q is not a number such as 12.50", i+2, line[2])
		}
		rows = append(rows, payment{payee: line[1], cents: int64(amount*100 + 0.5)})
	}
	return rows, nil
}

// report is a table of the sums by payee, in the order of the table.
func report(rows []payment) []byte {
	sums, order := make(map[string]int64), []string(nil)
	for _, r := range rows {
		if _, ok := sums[r.payee]; !ok {
			order = append(order, r.payee)
		}
		sums[r.payee] += r.cents
	}
	var out bytes.Buffer
	w := csv.NewWriter(&out)
	_ = w.Write([]string{"payee", "amount"}) // into memory
	for _, payee := range order {
		_ = w.Write([]string{payee, fmt.Sprintf("%.2f", float64(sums[payee])/100)})
	}
	w.Flush()
	return out.Bytes()
}
