package store_test

import (
	"bytes"
	"math"
	"math/rand"
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/goweaver/weaver/store"
)

// durations returns n durations from nanoseconds to years.
func durations(r *rand.Rand, n int) []time.Duration {
	list := make([]time.Duration, n)
	for i := range list {
		list[i] = time.Duration(math.Exp(r.Float64() * math.Log(float64(math.MaxInt64-1024))))
	}
	return list
}

func histogramOf(list []time.Duration) (h store.Histogram) {
	for _, d := range list {
		h.Add(d)
	}
	return h
}

// Every quantile is within 12.5 %, or 1 µs, of the true one.
func TestHistogramQuantiles(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewSource(1))
	for range 300 {
		list := durations(r, 1+r.Intn(200))
		if r.Intn(5) == 0 {
			list[0] = math.MaxInt64
		}
		h := histogramOf(list)
		slices.Sort(list)
		if h.Count() != int64(len(list)) {
			t.Fatalf("it counted %d of %d", h.Count(), len(list))
		}
		for _, q := range []float64{0, 0.01, 0.5, 0.9, 0.99, 1, r.Float64()} {
			rank := min(max(int(math.Ceil(q*float64(len(list)))), 1), len(list))
			want, got := list[rank-1], h.Quantile(q)
			if off := (got - want).Abs(); off > max(want/8, time.Microsecond) {
				t.Fatalf("quantile %v of %d durations is %v, want %v: %.1f %% off", q, len(list), got, want, 100*float64(off)/float64(want))
			}
		}
	}
}

func TestHistogramMerges(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewSource(2))
	merged := func(hs ...store.Histogram) (sum store.Histogram) {
		for _, h := range hs {
			sum.Merge(h)
		}
		return sum
	}
	for range 200 {
		lists := [][]time.Duration{durations(r, r.Intn(50)), durations(r, r.Intn(50)), durations(r, r.Intn(50))}
		a, b, c := histogramOf(lists[0]), histogramOf(lists[1]), histogramOf(lists[2])
		all := histogramOf(slices.Concat(lists...))
		for name, got := range map[string]store.Histogram{
			"(a+b)+c": merged(merged(a, b), c), "a+(b+c)": merged(a, merged(b, c)), "c+b+a": merged(c, b, a), "a+0+b+c": merged(a, store.Histogram{}, b, c),
		} {
			if !reflect.DeepEqual(got, all) {
				t.Fatalf("%s differs from what was counted together", name)
			}
		}
		before := a.Clone()
		kept := a.Clone()
		kept.Merge(b)
		if !reflect.DeepEqual(a, before) {
			t.Fatal("a clone shares memory")
		}
	}
}

func TestHistogramForm(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewSource(3))
	for i := range 200 {
		h := histogramOf(durations(r, i))
		raw, err := h.MarshalBinary()
		if err != nil {
			t.Fatal(err)
		}
		for _, form := range [][]byte{raw, append(slices.Clone(raw), "of a later version"...)} {
			var got store.Histogram
			if err := got.UnmarshalBinary(form); err != nil || !reflect.DeepEqual(got, h) {
				t.Fatalf("%x reads as another histogram: %v", form, err)
			}
		}
		for cut := range len(raw) {
			var got store.Histogram
			if err := got.UnmarshalBinary(raw[:cut]); err == nil {
				t.Fatalf("%x is a part of a histogram and was read", raw[:cut])
			}
		}
	}
	// Stored histograms stay readable.
	h := histogramOf([]time.Duration{-1, 0, 3 * time.Microsecond, time.Millisecond, time.Millisecond, time.Hour})
	raw, _ := h.MarshalBinary()
	if want := []byte{1, 4, 0, 2, 2, 1, 0x1f, 2, 0x56, 1}; !bytes.Equal(raw, want) {
		t.Errorf("the form is %#v, want %#v", raw, want)
	}
	for _, bad := range [][]byte{nil, {2, 0}, {1}, {1, 1, 0}, {1, 1, 0, 0}, {1, 1, 255, 255, 255, 255, 255, 255, 255, 255, 255, 1, 1}, {1, 2, 200, 1, 1, 200, 1, 1}} {
		if err := new(store.Histogram).UnmarshalBinary(bad); err == nil {
			t.Errorf("%v was read", bad)
		}
	}
}

func TestHistogramMean(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewSource(5))
	for i := 1; i < 200; i++ {
		all := durations(r, i)
		var sum float64
		for _, d := range all {
			sum += max(0, float64(d)) / float64(len(all))
		}
		if got := histogramOf(all).Mean(); math.Abs(float64(got)-sum) > sum/8+float64(2*time.Microsecond) {
			t.Fatalf("the mean of %v is %v, want %v", all, got, time.Duration(sum))
		}
	}
	if got := (store.Histogram{}).Mean(); got != 0 {
		t.Errorf("the mean of nothing is %v", got)
	}
	if got := histogramOf([]time.Duration{math.MaxInt64, math.MaxInt64}).Mean(); got < math.MaxInt64-math.MaxInt64/8 {
		t.Errorf("the mean of the longest is %v", got)
	}
}

func FuzzHistogram(f *testing.F) {
	f.Add([]byte{1, 1, 0, 1})
	f.Fuzz(func(t *testing.T, raw []byte) {
		var h store.Histogram
		if h.UnmarshalBinary(raw) != nil {
			return
		}
		again, err := h.MarshalBinary()
		var same store.Histogram
		if err != nil || same.UnmarshalBinary(again) != nil || !reflect.DeepEqual(h, same) {
			t.Errorf("%x is read and not written again", raw)
		}
		_ = h.Quantile(0.5)
	})
}
