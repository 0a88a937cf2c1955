// Command report writes a nightly report for offices in two time zones, each at 3 o'clock of its own night:
//
//	go run ./examples/report
//
// It runs until Ctrl-C. Start it as often as you like, also at once: each night has one report of each office. After an
// outage of at most 6 hours the report of the night is made up for. State is in ./weaver-report.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"log"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"
	_ "time/tzdata" // the zones, where the machine has none

	"github.com/goweaver/weaver"
	"github.com/goweaver/weaver/store/sqlite"
)

// Office is the input of a report.
type Office struct{ Name, Zone string }

// Nightly is the contract: the output is the day of the report.
var Nightly = weaver.Define[Office, string]("example.report.nightly.v1")

// report is about the day that ended before its scheduled time, however late it runs.
func report(ctx context.Context, office Office) (string, error) {
	zone, err := time.LoadLocation(office.Zone)
	if err != nil {
		return "", weaver.Permanent(err)
	}
	at, ok := weaver.ScheduledAt(ctx)
	if !ok {
		return "", weaver.Permanent(errors.New("it is not part of a schedule"))
	}
	at = at.In(zone)
	day := at.AddDate(0, 0, -1).Format(time.DateOnly)
	fmt.Printf("%s: report of %s, due at %s\n", office.Name, day, at.Format("2006-01-02 15:04 MST"))
	return day, nil
}

// config is the program: its handler and its schedules.
func config() weaver.Config {
	cfg := weaver.Config{Handlers: []weaver.Handler{Nightly.Handler(report)}, Program: "report", ProgramVersion: 1}
	for _, office := range []Office{{"berlin", "Europe/Berlin"}, {"new-york", "America/New_York"}} {
		cfg.Schedules = append(cfg.Schedules, weaver.NewSchedule("nightly-"+office.Name, Nightly.With(office),
			weaver.Cron("0 3 * * *", office.Zone), weaver.Overlap(weaver.OverlapSkip), weaver.CatchUp(6*time.Hour)))
	}
	return cfg
}

func main() {
	dir := flag.String("dir", "weaver-report", "`folder` of the state")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, *dir); err != nil {
		log.Fatalf("report: %v", err)
	}
}

func run(ctx context.Context, dir string) (err error) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	db, err := sqlite.Open(ctx, filepath.Join(dir, "weaver.db"))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	eng, err := weaver.New(db, config())
	if err := errors.Join(err, db.Migrate(ctx)); err != nil {
		return err
	}
	fmt.Printf("reports at 3 o'clock; see them with: go run ./cmd/weaver --store sqlite:%s schedule ls\n", db.Path())
	return eng.Run(ctx)
}
