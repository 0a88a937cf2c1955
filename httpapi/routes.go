package httpapi

import (
	"encoding/json"
	"net/http"
	"reflect"
	"slices"

	"github.com/goweaver/weaver"
	"github.com/goweaver/weaver/ops"
	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/task"
)

const (
	get  = http.MethodGet
	post = http.MethodPost
	del  = http.MethodDelete
)

// Parameters that several routes have.
var (
	ifMatch        = param{name: "If-Match", in: "header", typ: "string", summary: "The ETag with which the task was read: if it has changed since, nothing happens (412)."}
	idempotencyKey = param{name: "Idempotency-Key", in: "header", typ: "string", summary: "The idempotency key: what has it already is returned."}
	reason         = func(b *verbRequest) string { return b.Reason }

	pageParams = []param{
		query("limit", "integer", "The most rows of the page: 1 to 1,000; default 50."),
		query("after", "string", "The cursor `next` of the page before, or any id: what is older than that."),
	}
	waitParams = []param{
		query("wait", "string", "How long to wait, as 30s; at most 60s."),
		query("through_blocked", "boolean", "With wait: go on waiting while it is blocked."),
	}
	whyParams    = []param{query("depth", "integer", "Over how many tasks to follow needs towards the root cause: 1 to 100; default 10.")}
	filterParams = slices.Concat([]param{
		query("q", "string", "A query: all of its terms must hold, and so must the other parameters."),
		query("state", "string", "Only tasks in this state; several with commas.").repeated(),
		query("type", "string", "Only tasks of this type, or of all that begin as in acme.billing.*; several with commas.").repeated(),
		query("queue", "string", "Only tasks of this queue."),
		query("parent", "string", "Only children of this task."),
		query("label", "string", "Only tasks with this label, as team=pay; repeated: with all of them.").repeated(),
		query("waiting", "string", "Only tasks that wait for this; several with commas.").repeated(),
		query("error", "string", "Only tasks whose last error is of this kind; several with commas.").repeated(),
		query("created_after", "date-time", "Only tasks that were enqueued then or later."),
		query("created_before", "date-time", "Only tasks that were enqueued earlier."),
	}, pageParams)
)

// routes are all operations of the API, in the order of the document.
func (a *API) routes() []route {
	list := slices.Concat(a.taskRoutes(), a.taskVerbs(), a.jobRoutes(), a.serverRoutes())
	if a.cfg.Login == nil {
		list = slices.DeleteFunc(list, func(r route) bool { return r.id == "login" || r.id == "logout" })
	}
	for i := range list {
		list[i].boundBody(a.cfg.MaxBody)
	}
	return list
}

