package sqlstore

import (
	"time"

	"github.com/goweaver/weaver/internal/lane"
)

// sqlNextLane finds the lane after the given one by jumping over all rows of
// it: a loose index scan, one probe per lane. The place that it begins behind
// is the end of the lane, because SQLite takes (a, b) > (?, ?) for >= as it
// searches and passes over all rows that are equal.
const sqlNextLane = `
SELECT queue, task_type, priority, available_at FROM weaver_outbox_events
WHERE namespace = ?1 AND (queue, task_type, priority, available_at) > (?2, ?3, ?4, 9223372036854775807)
ORDER BY queue, task_type, priority, available_at LIMIT 1`

// readLanes reads the lanes into the cache if it must, or returns how much
// later the next reading is. Rows of this transaction that are rolled back
// leave a lane too many, which costs one probe.
func (t *Tx) readLanes() (wait time.Duration, err error) {
	start := time.Now()
	need, wait := t.db.Lanes().NeedsReading(t.ns, start)
	if !need {
		return wait, nil
	}
	read, err := t.db.ReadLanes(t)
	if err != nil {
		return 0, err
	}
	t.db.Lanes().Replace(t.ns, read, start, time.Since(start))
	return 0, nil
}

// ReadLanes reads the lanes one after the other.
func (t *Tx) ReadLanes() (map[lane.Key]int64, error) {
	read := make(map[lane.Key]int64)
	var k lane.Key
	for {
		st := t.stmt(sqlNextLane).Text(1, t.ns).Text(2, k.Queue).Text(3, k.Type).Int(4, k.Priority)
		found := st.One()
		if found {
			k = lane.Key{Queue: st.ColName(0), Type: st.ColName(1), Priority: st.ColInt(2)}
			read[k] = st.ColInt(3)
		}
		if err := st.Done(); err != nil || !found {
			return read, err
		}
	}
}
