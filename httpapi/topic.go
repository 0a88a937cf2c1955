package httpapi

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/goweaver/weaver"
	"github.com/goweaver/weaver/ops"
	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/task"
)

// Minimum intervals between reads of a topic.
const (
	rowEvery  = 250 * time.Millisecond // of rows by id
	pageEvery = time.Second            // of pages and counts
)

// topicKind is one kind of topic.
type topicKind struct {
	name  string
	arg   string // the argument after the name and a colon, for messages; "" without one
	every time.Duration
	timed bool // it also changes as time passes
	most  int  // topics of one read; 0: one
	full  bool // rows have a form with values

	// check rejects a wrong argument, or one that the principal of the call may not watch. behind
	// is the number of characters before the argument. It sets further properties of the topic.
	check func(c *call, t *topicName, behind int) error
	// read reads topics: one view for each argument.
	read func(ctx context.Context, c *weaver.Client, args []string) []view
}

// topicKinds lists the kinds of topics.
var topicKinds = []topicKind{
	{name: "task", arg: "ID", every: rowEvery, most: 500, full: true, check: checkTopicID, read: readTasks},
	{name: "job", arg: "ID", every: rowEvery, check: checkTopicID, read: each(readJob)},
	{name: "tasks", arg: "QUERY", every: pageEvery, check: checkTopicQuery, read: each(readQuery)},
	{name: "counts", every: pageEvery, read: each(readCounts)},
	{name: "queues", every: pageEvery, timed: true, read: each(readQueues)},
	{name: "workers", every: pageEvery, timed: true, read: each(readWorkers)},
	{name: "inbox", every: pageEvery, read: each(readInbox)},
	{name: "stats", every: pageEvery, timed: true, read: each(readStats)},
}

// view is the result of reading a topic.
type view struct {
	rows []viewRow // in the order of display
	next string    // the cursor of the next page
	err  error     // if set, the other fields are empty
}

// viewRow is one row of a view. Its form depends on the access.
type viewRow struct {
	id    string // unique in the topic
	plain any    // for principals without the access payloads
	full  any    // for those with it, if the kind has it; nil: the same
}

// String returns the format of the kind's topics.
func (k *topicKind) String() string {
	if k.arg == "" {
		return k.name
	}
	return k.name + ":" + k.arg
}

// topicTexts returns the formats of all topics.
func topicTexts() (list []string) {
	for i := range topicKinds {
		list = append(list, topicKinds[i].String())
	}
	return list
}

// kindOf returns the kind of a topic and its argument.
func kindOf(topic string) (k *topicKind, arg string, err error) {
	name, arg, colon := strings.Cut(topic, ":")
	i := slices.IndexFunc(topicKinds, func(k topicKind) bool { return k.name == name })
	switch {
	case i < 0:
		var names []string
		for i := range topicKinds {
			names = append(names, topicKinds[i].name)
		}
		hint := ""
		if near := nearest(name, names); near != "" {
			hint = fmt.Sprintf(" (did you mean %s?)", near)
		}
		return nil, "", badTopic(topic, "there is no such topic%s; there are %s", hint, strings.Join(topicTexts(), ", "))
	case (topicKinds[i].arg == "") == colon:
		return nil, "", badTopic(topic, "it is written %s", &topicKinds[i])
	}
	return &topicKinds[i], arg, nil
}

// badTopic returns a problem with one topic.
func badTopic(topic, format string, args ...any) error {
	if len(topic) > 100 {
		topic = strings.ToValidUTF8(topic[:100], "") + "…"
	}
	return badParam("topic", "%q: "+format, append([]any{topic}, args...)...)
}

// topicsOf parses the requested topics.
func (c *call) topicsOf() (list []topicName, err error) {
	asked := c.r.URL.Query()["topic"]
	switch {
	case len(asked) == 0:
		return nil, badParam("topic", "missing: use one or more of %s", strings.Join(topicTexts(), ", "))
	case len(asked) > c.api.cfg.MaxTopics:
		return nil, badParam("topic", "there are %d: one stream has at most %d", len(asked), c.api.cfg.MaxTopics)
	}
	for _, text := range asked {
		k, arg, err := kindOf(text)
		if err != nil {
			return nil, err
		}
		name := topicName{text: text, kind: k, arg: arg, timed: k.timed}
		if k.check != nil {
			if err := k.check(c, &name, utf8.RuneCountInString(k.name)+1); err != nil {
				return nil, err
			}
		}
		if !slices.Contains(list, name) {
			list = append(list, name)
		}
	}
	return list, nil
}

// topicName is a parsed topic.
type topicName struct {
	text string
	kind *topicKind
	arg  string

	search bool // it needs more than an index
	timed  bool // it also changes as time passes
}

func checkTopicID(_ *call, t *topicName, _ int) error {
	if _, err := task.ParseID(t.arg); err != nil {
		return badTopic(t.arg, "%s", err)
	}
	return nil
}