func (a *API) taskRoutes() []route {
	of := func(name, id, summary string, access Access, answers []answer, handle func(*call) error) route {
		return route{method: get, pattern: "/v1/tasks/{id}/" + name, id: id, summary: summary, access: access, answers: answers, handle: handle}
	}
	return []route{
		{method: post, pattern: "/v1/tasks", id: "enqueueTask", summary: "Enqueue a task.", access: Submit, params: []param{idempotencyKey}, body: typeOf[Draft](), maxBody: a.cfg.MaxInput, answers: created[Enqueued]("The task is durable."), handle: (*call).enqueueTask},
		{method: post, pattern: "/v1/tasks/batch", id: "enqueueTasks", summary: "Enqueue several tasks, all or none.", access: Submit, body: typeOf[batchRequest](), maxBody: a.cfg.MaxInput, answers: []answer{{status: 201, typ: typeOf[List[Enqueued]](), summary: "The tasks are durable; in the order of the request."}}, handle: (*call).enqueueBatch},
		{method: post, pattern: "/v1/tasks/bulk", id: "changeTasks", summary: "Retry, cancel, delete or unblock up to 1,000 tasks, or in a dry run tell what that would do; next goes on.", access: Read | Operate, body: typeOf[BulkRequest](), answers: ok[BulkResult]("What was done."), handle: (*call).bulk},
		{method: get, pattern: "/v1/tasks", id: "listTasks", summary: "List tasks, newest first, without their values.", access: Read, params: slices.Concat(filterParams, []param{query("job", "string", "Only tasks of this job.")}), answers: ok[Found]("A page."), handle: (*call).listTasks},
		{method: get, pattern: "/v1/tasks/{id}", id: "getTask", summary: "Read a task; with ?wait= when it has ended, is blocked, or the time is up.", access: Read, params: waitParams, answers: ok[Task]("The task.", "ETag"), handle: (*call).getTask},
		of("history", "getTaskHistory", "Everything recorded about a task but events and logs.", Read, ok[History]("The history.", "ETag"), (*call).taskHistory),
		of("attempts", "listAttempts", "The attempts of a task, by number.", Read, ok[List[task.Attempt]]("All of them."), part(func(h *store.History) []task.Attempt { return h.Attempts })),
		of("decisions", "listDecisions", "What was decided after the attempts of a task.", Read, ok[List[task.Decision]]("All of them."), part(func(h *store.History) []task.Decision { return h.Decisions })),
		of("steps", "listSteps", "The steps of a task.", Read, ok[List[task.Step]]("All of them."), part(func(h *store.History) []task.Step { return h.Steps })),
		of("artifacts", "listTaskArtifacts", "The artifacts of a task.", Read, ok[List[task.Artifact]]("All of them."), part(func(h *store.History) []task.Artifact { return h.Artifacts })),
		of("needs", "listNeeds", "What a task needs, its children among it.", Read, ok[List[store.Need]]("All of them."), part(func(h *store.History) []store.Need { return h.Needs })),
		{method: get, pattern: "/v1/tasks/{id}/why", id: "explainTask", summary: "Explain where a task stands, what it waits for and what lets it go on.", access: Read, params: whyParams, answers: ok[Explanation]("The explanation."), handle: (*call).taskWhy},
		of("undo", "getUndoPlan", "What a task did: what is undone if it ends without success, in that order, what stays, and what was undone.", Read, ok[task.UndoPlan]("The plan, without values."), (*call).undoPlan),
		{method: get, pattern: "/v1/tasks/{id}/children", id: "listChildren", summary: "List the tasks that a task stored, newest first, without their values.", access: Read, params: slices.DeleteFunc(slices.Clone(filterParams), func(p param) bool { return p.name == "parent" }), answers: ok[Found]("A page."), handle: (*call).taskChildren},
		{method: get, pattern: "/v1/artifacts/{id}", id: "getArtifact", summary: "Read the bytes of an artifact, whole: there are no ranges.", access: Read | Payloads, params: []param{query("task", "string", "The task that has it. Tasks that took over steps of others (rerun) have artifacts of the same id: without it, the oldest of them.")}, answers: []answer{{status: 200, media: anyMedia, headers: []string{"Content-Disposition"}, summary: "The bytes, of the Content-Type that the artifact has."}}, handle: (*call).artifact},
		{method: get, pattern: "/v1/tasks/{id}/events", id: "listTaskEvents", summary: "What happened to a task, the oldest first: what weaver run -o json prints of it.", access: Read, params: []param{query("limit", "integer", "About how many events the page has: 1 to 1,000; default 100."), query("after", "string", "The cursor `next` of the page before, or the sequence of an event.")}, answers: ok[Page[json.RawMessage]]("A page."), handle: (*call).taskEvents},
		{method: get, pattern: "/v1/tasks/{id}/logs", id: "getLogs", summary: "What a task wrote: of a command what one attempt wrote, of another task the lines that its engine stored.", access: Read | Payloads, params: []param{query("attempt", "integer", "Of this attempt. Default: of a command the last one, of another task all."), query("tail", "integer", "Only so many bytes of its end, from the beginning of a line: at most 1 MiB.")}, answers: []answer{{status: 200, media: "text/plain", summary: "What it wrote, as it is."}}, handle: (*call).logs},
		of("payloads/{what}", "getPayload", "The input, output or unblock_input of a task.", Read|Payloads, ok[Value]("The value, masked as the task says."), (*call).payload),
		of("payloads/steps/{name}", "getStepPayload", "What a step gave.", Read|Payloads, ok[Value]("The value, masked as the step says."), (*call).stepPayload),
	}
}

