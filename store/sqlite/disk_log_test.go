package sqlite_test

import (
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/goweaver/weaver/store"
)

// SQLite's write-ahead log: a header, then frames of a header and a page.
const (
	logHeader   = 32
	frameHeader = 24
	pageSize    = 8192
	frameSize   = frameHeader + pageSize
)

// logged is a database whose log holds a series of commits.
type logged struct {
	*rig
	db, log []byte
	ends    []int // length of the log after each commit
	subs    []store.Submission
}

func newLogged(t *testing.T) *logged {
	t.Helper()
	l := &logged{rig: newRig(t)}
	l.rig.db.Part = 0 // a submission is one commit
	commits := 8
	if diskFull {
		commits = 12
	}
	for i := range commits {
		sub := l.jobOf(3)
		if i%3 == 2 {
			sub = l.submission(2, long)
		}
		if !l.enqueue("", sub) {
			t.Fatal(l.led.errs())
		}
		info, err := os.Stat(l.path + "-wal")
		if err != nil {
			t.Fatal(err)
		}
		l.subs, l.ends = append(l.subs, sub), append(l.ends, int(info.Size()))
	}
	files := l.files()
	l.db, l.log = files[l.path], files[l.path+"-wal"]
	if len(l.log) != l.ends[len(l.ends)-1] || (len(l.log)-logHeader)%frameSize != 0 {
		t.Fatalf("a log of %d bytes after commits at %v", len(l.log), l.ends)
	}
	return l
}

// wants checks that a damaged log restores exactly the commits up to a length of it.
func (l *logged) wants(what, dir string, log []byte, intact int) {
	l.Helper()
	f, bad, err := lookAt(l, dir, map[string][]byte{l.path: l.db, l.path + "-wal": log})
	if err != nil {
		l.Errorf("%s: %v", what, err)
		return
	}
	for i, sub := range l.subs {
		n, of := showsTasks(sub, "")(f)
		switch want := l.ends[i] <= intact; {
		case n != 0 && n != of:
			bad = append(bad, fmt.Sprintf("submission %d is there by half: %d of %d", i, n, of))
		case want != (n == of):
			bad = append(bad, fmt.Sprintf("submission %d: there is %v, want %v", i, n == of, want))
		}
	}
	if len(bad) > 0 {
		l.Errorf("%s:\n%s", what, strings.Join(bad, "\n"))
	}
}

// A log truncated at any place restores the complete commits in it.
func TestTruncatedLog(t *testing.T) {
	if testing.Short() {
		t.Skip("make test runs this")
	}
	inBubble(t, func(t *testing.T) {
		l := newLogged(t)
		dir, points := t.TempDir(), 0
		offsets := []int{0, 1, frameHeader - 1, frameHeader, frameHeader + 1, frameHeader + 511, frameHeader + pageSize/2, frameSize - 1}
		for frame, at := 0, logHeader; at <= len(l.log); frame, at = frame+1, at+frameSize {
			for i, off := range offsets {
				if cut := at + off; cut <= len(l.log) && (diskFull || frame%20 == 0 && (i == 0 || i == 1+frame%(len(offsets)-1))) {
					l.wants(fmt.Sprintf("the log of %d bytes ends at %d", len(l.log), cut), dir, l.log[:cut], cut)
					points++
				}
			}
		}
		for _, cut := range []int{0, 1, logHeader - 1} {
			l.wants(fmt.Sprintf("the log ends at %d", cut), dir, l.log[:cut], cut)
			points++
		}
		t.Logf("%d points in a log of %d frames", points, (len(l.log)-logHeader)/frameSize)
	})
}

// A log with a wrong bit ends before the damaged frame.
func TestGarbledLog(t *testing.T) {
	if testing.Short() {
		t.Skip("make test runs this")
	}
	inBubble(t, func(t *testing.T) {
		l := newLogged(t)
		dir, points := t.TempDir(), 0
		flip := func(at, intact int) {
			log := slices.Clone(l.log)
			log[at] ^= 1 << (at % 8)
			l.wants(fmt.Sprintf("bit %d of byte %d is wrong", at%8, at), dir, log, intact)
			points++
		}
		offsets := []int{0, 3, 5, 7, 9, 15, 16, 23, frameHeader, frameHeader + 100, frameHeader + pageSize/2, frameSize - 1}
		for frame, at := 0, logHeader; at < len(l.log); frame, at = frame+1, at+frameSize {
			for i, off := range offsets {
				if diskFull || frame%20 == 0 && i == frame%len(offsets) {
					flip(at+off, at)
				}
			}
		}
		for at := range logHeader {
			if diskFull || at%5 == 0 {
				flip(at, 0)
			}
		}
		other := slices.Clone(l.log)
		copy(other[l.ends[2]:], l.log[:10*frameSize])
		l.wants("other frames in the middle", dir, other, l.ends[2])
		l.wants("rubbish behind the end", dir, append(slices.Clone(l.log), l.log[100:30000]...), len(l.log))
		t.Logf("%d points in a log of %d frames", points+2, (len(l.log)-logHeader)/frameSize)
	})
}

// After damage to the log, work continues with the restored commits.
func TestWorkAfterATruncatedLog(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		l := newLogged(t)
		for i, end := range l.ends {
			path := filepath.Join(t.TempDir(), "w.db")
			if err := errors.Join(os.WriteFile(path, l.db, 0o600), os.WriteFile(path+"-wal", l.log[:end-1], 0o600)); err != nil {
				t.Fatal(err)
			}
			f := fixtureOn(t, openFile(t, path))
			f.ids = l.ids
			f.enqueue(2)
			for claimed := f.claim("w", 1000); len(claimed) > 0; claimed = f.claim("w", 1000) {
				f.finish(claimed...)
			}
			got, bad, err := read(t, f.db)
			if err != nil || len(bad) > 0 {
				t.Fatalf("without the end of commit %d: %v %v", i, err, bad)
			}
			for j, sub := range l.subs {
				if n, _ := showsTasks(sub, "")(got); (n > 0) != (j < i) {
					t.Errorf("without the end of commit %d: commit %d has left %d rows", i, j, n)
				}
			}
			for id, task := range got.tasks {
				if !task.State.Terminal() {
					t.Errorf("without the end of commit %d: task %v is %s when all is done", i, id, task.State)
				}
			}
		}
	})
}

// A log of an unknown version is not discarded: Open returns an error that the file is
// unusable.
func TestLogOfAnotherVersion(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		l := newLogged(t)
		log := slices.Clone(l.log)
		binary.BigEndian.PutUint32(log[4:], 3007001)
		sign(log[:logHeader])
		_, _, err := lookAt(t, t.TempDir(), map[string][]byte{l.path: l.db, l.path + "-wal": log})
		if err == nil {
			t.Fatal("a log of another version was accepted")
		}
		failure(t, err, store.ErrUnavailable, "image.db")
		sign(l.log[:logHeader])
		l.wants("the log with its own signature", t.TempDir(), l.log, len(l.log))
	})
}

// sign writes the checksum of a log's header.
func sign(header []byte) {
	order := binary.ByteOrder(binary.LittleEndian)
	if header[3]&1 != 0 {
		order = binary.BigEndian
	}
	var a, b uint32
	for i := 0; i < 24; i += 8 {
		a += order.Uint32(header[i:]) + b
		b += order.Uint32(header[i+4:]) + a
	}
	binary.BigEndian.PutUint32(header[24:], a)
	binary.BigEndian.PutUint32(header[28:], b)
}
