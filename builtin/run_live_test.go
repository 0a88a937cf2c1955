//go:build unix && !aix

package builtin_test

import (
	"encoding/json"
	"fmt"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/goweaver/weaver"
	"github.com/goweaver/weaver/builtin"
	"github.com/goweaver/weaver/task/event"
)

func TestRunOutputIsLive(t *testing.T) {
	t.Parallel()
	s := newShop(t, weaver.Config{})
	w := newWitness(t)
	// It continues after the test received it.
	h := s.enqueue(w.shell(`mkfifo "$WITNESS.go"; echo first; echo up >&9; read -r go <"$WITNESS.go"; echo second; echo words >&2`))
	s.says(h.ID(), "first\n")
	w.awaits("up")
	script(t, w.path+".go", "go\n", 0)
	out, err := h.Wait(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if got := strings.Join(s.live(h.ID(), "stdout"), ""); got != "first\nsecond\n" || got != out.Stdout {
		t.Errorf("live stdout = %q, kept %q", got, out.Stdout)
	}
	if got := strings.Join(s.live(h.ID(), "stderr"), ""); got != "words\n" || got != out.Stderr {
		t.Errorf("live stderr = %q, kept %q", got, out.Stderr)
	}
}

// Blocks end at arbitrary bytes; runes across the end are emitted whole.
func TestRunLiveTextIsValid(t *testing.T) {
	t.Parallel()
	s := newShop(t, weaver.Config{InlineLimit: 1 << 20})
	for name, c := range map[string]struct{ shell, want string }{
		"runes":    {`yes '€' | tr -d '\n' | head -c 240000`, strings.Repeat("€", 80_000)},
		"no runes": {`yes "$(printf 'a\377')" | tr -d '\n' | head -c 200000`, strings.Repeat("a\uFFFD", 100_000)},
		"cut off":  {`yes '€' | tr -d '\n' | head -c 90002`, strings.Repeat("€", 30_000) + "\uFFFD\uFFFD"},
	} {
		h := s.enqueue(builtin.RunInput{Shell: c.shell})
		out, err := h.Wait(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		chunks := s.live(h.ID(), "stdout")
		for i, chunk := range chunks {
			if !utf8.ValidString(chunk) {
				t.Errorf("%s: chunk %d is not UTF-8", name, i)
			}
		}
		if got := strings.Join(chunks, ""); got != c.want {
			t.Errorf("%s: the %d bytes emitted are not the %d expected: %d times U+FFFD", name, len(got), len(c.want), strings.Count(got, "\uFFFD"))
		}
		if keep := 256 << 10; len(c.want) <= keep && out.Stdout != c.want || !strings.HasSuffix(c.want, out.Stdout) {
			t.Errorf("%s: kept %d bytes of %d", name, len(out.Stdout), len(c.want))
		}
	}
}

func TestRunOutputFitsTheEngine(t *testing.T) {
	t.Parallel()
	for _, limit := range []int{300, weaver.DefaultInlineLimit} {
		s := newShop(t, weaver.Config{InlineLimit: limit})
		h := s.enqueue(builtin.RunInput{Shell: `head -c 100000 /dev/zero | tr '\0' '\1'; echo end >&2`})
		out, err := h.Wait(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		info, err := h.Get(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if n := len(info.Output); n > limit || n < limit-40 { // a rune of 6 bytes, and a flag that is not set
			t.Errorf("limit %d: the output has %d bytes", limit, n)
		}
		raw, err := json.Marshal(out)
		if err != nil || len(raw) != len(info.Output) {
			t.Errorf("limit %d: it was stored with %d bytes, and has %d: %v", limit, len(info.Output), len(raw), err)
		}
		if out.StdoutBytes != 100_000 || !out.StdoutTruncated || strings.Trim(out.Stdout, "\x01") != "" || out.Stderr != "end\n" || out.StderrTruncated {
			t.Errorf("limit %d: %+v", limit, out)
		}
	}
}

// Memory does not depend on the size of the output. 1 GB takes more than 1 s on
// two cores, so the test uses 200 MB.
func TestRunOutputMemory(t *testing.T) {
	const size = 200_000_000
	var before, during atomic.Uint64
	var received int64
	measure := event.SinkFunc(func(e event.Event) {
		c, ok := e.(event.StreamChunk)
		if !ok {
			return
		}
		was := received
		received += int64(len(c.Data.(string)))
		const early, late = 1_000_000, size - 1_000_000
		if was < early && received >= early {
			before.Store(liveHeap())
		}
		if was < late && received >= late {
			during.Store(liveHeap())
		}
	})
	s := newShop(t, weaver.Config{Sink: measure})
	s.forgetful.Store(true)
	out := s.run(asHelper("write", fmt.Sprint(size)))
	if out.StdoutBytes != size || !out.StdoutTruncated || len(out.Stdout) < 60_000 {
		t.Errorf("%d bytes, kept %d", out.StdoutBytes, len(out.Stdout))
	}
	if received != size {
		t.Errorf("%d bytes were emitted", received)
	}
	if grown := int64(during.Load()) - int64(before.Load()); during.Load() == 0 || grown > 256<<10 {
		t.Errorf("the heap grew by %d bytes", grown)
	}
}

func liveHeap() uint64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

func TestRunProgress(t *testing.T) {
	if testing.Short() {
		t.Skip("make test runs this")
	}
	t.Parallel()
	s := newShop(t, weaver.Config{})
	long := strings.Repeat("ü", 250)
	w := newWitness(t)
	// It continues after the test received the report. A writer that has not yet
	// closed the pipe lets the next open succeed, which reads to its end.
	in := w.shell(`mkfifo "$WITNESS.go"; goes() { until read -r go <"$WITNESS.go"; do :; done; }
		echo one; echo two; echo; printf unfinished; goes
		echo " $LONG"; goes; seq 1 100000; printf 'bad \377\n\n'; goes`)
	in.Env["LONG"] = long
	h := s.enqueue(in)
	for _, want := range []string{"3 two", "4 unfinished " + long[:2*(200-len("unfinished "))] + "…", "100006 bad \uFFFD"} {
		s.reports(h.ID(), want)
		script(t, w.path+".go", "go\n", 0)
	}
	if _, err := h.Wait(t.Context()); err != nil {
		t.Fatal(err)
	}
	reports := s.progress(h.ID())
	info, err := h.Get(t.Context())
	if err != nil || info.Progress == nil {
		t.Errorf("other processes see %+v, %v", info.Progress, err)
	}
	for i, r := range reports {
		if r.Total != 0 {
			t.Errorf("report %d has total %v", i, r.Total)
		}
		// They are 500 ms apart, starting at 1 s.
		if since := r.At.Sub(s.started(h.ID())); since < time.Second+time.Duration(i)*500*time.Millisecond {
			t.Errorf("report %d came after %s", i, since)
		}
	}
}

func TestRunShortCommandsReportNoProgress(t *testing.T) {
	t.Parallel()
	s := newShop(t, weaver.Config{})
	h := s.enqueue(builtin.RunInput{Shell: "seq 1 1000"})
	if _, err := h.Wait(t.Context()); err != nil {
		t.Fatal(err)
	}
	if reports := s.progress(h.ID()); len(reports) > 0 {
		t.Errorf("reports: %+v", reports)
	}
}