func (a *API) taskVerbs() []route {
	of := func(name, id, summary string, body reflect.Type, handle func(*call) error) route {
		return route{method: post, pattern: "/v1/tasks/{id}/" + name, id: id, summary: summary, access: Read | Operate, params: []param{ifMatch}, body: body, answers: ok[Task]("The task as it is then.", "ETag"), handle: handle}
	}
	rerun := of("rerun", "rerunTask", "Repeat a task as a new one.", typeOf[rerunRequest](), (*call).rerunTask)
	rerun.params = []param{ifMatch, idempotencyKey}
	rerun.more = "with input, or with options in with, submit, too"
	repair := of("repair", "repairTask", "Give a task that cannot read its input another one.", typeOf[repairRequest](), verb(func(b *repairRequest) string { return b.Reason }, repairTask))
	repair.access |= Submit
	rerun.answers = created[Enqueued]("The new task.")
	signal := of("signal", "signalTask", "Send a task a signal.", typeOf[signalRequest](), verb(func(b *signalRequest) string { return b.Reason }, signalTask))
	signal.params = append(signal.params, idempotencyKey)
	return []route{
		of("cancel", "cancelTask", "Cancel a task.", typeOf[cancelRequest](), verb(func(b *cancelRequest) string { return b.Reason }, cancelTask)),
		of("retry", "retryTask", "Start a failed or cancelled task again.", typeOf[taskRetryRequest](), verb(func(b *taskRetryRequest) string { return b.Reason }, retryTask)),
		rerun,
		of("unblock", "unblockTask", "Let a blocked task go on.", typeOf[unblockRequest](), verb(func(b *unblockRequest) string { return b.Reason }, unblockTask)),
		signal,
		repair,
		of("reschedule", "rescheduleTask", "Start a task that waits for a time now, or at another time.", typeOf[rescheduleRequest](), verb(func(b *rescheduleRequest) string { return b.Reason }, rescheduleTask)),
		of("pause", "pauseTask", "Keep a task from starting until it is resumed.", typeOf[verbRequest](), verb(reason, pauseTask)),
		of("resume", "resumeTask", "End the pause of a task.", typeOf[verbRequest](), verb(reason, resumeTask)),
		{method: del, pattern: "/v1/tasks/{id}", id: "deleteTask", summary: "Delete an ended task outside jobs, and its records.", access: Read | Operate, params: []param{ifMatch, query("reason", "string", "Why, for the audit.")}, answers: []answer{{status: 204, summary: "It is gone."}}, handle: (*call).deleteTask},
	}
}

