package weaver

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/goweaver/weaver/ops"
	"github.com/goweaver/weaver/store"
)

// maxStatsReads is the maximum number of reads, of store.StatsLooks rows each, in one call of Stats.
const maxStatsReads = 20

const maxStatsSpan = 100 * 366 * 24 * time.Hour

// Stats returns statistics of attempts, which engines write every five seconds: newer attempts may be
// missing, and so may the last five seconds of a killed process.
//
// Errors: ErrInvalidOption, also for an answer of more than ops.MaxStatsRows rows;
// errors.ErrUnsupported from a store that keeps no statistics; those of the store.
func (c *Client) Stats(ctx context.Context, req ops.StatsRequest) (ops.Stats, error) {
	got, err := c.stats(ctx, req)
	switch {
	case errors.Is(err, store.ErrStatsQuery):
		return ops.Stats{}, fmt.Errorf("read statistics: %w: %w", ErrInvalidOption, err)
	case err != nil:
		return ops.Stats{}, fmt.Errorf("read statistics: %w", err)
	}
	return got, nil
}

func (c *Client) stats(ctx context.Context, req ops.StatsRequest) (ops.Stats, error) {
	if err := completeStats(&req, time.Now()); err != nil {
		return ops.Stats{}, err
	}
	if err := store.Require(c.given, store.CanKeepStats); err != nil {
		return ops.Stats{}, err
	}
	sums, err := readStats(ctx, &req, c.store, c.ns)
	if err != nil {
		return ops.Stats{}, err
	}
	got := ops.Stats{From: req.From, To: req.To, Step: req.Step, Rows: make([]ops.StatsRow, len(sums))}
	for i := range sums {
		s := &sums[i]
		got.Rows[i] = ops.StatsRow{
			From: s.Slot, Type: s.Type, Queue: s.Queue, Outcome: s.Outcome, ErrorKind: s.ErrorKind, Worker: string(s.Worker),
			Count: s.Count, Run: statsTimes(s.Run), Wait: statsTimes(s.Wait),
		}
	}
	return got, nil
}

// completeStats sets defaults, rounds values, and validates the request.
func completeStats(r *ops.StatsRequest, now time.Time) error {
	if r.To.IsZero() {
		r.To = now
	}
	if r.From.IsZero() {
		r.From = r.To.Add(-time.Hour)
	}
	switch {
	case !r.From.Before(r.To):
		return fmt.Errorf("%w: From is %s and To is %s: want From before To", ErrInvalidOption, r.From.Format(time.RFC3339), r.To.Format(time.RFC3339))
	case r.Step < 0:
		return fmt.Errorf("%w: Step is %s: want 0, for one row of the whole span, or more", ErrInvalidOption, r.Step)
	}
	span := r.To.Sub(r.From)
	if span > maxStatsSpan {
		return fmt.Errorf("%w: From is %s and To is %s: want at most 100 years", ErrInvalidOption, r.From.Format(time.RFC3339), r.To.Format(time.RFC3339))
	}
	for i, by := range r.By {
		switch {
		case !slices.Contains(ops.StatsBys(), by):
			return fmt.Errorf("%w: By[%d] is %q: want one of %v", ErrInvalidOption, i, by, ops.StatsBys())
		case slices.Contains(r.By[:i], by):
			return fmt.Errorf("%w: By[%d] is %q, as one before", ErrInvalidOption, i, by)
		}
	}
	r.To = r.To.UTC()
	roundStats(r, now, min(r.Step, maxStatsSpan))
	if r.Step > 0 && span/r.Step >= ops.MaxStatsRows {
		return fmt.Errorf("%w: Step is %s, of which the span has %d: want at most %d rows, so a longer Step or a shorter span", ErrInvalidOption, r.Step, span/r.Step, ops.MaxStatsRows)
	}
	return nil
}

// roundStats sets the Step, and rounds it and From to the stored width. From may then fall into wider
// slots, and is rounded again.
func roundStats(r *ops.StatsRequest, now time.Time, step time.Duration) {
	for from := r.From; ; from = r.From {
		width := statsWidth(from, now)
		r.Step = (step + width - 1) / width * width
		r.From = store.SlotOf(from, max(r.Step, width))
		if statsWidth(r.From, now) == width {
			return
		}
	}
}

// statsWidth returns the width of the slots stored for the time since an instant.
func statsWidth(from, now time.Time) time.Duration {
	switch {
	case from.Before(store.SlotOf(now.Add(-store.StatsHourAfter), time.Hour)):
		return time.Hour
	case from.Before(store.SlotOf(now.Add(-store.StatsMinuteAfter), time.Minute)):
		return time.Minute
	}
	return store.StatsSlot
}

// readStats reads the sums for a complete request.
func readStats(ctx context.Context, r *ops.StatsRequest, keeper store.Observe, ns string) ([]store.StatRow, error) {
	var sums []store.StatRow
	at := make(map[store.StatKey]int)
	q := store.StatsQuery{From: r.From, To: r.To, Step: r.Step, By: r.By, Type: r.Type, Queue: r.Queue}
	for range maxStatsReads {
		page, err := keeper.ReadStats(ctx, ns, q)
		if err != nil {
			return nil, err
		}
		for i := range page.Rows {
			row := &page.Rows[i]
			if r.Step == 0 {
				row.Slot = r.From
			}
			if j, known := at[row.StatKey]; known {
				sums[j].Add(row)
				continue
			}
			at[row.StatKey] = len(sums)
			sums = append(sums, *row)
		}
		if len(sums) > ops.MaxStatsRows {
			return nil, fmt.Errorf("%w: more than %d rows: want a longer Step, fewer fields in By, one Type or Queue, or a shorter span", ErrInvalidOption, ops.MaxStatsRows)
		}
		if page.Next.IsZero() {
			slices.SortFunc(sums, func(a, b store.StatRow) int { return a.Compare(&b.StatKey) })
			return sums, nil
		}
		q.From = page.Next
	}
	return nil, fmt.Errorf("%w: the span from %s to %s has more than one call reads: want a shorter one, such as to %s", ErrInvalidOption,
		r.From.Format(time.RFC3339), r.To.Format(time.RFC3339), q.From.UTC().Format(time.RFC3339))
}

func statsTimes(h store.Histogram) ops.StatsTimes {
	return ops.StatsTimes{P50: h.Quantile(0.5), P90: h.Quantile(0.9), P95: h.Quantile(0.95), P99: h.Quantile(0.99), Mean: h.Mean()}
}
