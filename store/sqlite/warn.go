package sqlite

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/store/sqlite/internal/commit"
)

// slowReader is the maximum duration of a read without a warning. During a read the
// write-ahead log cannot start over, and grows with every commit.
const slowReader = 5 * time.Second

// openReads holds the open reads and transactions of this process.
type openReads struct {
	mu   sync.Mutex
	open map[*commit.Holder]bool // whether it keeps others from writing
}

func (o *openReads) add(h *commit.Holder, writes bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.open == nil {
		o.open = make(map[*commit.Holder]bool)
	}
	o.open[h] = writes
}

func (o *openReads) remove(h *commit.Holder) {
	o.mu.Lock()
	defer o.mu.Unlock()
	delete(o.open, h)
}

// slowRead is a read or transaction that is open for long.
type slowRead struct {
	*commit.Holder
	writes bool
}

// slow returns the slow reads, the oldest first.
func (o *openReads) slow() []slowRead {
	o.mu.Lock()
	defer o.mu.Unlock()
	var list []slowRead
	for h, writes := range o.open {
		if time.Since(h.Since()) > slowReader {
			list = append(list, slowRead{h, writes})
		}
	}
	slices.SortFunc(list, func(a, b slowRead) int { return a.Since().Compare(b.Since()) })
	return list
}

// Warnings implements store.Ops. It warns of readers and transactions that are open for
// more than 5 seconds: those of this program with the line that began them, those of others
// once the log has become long. It also warns of a machine's clock that was set.
func (db *DB) Warnings(context.Context) []store.Warning {
	list := db.clock.warnings()
	if db.memory {
		return list
	}
	size := logSize(db.name)
	slow := db.reads.slow()
	for _, h := range slow {
		text := h.What + " has been open for long; until it ends the write-ahead log cannot be cut and grows: end it, or read in pages"
		if h.writes {
			text = h.What + " has been open for long; until it ends nothing else can be written: commit it or roll it back"
		}
		list = append(list, store.Warning{
			Key:  fmt.Sprint(h.What, h.Since().UnixNano()),
			Text: text,
			Attrs: []slog.Attr{
				slog.Time("since", h.Since()), slog.Duration("open_for", time.Since(h.Since()).Round(time.Millisecond)),
				slog.String("begun_at", h.BegunAt()), slog.Int64("log_bytes", size), slog.String("file", db.path),
			},
		})
	}
	if since := db.writer.LogHeld(); len(slow) == 0 && size > int64(db.opts.logLimit) && !since.IsZero() && time.Since(since) > slowReader {
		list = append(list, store.Warning{
			Key:  "log",
			Text: "a reader that this program does not know keeps the write-ahead log from being cut: look for other programs that have the file open",
			Attrs: []slog.Attr{
				slog.Time("since", since), slog.Int64("log_bytes", size), slog.String("file", db.path),
			},
		})
	}
	return list
}

// logSize returns the size of the write-ahead log in bytes.
func logSize(path string) int64 {
	info, err := os.Stat(path + "-wal")
	if err != nil {
		return 0
	}
	return info.Size()
}

// warnings returns warnings about changes of the machine's clock.
func (s *storeClock) warnings() (list []store.Warning) {
	if by := s.Ahead(); by > 0 {
		list = append(list, store.Warning{
			Key: "clock behind",
			Text: "the machine's clock is behind the store's, which never goes back: one of the two is or was wrong; " +
				"what is due at a fixed time starts early until the store's clock, which goes slower now, agrees again; " +
				"if the machine's is right, `weaver doctor --accept-clock` has the store take it",
			Attrs: []slog.Attr{slog.Duration("behind", by.Round(time.Second))},
		})
	}
	if back := s.WentBack(); !back.To.IsZero() {
		list = append(list, store.Warning{
			Key:   "clock was wrong",
			Once:  true,
			Text:  "the store's clock was more than a day ahead of the machine's, which was wrong once: the store takes the machine's time again, and what was stored meanwhile is due as if it was stored now",
			Attrs: []slog.Attr{slog.Time("to", back.To), slog.Duration("by", back.By.Round(time.Second))},
		})
	}
	if jump := s.Jumped(); !jump.To.IsZero() {
		list = append(list, store.Warning{
			Key:   fmt.Sprint("clock jumped ", jump.To.UnixNano()),
			Once:  true,
			Text:  "the machine's clock jumped forward: it was set, or the machine slept; what was due in that time is due now",
			Attrs: []slog.Attr{slog.Time("to", jump.To), slog.Duration("by", jump.By.Round(time.Second))},
		})
	}
	return list
}