func (a *API) jobRoutes() []route {
	return []route{
		{method: post, pattern: "/v1/jobs", id: "submitJob", summary: "Submit a job.", access: Submit, params: []param{idempotencyKey}, body: typeOf[JobDraft](), maxBody: a.cfg.MaxInput, answers: created[Submitted]("The job is durable."), handle: (*call).submitJob},
		{method: get, pattern: "/v1/jobs", id: "listJobs", summary: "List jobs, newest first.", access: Read, params: slices.Concat([]param{query("state", "string", "Only jobs in this state; several with commas.").repeated(), query("name", "string", "Only jobs of this name.")}, pageParams), answers: ok[Page[weaver.JobInfo]]("A page."), handle: (*call).listJobs},
		{method: get, pattern: "/v1/jobs/{id}", id: "getJob", summary: "Read a job, the numbers of its tasks and what it waits for; with ?wait= when it has ended, is blocked, or the time is up.", access: Read, params: waitParams, answers: ok[weaver.JobStatus]("The job."), handle: (*call).getJob},
		{method: get, pattern: "/v1/jobs/{id}/tasks", id: "listJobTasks", summary: "List the tasks of a job.", access: Read, params: filterParams, answers: ok[Found]("A page."), handle: (*call).jobTasks},
		{method: get, pattern: "/v1/jobs/{id}/result", id: "getJobResult", summary: "How a job ended, or where it stands.", access: Read, answers: ok[JobResult]("Its tasks by how they ended."), handle: (*call).jobResult},
		{method: get, pattern: "/v1/jobs/{id}/graph", id: "getJobGraph", summary: "The tasks of a job, the oldest first, and what they need.", access: Read, params: []param{query("limit", "integer", "The most tasks of the page: 1 to 10,000, the default."), query("after", "string", "The cursor `next` of the page before.")}, answers: ok[store.Graph]("A page."), handle: (*call).jobGraph},
		{method: get, pattern: "/v1/jobs/{id}/timeline", id: "getJobTimeline", summary: "The attempts of the tasks of a job, the oldest tasks first.", access: Read, params: []param{query("limit", "integer", "Of how many tasks, also of those that have not begun: 1 to 200; default 50."), query("after", "string", "The cursor `next` of the page before.")}, answers: ok[Timeline]("A page."), handle: (*call).jobTimeline},
		{method: del, pattern: "/v1/jobs/{id}", id: "deleteJob", summary: "Delete an ended job, its tasks and their records.", access: Read | Operate, answers: ok[DeletedJob]("It is gone."), handle: (*call).deleteJob},
		{method: get, pattern: "/v1/jobs/{id}/why", id: "explainJob", summary: "Explain where a job stands, what holds it up and what lets it go on.", access: Read, params: whyParams, answers: ok[Explanation]("The explanation."), handle: (*call).jobWhy},
		{method: post, pattern: "/v1/jobs/{id}/cancel", id: "cancelJob", summary: "Cancel all unfinished tasks of a job.", access: Read | Operate, body: typeOf[verbRequest](), answers: ok[CancelAck]("What that did."), handle: (*call).cancelJob},
		{method: post, pattern: "/v1/jobs/{id}/retry", id: "retryJob", summary: "Retry every failed or cancelled task of a job.", access: Read | Operate, body: typeOf[retryRequest](), answers: ok[RetryAck]("What that did."), handle: (*call).retryJob},
	}
}

