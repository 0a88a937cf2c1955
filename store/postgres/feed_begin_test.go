package postgres_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/goweaver/weaver/internal/pgtest"
	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/store/postgres"
	"github.com/goweaver/weaver/task"
)

// permitted creates a migrated database with the users of docs/postgres.md: one owns the tables,
// the other has only the rights granted there.
func permitted(t *testing.T) (owner, app string) {
	t.Helper()
	page, err := os.ReadFile("../../docs/postgres.md")
	if err != nil {
		t.Fatal(err)
	}
	_, text, _ := strings.Cut(string(page), "```sql\n")
	text, _, _ = strings.Cut(text, "```")
	url := pgtest.URL(t)
	name := parse(t, url).Config().Database // roles are global to the server
	grants := strings.Split(strings.NewReplacer("weaver_owner", "owner_"+name, "TO app;", "TO app_"+name+";").Replace(text), "\n")
	if len(grants) < 3 || !strings.HasPrefix(grants[0], "CREATE SCHEMA") || !strings.Contains(text, "GRANT USAGE ON SCHEMA") {
		t.Fatalf("docs/postgres.md grants\n%s", text)
	}
	admin := connect(t, url)
	for _, role := range []string{"owner_" + name, "app_" + name} {
		admin.exec("CREATE ROLE " + role + " LOGIN")
		t.Cleanup(func() {
			if _, err := admin.conn.Exec(context.Background(), "DROP OWNED BY "+role+"; DROP ROLE "+role); err != nil {
				t.Error(err)
			}
		})
	}
	admin.exec(grants[0])
	owner, app = strings.Replace(url, "postgres@", "owner_"+name+"@", 1), strings.Replace(url, "postgres@", "app_"+name+"@", 1)
	if err := migrateURL(owner); err != nil {
		t.Fatal(err)
	}
	for _, sql := range grants[1:] {
		admin.exec(sql)
	}
	return owner, app
}

// The rights granted in docs/postgres.md suffice for all work, also while the feed is on. Only the
// first start of the feed needs the tables' owner.
func TestFeedOfThoseWhoOnlyWork(t *testing.T) {
	t.Parallel()
	owner, app := permitted(t)
	w := &planWork{TB: t, db: openURL(t, app, postgres.LockFolder(t.TempDir())), ids: task.NewIDs(nil)}
	w.run()
	says(t, keepFeed(t.Context(), w.db, planNS, time.Hour), store.ErrReadOnly,
		"begin the feed of events: postgres://app_", "may not make the triggers", "begin it once as the owner of the tables")
	w.ok(keepFeed(t.Context(), openURL(t, owner), planNS, time.Hour))

	w.run()
	ids := w.enqueue(1)
	fins := []store.Finish{{Lease: w.claimWork(1)[0].Lease, Outcome: task.OutcomeSuccess, CodeVersion: 1}}
	fins[0].Events = []store.EventRow{{Seq: 1 << 32, Type: "step.started", At: time.Now(), Body: []byte(`{}`)}, {Seq: 1<<32 + 1, Type: "log.line", At: time.Now(), Body: []byte(`{}`), Log: true}}
	w.finish(fins...)
	kinds := map[store.FeedKind]bool{}
	var last []store.FeedKind
	w.feedIsThere()
	for after := int64(0); ; {
		page, err := w.db.Feed(t.Context(), planNS, store.FeedRequest{After: after})
		w.ok(err)
		for _, row := range page.Rows {
			if kinds[row.Kind] = true; row.Task == ids[0] {
				last = append(last, row.Kind)
			}
		}
		if after = page.Next; !page.More {
			break
		}
	}
	if want := fmt.Sprint([]store.FeedKind{store.FeedEnqueued, store.FeedStarted, store.FeedEvent, store.FeedLog, store.FeedEnded}); fmt.Sprint(last) != want {
		t.Errorf("the feed tells %v of a task, want %v", last, want)
	}
	for _, kind := range []store.FeedKind{store.FeedOver, store.FeedReopened, store.FeedSettled} {
		if !kinds[kind] {
			t.Errorf("the feed has no row %q", kind)
		}
	}
	before, err := feedState(t.Context(), w.db, planNS)
	w.ok(err)
	for _, keep := range []time.Duration{2 * time.Hour, 0, time.Hour} { // now the user has the rights
		w.ok(keepFeed(t.Context(), w.db, planNS, keep))
	}
	_, err = w.db.Collect(t.Context(), planNS, store.CollectRequest{Feed: true})
	w.ok(err)
	if after, err := feedState(t.Context(), w.db, planNS); err != nil || !after.On || after.Kept <= before.Newest {
		t.Errorf("the feed that ended after %d and began again is %+v, %v", before.Newest, after, err)
	}
	var refused interface{ SQLState() string }
	if _, err := connect(t, app).conn.Exec(t.Context(), "CREATE TEMPORARY TABLE mine (namespace text); CREATE TRIGGER forge AFTER INSERT ON mine REFERENCING NEW TABLE AS added FOR EACH STATEMENT EXECUTE FUNCTION weaver_feed_enqueued()"); !errors.As(err, &refused) || refused.SQLState() != "42501" {
		t.Errorf("a user who only works makes a trigger that writes the feed: %v", err)
	}
}

