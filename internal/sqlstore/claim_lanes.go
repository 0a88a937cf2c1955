package sqlstore

import (
	"time"

	"github.com/goweaver/weaver/internal/lane"
)

// sqlNextLane finds the lane after the given lane by jumping over all of its rows: a loose
// index scan, one probe per lane. The search starts behind the end of the lane, because SQLite
// seeks with >= for (a, b) > (?, ?) and then passes over all equal rows.
const sqlNextLane = `
SELECT queue, task_type, lane_group, priority, available_at FROM weaver_outbox_events
WHERE namespace = ?1 AND (queue, task_type, lane_group, priority, available_at) > (?2, ?3, ?4, ?5, 9223372036854775807)
ORDER BY queue, task_type, lane_group, priority, available_at LIMIT 1`

// readLanes reads the lanes into the cache if necessary, or returns the time until the next
// reading. Rows of this transaction that are rolled back leave an extra lane in the cache,
// which costs one probe.
func (t *Tx) readLanes() (wait time.Duration, err error) {
	need, wait := t.db.Lanes().NeedsReading(t.ns, time.Now())
	if !need {
		return wait, nil
	}
	return 0, t.replaceLanes()
}

// replaceLanes reads the lanes into the cache.
func (t *Tx) replaceLanes() error {
	read, when, err := t.db.ReadLanes(t)
	if err != nil {
		return err
	}
	when.Now = t.mic
	t.db.Lanes().Replace(t.ns, read, when)
	return nil
}

// ReadLanes reads the lanes one after the other.
func (t *Tx) ReadLanes() (read map[lane.Key]int64, when lane.Reading, err error) {
	when.Since, when.At = t.db.Lanes().Version(), time.Now()
	read = make(map[lane.Key]int64)
	var k lane.Key
	for {
		st := t.stmt(sqlNextLane).Text(1, t.ns).Text(2, k.Queue).Text(3, k.Type).Text(4, k.Group).Int(5, k.Priority)
		found := st.One()
		if found {
			k = lane.Key{Queue: st.ColName(0), Type: st.ColName(1), Group: st.ColName(2), Priority: st.ColInt(3)}
			read[k] = st.ColInt(4)
		}
		if err := st.Done(); err != nil || !found {
			when.Took = time.Since(when.At)
			return read, when, err
		}
	}
}