func (a *API) serverRoutes() []route {
	none := []answer{{status: 204, summary: "It is done."}}
	return []route{
		{method: get, pattern: "/v1/counts", id: "getCounts", summary: "How many tasks there are by state, type and queue: exact up to 10,000.", access: Read, answers: ok[Counts]("The numbers."), handle: (*call).counts},
		{method: get, pattern: "/v1/queues", id: "listQueues", summary: "List the queues in which tasks wait or run, or that are paused; then the task types that are.", access: Read, answers: ok[List[store.Queue]]("All of them."), handle: (*call).queues},
		{method: get, pattern: "/v1/workers", id: "listWorkers", summary: "List the workers, those that died of late among them.", access: Read, answers: ok[List[store.WorkerStatus]]("All of them."), handle: (*call).workers},
		{method: get, pattern: "/v1/types", id: "listTypes", summary: "List the task types that workers announced, without their schemas.", access: Read, answers: ok[List[TaskType]]("All of them."), handle: (*call).listTypes},
		{method: get, pattern: "/v1/types/{name}", id: "getType", summary: "Read what workers announced of a task type: its schemas, its defaults, and who said so.", access: Read, answers: ok[TaskType]("The type."), handle: (*call).getType},
		{method: post, pattern: "/v1/types/{name}/pause", id: "pauseType", summary: "Keep the tasks of a type from starting. One that nobody has is not there, unless force is set.", access: Read | Operate, body: typeOf[pauseRequest](), answers: none, handle: (*call).pauseType},
		{method: post, pattern: "/v1/types/{name}/resume", id: "resumeType", summary: "End the pause of a type.", access: Read | Operate, body: typeOf[verbRequest](), answers: none, handle: (*call).resumeType},
		{method: get, pattern: "/v1/audit", id: "listAudit", summary: "List what operators did, newest first. A page may have fewer entries than asked for, or none, and still have a next.", access: Read, params: slices.Concat([]param{query("target", "string", "Only of this task, job, queue or type."), query("actor", "string", "Only by this one."), query("verb", "string", "Only this verb: retry, cancel, delete, …; pause and resume are those of a queue, pause_type and pause_task the others.")}, pageParams), answers: ok[Page[store.AuditEntry]]("A page."), handle: (*call).audit},
		{method: get, pattern: "/v1/features", id: "getFeatures", summary: "What this server has, and in which namespace.", answers: ok[Features]("What it has is true."), handle: (*call).features},
		{method: post, pattern: "/v1/queues/{name}/pause", id: "pauseQueue", summary: "Keep the tasks of a queue from starting. One that nobody has is not there, unless force is set.", access: Read | Operate, body: typeOf[pauseRequest](), answers: none, handle: (*call).pauseQueue},
		{method: post, pattern: "/v1/queues/{name}/resume", id: "resumeQueue", summary: "End the pause of a queue.", access: Read | Operate, body: typeOf[verbRequest](), answers: none, handle: (*call).resumeQueue},
		{method: get, pattern: "/v1/events", id: "followEvents", summary: "Follow what happens: server-sent events, each once, those of a task in order. An event `message` has a JSON object in data; `gap` says that events between two ids are not kept; `error` is a problem: the stream ends with it, or goes on when a store that is away (503) is back. The id is the cursor.", access: Read, params: eventParams, answers: []answer{{status: 200, media: eventStream, headers: []string{"X-Accel-Buffering"}, summary: "A stream without an end of its own."}}, fails: []int{409}, stream: true, handle: (*call).events},
		{method: get, pattern: "/v1/me", id: "getMe", summary: "Who the server takes you for.", answers: ok[Me]("You."), handle: (*call).me},
		{method: get, pattern: "/v1/watch", id: "watch", summary: "Follow what topics show, as server-sent events: `update` and `error`, each of which is a Frame, whose `at` is the server's clock in milliseconds since 1970.", access: Read, params: []param{query("topic", "string", "What to watch: task:ID, job:ID, tasks:QUERY (the first page), counts, queues, workers, inbox (what waits for a person) or stats (the last hour); at most 20.").repeated()}, answers: streamOf[Frame]("What there is, then what changes."), stream: true, handle: (*call).watch},
		{method: get, pattern: "/healthz", id: "getHealth", summary: "Whether the process answers.", public: true, answers: ok[Health]("It does."), handle: (*call).healthz},
		{method: get, pattern: "/readyz", id: "getReady", summary: "Whether the store can be used.", public: true, answers: ok[Health]("It can."), handle: (*call).readyz},
		{method: get, pattern: "/v1/stats", id: "getStats", summary: "Count the attempts that ended, with how long they ran and waited.", access: Read, params: statsParams, answers: ok[ops.Stats]("At most 10,000 rows."), handle: (*call).stats},
		{method: get, pattern: "/metrics", id: "getMetrics", summary: "Metrics in the text format of Prometheus.", access: Read, answers: []answer{{status: 200, media: "text/plain", headers: []string{"Vary"}, summary: "The metrics."}}, handle: (*call).metrics},
		{method: get, pattern: "/openapi.json", id: "getDocument", summary: "This document.", public: true, answers: ok[map[string]any]("The document."), handle: (*call).openapi},
		{method: post, pattern: "/login", id: "login", summary: "Turn a token into a cookie for a browser.", public: true, body: typeOf[loginRequest](), maxBody: loginBody, maxValues: loginValues, maxDepth: loginDepth, answers: ok[Me]("You are logged in.", "Set-Cookie"), fails: []int{401, 429}, handle: (*call).login},
		{method: post, pattern: "/logout", id: "logout", summary: "Forget the cookie.", public: true, answers: []answer{{status: 204, summary: "It is forgotten.", headers: []string{"Set-Cookie"}}}, handle: (*call).logout},
	}
}