// feedIsThere waits until no transaction, e.g. of another test, holds the feed back.
func (w *planWork) feedIsThere() {
	w.Helper()
	eventually(w, "all of the feed is there", func() bool {
		state, err := feedState(w.Context(), w.db, planNS)
		w.ok(err)
		return state.Newest == state.Last
	})
}

// made returns the number of triggers of the feed.
func (u *user) made() string {
	u.Helper()
	return u.texts(`SELECT count(*)::text FROM pg_trigger WHERE tgname LIKE 'weaver\_feed\_%'`)[0]
}

// The first start locks one table at a time, so that transactions that write to several tables
// continue. The triggers of an interrupted start have no effect until a later start completes.
func TestFeedBeginsBesideWriters(t *testing.T) {
	t.Parallel()
	w := lockWork(t)
	u := connect(t, w.db.RawURL())
	tx := w.locking("UPDATE weaver.weaver_events SET seq = seq WHERE false")
	begin := func(ctx context.Context, table string) chan error {
		t.Helper()
		done := make(chan error, 1)
		go func() { done <- keepFeed(ctx, w.db, planNS, time.Hour) }()
		const waits = "SELECT count(*)::text FROM pg_locks l JOIN pg_database d ON d.oid = l.database WHERE NOT granted AND d.datname = current_database() AND relation = $1::regclass"
		eventually(t, "KeepFeed waits for who writes to "+table, func() bool {
			if len(done) > 0 {
				t.Fatalf("KeepFeed does not wait for who writes to %s", table)
			}
			return u.texts(waits, table)[0] != "0"
		})
		return done
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := begin(ctx, "weaver_events")
	_, err := tx.Exec(t.Context(), "UPDATE weaver.weaver_tasks SET state = state WHERE false; UPDATE weaver.weaver_attempts SET attempt_no = attempt_no WHERE false")
	w.ok(err) // it waits for no lock
	cancel()
	if err := <-done; !errors.Is(err, context.Canceled) {
		t.Errorf("KeepFeed that was interrupted: %v", err)
	}
	if n := u.made(); n == "0" || n == "6" {
		t.Errorf("%s triggers were made before it was interrupted, want some", n)
	}
	w.ok(tx.Rollback(t.Context()))
	w.enqueue(1)
	w.succeed(w.claimWork(1)...)
	if state, err := feedState(t.Context(), w.db, planNS); err != nil || state != (store.FeedState{}) {
		t.Errorf("a feed that never began is %+v, %v", state, err)
	}

	tx = w.locking("UPDATE weaver.weaver_jobs SET state = state WHERE false")
	done = begin(t.Context(), "weaver_jobs")
	w.enqueue(1) // also during the wait
	w.ok(tx.Rollback(t.Context()))
	w.ok(<-done)
	if n := u.made(); n != "6" {
		t.Errorf("%s triggers were made, want 6", n)
	}
	id := w.enqueue(1)[0]
	w.succeed(w.claimWork(2)...)
	w.feedIsThere()
	page, err := w.db.Feed(t.Context(), planNS, store.FeedRequest{Task: id})
	w.ok(err)
	if len(page.Rows) != 3 {
		t.Errorf("the feed tells of a task %+v, want three rows", page.Rows)
	}
}

// Several processes start the feed during writes, and no transaction fails.
func TestFeedBeginsUnderLoad(t *testing.T) {
	t.Parallel()
	w := lockWork(t)
	ctx, stop := context.WithCancel(t.Context())
	var all sync.WaitGroup
	for i := range 4 {
		queue := fmt.Sprint("load", i)
		all.Go(func() {
			for ctx.Err() == nil {
				n := w.draft(func(n *task.New) { n.Queue, n.Type = queue, "acme."+queue+".v1" })
				job := task.NewJob{ID: w.ids.New(), Name: "load"}
				n.Node = "a"
				_, err := w.db.Enqueue(t.Context(), planNS, nil, store.Submission{Job: &job, Tasks: []task.New{n}})
				var got store.ClaimResult
				if err == nil {
					got, err = w.db.Claim(t.Context(), planNS, store.ClaimRequest{
						Worker: "w", Name: "host:1", LeaseID: task.NewLeaseID(), TTL: workTTL, Limit: 10, Slots: 1000, Types: map[string]int{n.Type: 1},
					})
				}
				for _, c := range got.Tasks {
					if err == nil {
						_, err = w.db.Finish(t.Context(), planNS, store.Finish{
							Lease: c.Lease, Outcome: task.OutcomeSuccess, CodeVersion: 1,
							Events: []store.EventRow{{Seq: 1 << 32, Type: "step.started", At: time.Now(), Body: []byte(`{}`)}},
						})
					}
				}
				if err != nil {
					t.Errorf("beside the begin of the feed: %v", err)
					return
				}
			}
		})
	}
	var begins sync.WaitGroup
	for range 3 {
		db := openURL(t, w.db.RawURL())
		begins.Go(func() {
			if err := keepFeed(t.Context(), db, planNS, time.Hour); err != nil {
				t.Errorf("KeepFeed: %v", err)
			}
		})
	}
	begins.Wait()
	stop()
	all.Wait()
	u := connect(t, w.db.RawURL())
	if n := u.made(); n != "6" {
		t.Errorf("%s triggers were made, want 6", n)
	}
}

// The position up to which rows are pruned never decreases, also if the retention changes
// meanwhile.
func TestFeedIsPrunedMeanwhile(t *testing.T) {
	t.Parallel()
	w := lockWork(t)
	w.ok(keepFeed(t.Context(), w.db, planNS, time.Hour))
	w.enqueue(9)
	tx := w.locking("UPDATE weaver.weaver_feeds SET pruned = 7 WHERE namespace = $1", planNS)
	done := make(chan error, 1)
	go func() { done <- keepFeed(t.Context(), w.db, planNS, 2*time.Hour) }()
	u := connect(t, w.db.RawURL())
	eventually(t, "KeepFeed waits for the row", func() bool {
		return u.texts("SELECT count(*)::text FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock' AND query LIKE '%weaver_feeds%'")[0] != "0"
	})
	w.ok(tx.Commit(t.Context()))
	w.ok(<-done)
	if state, err := feedState(t.Context(), w.db, planNS); err != nil || state.Kept != 7 {
		t.Errorf("the feed of which 7 rows were removed meanwhile is %+v, %v", state, err)
	}
}

// After a failover the new server may hand out lower positions: a running process waits again for
// the transactions that draw them.
func TestFeedGoesBack(t *testing.T) {
	t.Parallel()
	w := lockWork(t)
	w.ok(keepFeed(t.Context(), w.db, planNS, time.Hour))
	w.enqueue(9)
	reader := &feedReader{T: t, db: w.db, ns: planNS, seen: map[task.ID]int{}}
	reader.until(9)
	u := connect(t, w.db.RawURL())
	u.exec("DELETE FROM weaver_feed WHERE pos > 3")
	u.exec("SELECT setval('weaver_feed_pos', 3)")
	if state, err := feedState(t.Context(), w.db, planNS); err != nil || state.Newest > 3 || state.Last != 3 {
		t.Errorf("the feed that went back to 3 is %+v, %v", state, err)
	}
	slow, err := w.db.Pool().Begin(t.Context())
	w.ok(err)
	sub := store.Submission{Tasks: []task.New{w.draft()}}
	_, err = w.db.Enqueue(t.Context(), planNS, postgres.Tx(slow), sub) // draws 4
	w.ok(err)
	w.enqueue(1)
	if state, err := feedState(t.Context(), w.db, planNS); err != nil || state.Newest > 3 || state.Last != 5 {
		t.Errorf("while a transaction with position 4 goes on the feed is %+v, %v", state, err)
	}
	w.ok(slow.Commit(t.Context()))
	again := &feedReader{T: t, db: w.db, ns: planNS, after: 3, seen: map[task.ID]int{}}
	again.until(2)
}

// keepFeed begins, changes or ends the feed of a namespace.
func keepFeed(ctx context.Context, db *postgres.DB, ns string, keep time.Duration) error {
	got, err := db.Operate(ctx, ns, store.KeepFeed{Keep: keep})
	if err != nil {
		return err
	}
	return got[0].Err
}

func feedState(ctx context.Context, db *postgres.DB, ns string) (store.FeedState, error) {
	page, err := db.Feed(ctx, ns, store.FeedRequest{StateOnly: true})
	return page.FeedState, err
}
