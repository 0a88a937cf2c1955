package sqlstore

import (
	"strings"

	"github.com/goweaver/weaver/internal/lane"
	"github.com/goweaver/weaver/internal/rules"
	"github.com/goweaver/weaver/internal/sqlstmt"
	"github.com/goweaver/weaver/store"
)

// hints describes the hints that publishers are to send.
func (r *reader) hints() (store.HintsOverview, error) {
	var k lane.Key
	now := r.now.UnixMicro()
	unsent, refused, since := int64(0), int64(0), int64(lane.Empty)
	more := false
	for lanes := 0; ; {
		st := r.stmt(sqlNextLane).Text(1, r.ns).Text(2, k.Queue).Text(3, k.Type).Text(4, k.Group).Int(5, k.Priority)
		found, first := st.One(), int64(0)
		if found {
			k = lane.Key{Queue: st.ColName(0), Type: st.ColName(1), Group: st.ColName(2), Priority: st.ColInt(3)}
			first = st.ColInt(4)
		}
		if err := st.Done(); err != nil {
			return store.HintsOverview{}, err
		}
		if !found {
			break
		}
		if lanes++; lanes > store.MaxHintLanes {
			more = true
			break
		}
		if k.Group != "" || r.pausedQueues[k.Queue] || r.pausedTypes[k.Type] {
			continue
		}
		st = r.stmt(sqlUnsentOfLane).Text(1, r.ns).Text(2, k.Queue).Text(3, k.Type).Int(4, k.Priority).Int(5, now).Int(6, first).Int(7, rules.PublishLooks)
		for st.Next() {
			if strings.HasPrefix(st.ColText(4), store.HintRefused) {
				refused++
			}
			if until := st.ColInt(2); until <= now {
				unsent, since = unsent+1, min(since, max(st.ColInt(0), until))
			}
		}
		if err := st.Done(); err != nil {
			return store.HintsOverview{}, err
		}
	}
	got := store.HintsOverview{Unsent: r.count(unsent), Refused: r.count(refused)}
	got.Unsent.More, got.Refused.More = got.Unsent.More || more, got.Refused.More || more
	if unsent > 0 {
		got.Since = sqlstmt.Instant(since)
	}
	return got, nil
}
