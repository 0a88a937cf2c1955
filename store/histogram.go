package store

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"math/bits"
	"slices"
	"time"
)

// Histogram counts durations in exponential buckets: four for each power of two, in microseconds. Its
// answers are within 12.5 % or 1 µs, whichever is more, from a microsecond to centuries. Histograms of
// the same quantity can be merged in any order and grouping. The zero value is empty. A Histogram is
// not safe for concurrent use.
//
// Durations below 4 µs have a bucket for each microsecond.
type Histogram struct {
	counts []uint64 // by bucket; the last count is not 0
}

// Bucket counts: per octave (from one power of two to the next), and in total for the longest
// duration.
const (
	octaveBits  = 2
	octave      = 1 << octaveBits
	histBuckets = 209
)

// bucketOf returns the bucket of a duration; a negative one counts as 0.
func bucketOf(d time.Duration) int {
	v := uint64(max(0, d.Microseconds()))
	if v < octave {
		return int(v)
	}
	shift := bits.Len64(v) - 1 - octaveBits
	return shift*octave + int(v>>shift)
}

// bucketRange returns the smallest duration of a bucket and the bucket's width.
func bucketRange(i int) (low, width time.Duration) {
	if i < octave {
		return time.Duration(i) * time.Microsecond, time.Microsecond
	}
	shift := i/octave - 1
	low = time.Duration(octave+i%octave) << shift
	return low * time.Microsecond, (time.Duration(1) << shift) * time.Microsecond
}

// Add counts a duration; a negative one counts as 0.
func (h *Histogram) Add(d time.Duration) { h.add(bucketOf(d), 1) }

func (h *Histogram) add(bucket int, n uint64) {
	if n == 0 {
		return
	}
	if bucket >= len(h.counts) {
		h.counts = append(h.counts, make([]uint64, bucket+1-len(h.counts))...)
	}
	h.counts[bucket] = addCounts(h.counts[bucket], n)
}

// addCounts adds two counts and saturates at the maximum.
func addCounts(a, b uint64) uint64 {
	if a > math.MaxInt64-b {
		return math.MaxInt64
	}
	return a + b
}

// Merge adds the counts of another histogram.
func (h *Histogram) Merge(other Histogram) {
	for i, n := range other.counts {
		h.add(i, n)
	}
}

// Count returns the number of counted durations.
func (h Histogram) Count() int64 {
	var n uint64
	for _, c := range h.counts {
		n = addCounts(n, c)
	}
	return int64(n)
}

// Quantile returns the q-quantile of the counted durations: 0.5 is the median, 0 the shortest, 1 the
// longest. The answer is the middle of its bucket, or 0 for an empty histogram.
func (h Histogram) Quantile(q float64) time.Duration {
	n := h.Count()
	if n == 0 {
		return 0
	}
	rank := uint64(min(max(int64(math.Ceil(q*float64(n))), 1), n))
	var seen uint64
	for i, c := range h.counts {
		if seen = addCounts(seen, c); seen >= rank {
			low, width := bucketRange(i)
			return low + min((width/2).Truncate(time.Microsecond), math.MaxInt64-low)
		}
	}
	return 0
}

// Mean returns the mean of the counted durations, computed from the middles of their buckets, or 0 for
// an empty histogram.
func (h Histogram) Mean() time.Duration {
	var n, sum float64
	for i, c := range h.counts {
		low, width := bucketRange(i)
		n += float64(c)
		sum += float64(c) * (float64(low) + float64((width / 2).Truncate(time.Microsecond)))
	}
	switch {
	case n == 0:
		return 0
	case sum/n >= math.MaxInt64:
		return math.MaxInt64
	}
	return time.Duration(sum / n).Truncate(time.Microsecond)
}

// Clone returns a copy that shares nothing with h.
func (h Histogram) Clone() Histogram { return Histogram{slices.Clone(h.counts)} }

// histogramV1 is the first byte of the stored encoding.
const histogramV1 = 1

// AppendBinary implements encoding.BinaryAppender. The encoding is the version, the number of nonempty
// buckets, then for each the distance to the previous one and the count, as varints. A later version
// may only append to it.
func (h Histogram) AppendBinary(b []byte) ([]byte, error) {
	used := 0
	for _, c := range h.counts {
		if c > 0 {
			used++
		}
	}
	b = binary.AppendUvarint(append(b, histogramV1), uint64(used))
	last := -1
	for i, c := range h.counts {
		if c > 0 {
			b = binary.AppendUvarint(b, uint64(i-last-1))
			b = binary.AppendUvarint(b, c)
			last = i
		}
	}
	return b, nil
}

// MarshalBinary implements encoding.BinaryMarshaler; see AppendBinary.
func (h Histogram) MarshalBinary() ([]byte, error) { return h.AppendBinary(nil) }

// UnmarshalBinary implements encoding.BinaryUnmarshaler. It ignores bytes after the buckets, which a
// later version may append.
func (h *Histogram) UnmarshalBinary(b []byte) error {
	if len(b) == 0 || b[0] != histogramV1 {
		return fmt.Errorf("a histogram in a form that this program does not know (%.4x): use the newer weaver", b)
	}
	b = b[1:]
	next := func() (v uint64, ok bool) {
		v, n := binary.Uvarint(b)
		if n <= 0 {
			return 0, false
		}
		b = b[n:]
		return v, true
	}
	used, ok := next()
	if !ok || used > histBuckets {
		return errHistogram
	}
	var got Histogram
	at := uint64(0)
	for range used {
		gap, ok := next()
		n, ok2 := next()
		if !ok || !ok2 || gap >= histBuckets || at+gap >= histBuckets || n == 0 || n > math.MaxInt64 {
			return errHistogram
		}
		got.add(int(at+gap), n)
		at += gap + 1
	}
	*h = got
	return nil
}

var errHistogram = errors.New("the bytes of a histogram are damaged")