func checkTopicQuery(c *call, t *topicName, behind int) error {
	q, p := c.parseQuery(t.arg)
	t.search, t.timed = !q.Exact(), q.Relative()
	if p == nil {
		return nil
	}
	at := &p.Errors[0]
	if at.Parameter = "topic"; at.Column > 0 {
		at.Column += behind
	}
	return p
}

// each reads topics one after the other.
func each(read func(ctx context.Context, c *weaver.Client, arg string) view) func(context.Context, *weaver.Client, []string) []view {
	return func(ctx context.Context, c *weaver.Client, args []string) []view {
		views := make([]view, len(args))
		for i, arg := range args {
			views[i] = read(ctx, c, arg)
		}
		return views
	}
}

func readTasks(ctx context.Context, c *weaver.Client, args []string) []view {
	views := make([]view, len(args))
	ids := make([]task.ID, len(args))
	for i, arg := range args {
		ids[i], views[i].err = task.ParseID(arg)
	}
	list, err := c.GetMany(ctx, ids...)
	found := make(map[task.ID]task.Task, len(list))
	for i := range list {
		found[list[i].ID] = list[i]
	}
	for i, id := range ids {
		switch t, exists := found[id]; {
		case err != nil:
			views[i].err = err
		case !exists:
			views[i].err = fmt.Errorf("task %s in namespace %q: %w", id, c.Namespace(), weaver.ErrNotFound)
		default:
			views[i].rows = []viewRow{{id: id.String(), plain: showTask(t, Read), full: showTask(t, Read|Payloads)}}
		}
	}
	return views
}

func readJob(ctx context.Context, c *weaver.Client, arg string) view {
	id, err := task.ParseID(arg)
	if err != nil {
		return view{err: err}
	}
	job, err := c.Job(ctx, id)
	if err != nil {
		return view{err: err}
	}
	return view{rows: []viewRow{{id: arg, plain: job}}}
}

// readQuery reads the first page of a query, whose relative times count from now.
func readQuery(ctx context.Context, c *weaver.Client, arg string) view {
	q, err := ops.ParseQuery(arg, time.Now())
	if err != nil {
		return view{err: err}
	}
	return readPage(ctx, c, q)
}

// readInbox reads the tasks that wait for a person.
func readInbox(ctx context.Context, c *weaver.Client, _ string) view {
	return readPage(ctx, c, ops.Query{Filter: weaver.Filter{States: []weaver.State{weaver.StateBlocked}}})
}

func readPage(ctx context.Context, c *weaver.Client, q ops.Query) view {
	page, err := c.Search(ctx, q)
	if err != nil {
		return view{err: err}
	}
	return view{next: page.Next, rows: rowsOf(showRows(page.Items), func(t *Task) string { return t.ID.String() })}
}

// rowsOf returns rows that all principals may see.
func rowsOf[T any](list []T, id func(*T) string) []viewRow {
	rows := make([]viewRow, len(list))
	for i := range list {
		rows[i] = viewRow{id: id(&list[i]), plain: list[i]}
	}
	return rows
}

// readCounts returns a row for each state, type and queue.
func readCounts(ctx context.Context, c *weaver.Client, _ string) view {
	counts, err := c.Counts(ctx)
	if err != nil {
		return view{err: err}
	}
	var v view
	for _, s := range task.States() {
		v.rows = append(v.rows, viewRow{id: "state:" + string(s), plain: counts.States[s]})
	}
	for _, name := range slices.Sorted(maps.Keys(counts.Types)) {
		v.rows = append(v.rows, viewRow{id: "type:" + name, plain: counts.Types[name]})
	}
	for _, name := range slices.Sorted(maps.Keys(counts.Queues)) {
		v.rows = append(v.rows, viewRow{id: "queue:" + name, plain: counts.Queues[name]})
	}
	return v
}

func readQueues(ctx context.Context, c *weaver.Client, _ string) view {
	list, err := c.Queues(ctx)
	if err != nil {
		return view{err: err}
	}
	return view{rows: rowsOf(list, func(q *store.Queue) string {
		if q.Type != "" {
			return "type:" + q.Type
		}
		return "queue:" + q.Name
	})}
}

func readWorkers(ctx context.Context, c *weaver.Client, _ string) view {
	list, err := c.Workers(ctx)
	if err != nil {
		return view{err: err}
	}
	typesAsLists(list)
	return view{rows: rowsOf(list, func(w *store.WorkerStatus) string { return string(w.ID) })}
}

// readStats reads the last hour, with a row for each minute and outcome.
func readStats(ctx context.Context, c *weaver.Client, _ string) view {
	now := time.Now()
	stats, err := c.Stats(ctx, ops.StatsRequest{From: now.Add(-time.Hour), To: now, Step: time.Minute, By: []store.StatBy{store.ByOutcome}})
	switch {
	case errors.Is(err, errors.ErrUnsupported):
		return view{err: notFound.of("The store keeps no statistics.")}
	case err != nil:
		return view{err: err}
	}
	return view{rows: rowsOf(stats.Rows, func(r *ops.StatsRow) string {
		return r.From.UTC().Format(time.RFC3339) + " " + string(r.Outcome)
	})}
}
