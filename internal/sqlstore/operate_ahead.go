package sqlstore

import (
	"cmp"
	"maps"
	"slices"

	"github.com/goweaver/weaver/internal/rules"
	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/task"
)

const (
	// setAhead is the number of commands read first. If most of them went in sets, all
	// remaining commands are read next.
	setAhead = 64
	// maxChores is the maximum number of a namespace's chores to read.
	maxChores = 1000
)

// lookahead holds the commands of a transaction that were read ahead.
type lookahead struct {
	tx    *Tx
	off   bool
	left  int // commands that were read but not applied yet
	apart map[task.ID]*target
	most  bool // most of the earlier commands went in sets
}

// apply applies the first commands of a list together and returns their number. 0 means that
// the first command is applied alone.
func (l *lookahead) apply(cmds []store.Command, got []store.CommandResult) (n int, err error) {
	if l.tx.bulk == nil || l.off {
		return 0, nil
	}
	if l.left == 0 {
		if err := l.look(cmds); err != nil {
			return 0, err
		}
	}
	verb, _ := setVerb(cmds[0])
	set := verbSet{tx: l.tx, moves: moves{tx: l.tx}, verb: verb}
	for n < min(l.left, rules.MaxMoves-l.tx.moved) {
		_, id := setVerb(cmds[n])
		w := l.apart[id]
		if w == nil || rules.CheckCommand(cmds[n]) != nil || !set.add(cmds[n], w, &got[n]) {
			break
		}
		n++
	}
	l.left -= max(n, 1)
	if n == 0 {
		return 0, nil
	}
	return n, set.write()
}

// look locks and reads the tasks of the next commands of one verb.
func (l *lookahead) look(cmds []store.Command) error {
	l.left, l.apart = 1, nil
	limit := rules.MaxMoves - l.tx.moved
	if !l.most {
		limit = min(limit, setAhead)
	}
	verb, _ := setVerb(cmds[0])
	if verb == NoSet {
		return nil
	}
	var ids []task.ID
	times := make(map[task.ID]int)
	for i := range cmds[:min(limit, len(cmds))] {
		v, id := setVerb(cmds[i])
		if v != verb {
			break
		}
		if times[id]++; times[id] == 1 {
			ids = append(ids, id)
		}
		l.left = i + 1
	}
	if len(ids) < 2 {
		return nil
	}
	if err := l.read(verb, ids); err != nil {
		return err
	}
	for id, n := range times {
		if n > 1 { // the second command depends on the result of the first
			delete(l.apart, id)
		}
	}
	l.most = len(l.apart) > len(ids)/2
	return nil
}

const sqlChoresOf = `SELECT subject, root FROM weaver_chores WHERE namespace = ?1 LIMIT ?2 + 0`

// read locks and reads tasks, and keeps the tasks that share nothing with others.
func (l *lookahead) read(verb SetVerb, ids []task.ID) error {
	t := l.tx
	slices.SortFunc(ids, task.ID.Compare)
	st := t.bulk.Targets(t, ids).Send() // sent first: the other statements must see the state under the locks
	beside := t.bulk.Beside(t, verb, ids, rules.MaxMoves/2).Send()
	busy := t.stmt(sqlChoresOf).Text(1, t.ns).Int(2, maxChores).Send()
	l.apart = make(map[task.ID]*target, len(ids))
	for st.Next() {
		w := new(target)
		if scanTarget(st.Row(), w); w.apart(verb) {
			l.apart[w.id] = w
		}
	}
	err := st.Done()
	for beside.Next() {
		delete(l.apart, beside.ColID(0))
	}
	err = cmp.Or(err, beside.Done())
	n, left := 0, make(map[task.ID]bool)
	for ; busy.Next(); n++ { // tasks or jobs that are being removed or revived
		left[busy.ColID(0)], left[busy.ColID(1)] = true, true
	}
	delete(left, task.ID{}) // no root
	maps.DeleteFunc(l.apart, func(id task.ID, w *target) bool { return n == maxChores || left[id] || left[w.job] })
	return cmp.Or(err, busy.Done())
}
