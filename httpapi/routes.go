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
	put  = http.MethodPut
	del  = http.MethodDelete
)

// Parameters of several routes.
var (
	ifMatch        = param{name: "If-Match", in: "header", typ: "string", summary: "The ETag of the task as it was read: if the task has changed since, the request fails (412)."}
	idempotencyKey = param{name: "Idempotency-Key", in: "header", typ: "string", summary: "The idempotency key: an existing object with this key is returned."}
	reason         = func(b *verbRequest) string { return b.Reason }

	pageParams = []param{
		query("limit", "integer", "Maximum rows of the page: 1 to 1,000; default 50."),
		query("after", "string", "The cursor `next` of the previous page, or any id: only older rows."),
	}
	waitParams = []param{
		query("wait", "string", "Maximum wait, as 30s; at most 60s."),
		query("through_blocked", "boolean", "With wait: continue to wait while it is blocked."),
	}
	whyParams    = []param{query("depth", "integer", "Maximum dependency depth of the root cause, in tasks: 1 to 100; default 10.")}
	filterParams = slices.Concat([]param{
		query("q", "string", "A query: all of its terms must hold, and so must the other parameters."),
		query("state", "string", "Only tasks in this state; several with commas.").repeated(),
		query("type", "string", "Only tasks of this type, or of types with a prefix, as acme.billing.*; several with commas.").repeated(),
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
	list := slices.Concat(a.taskRoutes(), a.taskVerbs(), a.jobRoutes(), a.scheduleRoutes(), a.limitRoutes(), a.orderRoutes(), a.serverRoutes())
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
		{method: post, pattern: "/v1/tasks/batch", id: "enqueueTasks", summary: "Enqueue several tasks atomically.", access: Submit, body: typeOf[batchRequest](), maxBody: a.cfg.MaxInput, answers: []answer{{status: 201, typ: typeOf[List[Enqueued]](), summary: "The tasks are durable; in the order of the request."}}, handle: (*call).enqueueBatch},
		{method: post, pattern: "/v1/tasks/bulk", id: "changeTasks", summary: "Retry, cancel, delete or unblock up to 1,000 tasks, or list the effects in a dry run; next continues.", access: Read | Operate, body: typeOf[BulkRequest](), answers: ok[BulkResult]("The result."), handle: (*call).bulk},
		{method: get, pattern: "/v1/tasks", id: "listTasks", summary: "List tasks, newest first, without their values.", access: Read, params: slices.Concat(filterParams, []param{query("job", "string", "Only tasks of this job.")}), answers: ok[Found]("A page."), handle: (*call).listTasks},
		{method: get, pattern: "/v1/tasks/{id}", id: "getTask", summary: "Read a task; with ?wait= when it has ended, is blocked, or the time is up.", access: Read, params: waitParams, answers: ok[Task]("The task.", "ETag"), handle: (*call).getTask},
		of("history", "getTaskHistory", "All records of a task except events and logs.", Read, ok[History]("The history.", "ETag"), (*call).taskHistory),
		of("attempts", "listAttempts", "The attempts of a task, by number.", Read, ok[List[task.Attempt]]("All of them."), part(func(h *store.History) []task.Attempt { return h.Attempts })),
		of("decisions", "listDecisions", "The decisions after the attempts of a task.", Read, ok[List[task.Decision]]("All of them."), part(func(h *store.History) []task.Decision { return h.Decisions })),
		of("steps", "listSteps", "The steps of a task.", Read, ok[List[task.Step]]("All of them."), part(func(h *store.History) []task.Step { return h.Steps })),
		of("artifacts", "listTaskArtifacts", "The artifacts of a task.", Read, ok[List[task.Artifact]]("All of them."), part(func(h *store.History) []task.Artifact { return h.Artifacts })),
		of("needs", "listNeeds", "The dependencies of a task, including its children.", Read, ok[List[store.Need]]("All of them."), part(func(h *store.History) []store.Need { return h.Needs })),
		{method: get, pattern: "/v1/tasks/{id}/why", id: "explainTask", summary: "Explain the state of a task, what it waits for and how it can continue.", access: Read, params: whyParams, answers: ok[Explanation]("The explanation."), handle: (*call).taskWhy},
		of("undo", "getUndoPlan", "The steps of a task: those to undo, in order, if it ends without success, those that stay, and those already undone.", Read, ok[task.UndoPlan]("The plan, without values."), (*call).undoPlan),
		{method: get, pattern: "/v1/tasks/{id}/children", id: "listChildren", summary: "List the tasks that a task stored, newest first, without their values.", access: Read, params: slices.DeleteFunc(slices.Clone(filterParams), func(p param) bool { return p.name == "parent" }), answers: ok[Found]("A page."), handle: (*call).taskChildren},
		{method: get, pattern: "/v1/artifacts/{id}", id: "getArtifact", summary: "Read all bytes of an artifact; ranges are not supported.", access: Read | Payloads, params: []param{query("task", "string", "The task with the artifact. Tasks that took over steps of others (rerun) have artifacts of the same id; default: the oldest of these tasks.")}, answers: []answer{{status: 200, media: anyMedia, headers: []string{"Content-Disposition"}, summary: "The bytes, with the Content-Type of the artifact."}}, handle: (*call).artifact},
		{method: get, pattern: "/v1/tasks/{id}/events", id: "listTaskEvents", summary: "The events of a task, oldest first, in the format of weaver run -o json.", access: Read, params: []param{query("limit", "integer", "Approximate number of events of the page: 1 to 1,000; default 100."), query("after", "string", "The cursor `next` of the previous page, or the sequence of an event.")}, answers: ok[Page[json.RawMessage]]("A page."), handle: (*call).taskEvents},
		{method: get, pattern: "/v1/tasks/{id}/logs", id: "getLogs", summary: "The output of a task: of one attempt of a command, or the lines that the engine of another task stored.", access: Read | Payloads, params: []param{query("attempt", "integer", "Only this attempt. Default: the last one of a command, all of another task."), query("tail", "integer", "Only the last bytes, from the start of a line: at most 1 MiB.")}, answers: []answer{{status: 200, media: "text/plain", summary: "The unchanged output."}}, handle: (*call).logs},
		of("payloads/{what}", "getPayload", "The input, output or unblock_input of a task.", Read|Payloads, ok[Value]("The value, masked as the task says."), (*call).payload),
		of("payloads/steps/{name}", "getStepPayload", "The result of a step.", Read|Payloads, ok[Value]("The value, masked as the step says."), (*call).stepPayload),
	}
}

func (a *API) taskVerbs() []route {
	of := func(name, id, summary string, body reflect.Type, handle func(*call) error) route {
		return route{method: post, pattern: "/v1/tasks/{id}/" + name, id: id, summary: summary, access: Read | Operate, params: []param{ifMatch}, body: body, answers: ok[Task]("The task after the change.", "ETag"), handle: handle}
	}
	rerun := of("rerun", "rerunTask", "Repeat a task as a new task.", typeOf[rerunRequest](), (*call).rerunTask)
	rerun.params = []param{ifMatch, idempotencyKey}
	rerun.more = "with input, or with options in with, submit, too"
	repair := of("repair", "repairTask", "Replace the input of a task that cannot read it.", typeOf[repairRequest](), verb(func(b *repairRequest) string { return b.Reason }, repairTask))
	repair.access |= Submit
	rerun.answers = created[Enqueued]("The new task.")
	signal := of("signal", "signalTask", "Send a task a signal.", typeOf[signalRequest](), verb(func(b *signalRequest) string { return b.Reason }, signalTask))
	signal.params = append(signal.params, idempotencyKey)
	return []route{
		of("cancel", "cancelTask", "Cancel a task.", typeOf[cancelRequest](), verb(func(b *cancelRequest) string { return b.Reason }, cancelTask)),
		of("retry", "retryTask", "Retry a failed or cancelled task.", typeOf[taskRetryRequest](), verb(func(b *taskRetryRequest) string { return b.Reason }, retryTask)),
		rerun,
		of("unblock", "unblockTask", "Unblock a blocked task.", typeOf[unblockRequest](), verb(func(b *unblockRequest) string { return b.Reason }, unblockTask)),
		signal,
		repair,
		of("reschedule", "rescheduleTask", "Start a task that waits for a time now, or change the time.", typeOf[rescheduleRequest](), verb(func(b *rescheduleRequest) string { return b.Reason }, rescheduleTask)),
		of("pause", "pauseTask", "Keep a task from starting until it is resumed.", typeOf[verbRequest](), verb(reason, pauseTask)),
		of("resume", "resumeTask", "End the pause of a task.", typeOf[verbRequest](), verb(reason, resumeTask)),
		{method: del, pattern: "/v1/tasks/{id}", id: "deleteTask", summary: "Delete an ended task outside jobs, and its records.", access: Read | Operate, params: []param{ifMatch, query("reason", "string", "The reason, for the audit log.")}, answers: []answer{{status: 204, summary: "It was deleted."}}, handle: (*call).deleteTask},
	}
}

func (a *API) jobRoutes() []route {
	return []route{
		{method: post, pattern: "/v1/jobs", id: "submitJob", summary: "Submit a job.", access: Submit, params: []param{idempotencyKey}, body: typeOf[JobDraft](), maxBody: a.cfg.MaxInput, answers: created[Submitted]("The job is durable."), handle: (*call).submitJob},
		{method: get, pattern: "/v1/jobs", id: "listJobs", summary: "List jobs, newest first.", access: Read, params: slices.Concat([]param{query("state", "string", "Only jobs in this state; several with commas.").repeated(), query("name", "string", "Only jobs of this name.")}, pageParams), answers: ok[Page[weaver.JobInfo]]("A page."), handle: (*call).listJobs},
		{method: get, pattern: "/v1/jobs/{id}", id: "getJob", summary: "Read a job, the counts of its tasks and what it waits for; with ?wait= when it has ended, is blocked, or the time is up.", access: Read, params: waitParams, answers: ok[weaver.JobStatus]("The job."), handle: (*call).getJob},
		{method: get, pattern: "/v1/jobs/{id}/tasks", id: "listJobTasks", summary: "List the tasks of a job.", access: Read, params: filterParams, answers: ok[Found]("A page."), handle: (*call).jobTasks},
		{method: get, pattern: "/v1/jobs/{id}/result", id: "getJobResult", summary: "The outcome of a job, or its present state.", access: Read, answers: ok[JobResult]("Its tasks by outcome."), handle: (*call).jobResult},
		{method: get, pattern: "/v1/jobs/{id}/graph", id: "getJobGraph", summary: "The tasks of a job, oldest first, and their dependencies.", access: Read, params: []param{query("limit", "integer", "Maximum tasks of the page: 1 to 10,000, the default."), query("after", "string", "The cursor `next` of the previous page.")}, answers: ok[store.Graph]("A page."), handle: (*call).jobGraph},
		{method: get, pattern: "/v1/jobs/{id}/timeline", id: "getJobTimeline", summary: "The attempts of the tasks of a job, oldest tasks first.", access: Read, params: []param{query("limit", "integer", "Maximum tasks of the page, including those that have not begun: 1 to 200; default 50."), query("after", "string", "The cursor `next` of the previous page.")}, answers: ok[Timeline]("A page."), handle: (*call).jobTimeline},
		{method: del, pattern: "/v1/jobs/{id}", id: "deleteJob", summary: "Delete an ended job, its tasks and their records.", access: Read | Operate, answers: ok[DeletedJob]("It was deleted."), handle: (*call).deleteJob},
		{method: get, pattern: "/v1/jobs/{id}/why", id: "explainJob", summary: "Explain the state of a job, what delays it and how it can continue.", access: Read, params: whyParams, answers: ok[Explanation]("The explanation."), handle: (*call).jobWhy},
		{method: post, pattern: "/v1/jobs/{id}/cancel", id: "cancelJob", summary: "Cancel all unfinished tasks of a job.", access: Read | Operate, body: typeOf[verbRequest](), answers: ok[CancelAck]("The result."), handle: (*call).cancelJob},
		{method: post, pattern: "/v1/jobs/{id}/retry", id: "retryJob", summary: "Retry every failed or cancelled task of a job.", access: Read | Operate, body: typeOf[retryRequest](), answers: ok[RetryAck]("The result."), handle: (*call).retryJob},
	}
}

func (a *API) serverRoutes() []route {
	none := []answer{{status: 204, summary: "It is done."}}
	return []route{
		{method: get, pattern: "/v1/counts", id: "getCounts", summary: "The numbers of tasks by state, type and queue: exact up to 10,000.", access: Read, answers: ok[Counts]("The numbers."), handle: (*call).counts},
		{method: get, pattern: "/v1/queues", id: "listQueues", summary: "List the queues that have waiting or running tasks or are paused, then the paused task types.", access: Read, answers: ok[List[store.Queue]]("All of them."), handle: (*call).queues},
		{method: get, pattern: "/v1/workers", id: "listWorkers", summary: "List the workers, including those that died recently.", access: Read, answers: ok[List[store.WorkerStatus]]("All of them."), handle: (*call).workers},
		{method: get, pattern: "/v1/types", id: "listTypes", summary: "List the task types that workers announced, without their schemas.", access: Read, answers: ok[List[TaskType]]("All of them."), handle: (*call).listTypes},
		{method: get, pattern: "/v1/types/{name}", id: "getType", summary: "Read an announced task type: its schemas, its defaults, and the workers that announced it.", access: Read, answers: ok[TaskType]("The type."), handle: (*call).getType},
		{method: post, pattern: "/v1/types/{name}/pause", id: "pauseType", summary: "Keep the tasks of a type from starting. An unknown one is an error, unless force is set.", access: Read | Operate, body: typeOf[pauseRequest](), answers: none, handle: (*call).pauseType},
		{method: post, pattern: "/v1/types/{name}/resume", id: "resumeType", summary: "End the pause of a type.", access: Read | Operate, body: typeOf[verbRequest](), answers: none, handle: (*call).resumeType},
		{method: get, pattern: "/v1/audit", id: "listAudit", summary: "List operators' actions, newest first. A page may have fewer entries than requested, or be empty, and still have a next.", access: Read, params: slices.Concat([]param{query("target", "string", "Only entries of this task, job, queue or type."), query("actor", "string", "Only entries of this actor."), query("verb", "string", "Only entries of this verb: retry, cancel, delete, …; pause and resume apply to a queue, pause_type and pause_task to others.")}, pageParams), answers: ok[Page[store.AuditEntry]]("A page."), handle: (*call).audit},
		{method: get, pattern: "/v1/features", id: "getFeatures", summary: "The features of this server, and its namespace.", answers: ok[Features]("Each available feature is true."), handle: (*call).features},
		{method: post, pattern: "/v1/queues/{name}/pause", id: "pauseQueue", summary: "Keep the tasks of a queue from starting. An unknown one is an error, unless force is set.", access: Read | Operate, body: typeOf[pauseRequest](), answers: none, handle: (*call).pauseQueue},
		{method: post, pattern: "/v1/queues/{name}/resume", id: "resumeQueue", summary: "End the pause of a queue.", access: Read | Operate, body: typeOf[verbRequest](), answers: none, handle: (*call).resumeQueue},
		{method: get, pattern: "/v1/events", id: "followEvents", summary: "Follow events as server-sent events, each once, those of a task in order. An event `message` has a JSON object in data; `gap` says that events between two ids are not kept; `error` is a problem: the stream ends with it, or continues when an unavailable store (503) is back. The id is the cursor.", access: Read, params: eventParams, answers: []answer{{status: 200, media: eventStream, headers: []string{"X-Accel-Buffering"}, summary: "A stream without an end of its own."}}, fails: []int{409}, stream: true, handle: (*call).events},
		{method: get, pattern: "/v1/me", id: "getMe", summary: "The authenticated principal.", answers: ok[Me]("The principal."), handle: (*call).me},
		{method: get, pattern: "/v1/watch", id: "watch", summary: "Follow the content of topics as server-sent events `update` and `error`. Each is a Frame, whose `at` is the server's clock in milliseconds since 1970.", access: Read, params: []param{query("topic", "string", "The topics to watch: task:ID, job:ID, tasks:QUERY (the first page), counts, queues, workers, inbox (tasks that wait for a person) or stats (the last hour); at most 20.").repeated(), query("once", "boolean", "Send the present content and end, for polling through proxies that hold streams back.")}, answers: streamOf[Frame]("The present content, then its changes."), stream: true, handle: (*call).watch},
		{method: get, pattern: "/healthz", id: "getHealth", summary: "Report that the process responds.", public: true, answers: ok[Health]("The process responds."), handle: (*call).healthz},
		{method: get, pattern: "/readyz", id: "getReady", summary: "Report whether the store can be used and the process is ready; a failure (503) lists the checks.", public: true, answers: ok[Health]("It is ready."), handle: (*call).readyz},
		{method: get, pattern: "/v1/stats", id: "getStats", summary: "Count the ended attempts, with their durations and waits.", access: Read, params: statsParams, answers: ok[ops.Stats]("At most 10,000 rows."), handle: (*call).stats},
		{method: get, pattern: "/metrics", id: "getMetrics", summary: "Metrics in the text format of Prometheus.", access: Read, answers: []answer{{status: 200, media: "text/plain", headers: []string{"Vary"}, summary: "The metrics."}}, handle: (*call).metrics},
		{method: get, pattern: "/openapi.json", id: "getDocument", summary: "This document.", public: true, answers: ok[map[string]any]("The document."), handle: (*call).openapi},
		{method: post, pattern: "/login", id: "login", summary: "Exchange a token for a browser cookie.", public: true, body: typeOf[loginRequest](), maxBody: loginBody, maxValues: loginValues, maxDepth: loginDepth, answers: ok[Me]("You are logged in.", "Set-Cookie"), fails: []int{401, 429}, handle: (*call).login},
		{method: post, pattern: "/logout", id: "logout", summary: "Delete the cookie.", public: true, answers: []answer{{status: 204, summary: "It was deleted.", headers: []string{"Set-Cookie"}}}, handle: (*call).logout},
	}
}
