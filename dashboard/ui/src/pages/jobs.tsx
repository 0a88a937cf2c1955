// Jobs: progress, why, tasks and attempts on one time axis.
import { del, get, post } from "../lib/api";
import { number, plural } from "../lib/format";
import { useTopic } from "../lib/live";
import { useLoad, useReload } from "../lib/load";
import { go, href, jobHref, params, setParams, taskHref } from "../lib/router";
import { mayOperate } from "../lib/session";
import { cli, curl } from "../lib/task";
import { duration, nanos, now } from "../lib/time";
import type { Found, Job, Page, Task } from "../lib/types";
import { Button, Empty, Facts, ID, Loading, PageHead, ProblemBox, Section, State, Text, Time } from "../parts/basic";
import { CopyMenu } from "../parts/menu";
import { outcomeClass, outcomeWord } from "../parts/timeline";
import { Why, useWhy } from "../parts/why";
import { because, Filters, JobBar, Name, openVerb, Pager, Pairs, Table, tasksHref } from "../parts/data";

const ended = (state: string) => state === "succeeded" || state === "failed" || state === "cancelled";

export function Jobs() {
  const p = params.value;
  const [state, name, after] = ["state", "name", "after"].map((k) => p.get(k) ?? "");
  const list = useLoad(`jobs ${state} ${name} ${after}`, (s) => get<Page<Job>>("v1/jobs", { state, name, after, limit: 50 }, s), after ? 0 : 3_000);
  return (
    <>
      <PageHead title="Jobs" sub="Groups of tasks that need each other." />
      <Filters filters={[{ name: "state", label: "State", options: ["running", "blocked", "failed", "succeeded", "cancelled"] }, { name: "name", label: "Name", placeholder: "the whole name" }]} />
      {list.problem && <ProblemBox problem={list.problem} retry={list.reload} />}
      <Section title="Jobs" aside="newest first">
        {!list.data ? (
          !list.problem && <Loading />
        ) : list.data.items.length === 0 ? (
          <Empty title={state || name ? "No job matches." : "There is no job yet."}>{state || name ? "Change the filters." : <>Submit a pipeline file: <code>weaver submit FILE</code>.</>}</Empty>
        ) : (
          <Table
            label="Jobs"
            rows={list.data.items}
            id={(j) => j.id}
            columns={[
              { head: "Job", cell: (j) => <><Name to={jobHref(j.id)}>{j.name || j.id}</Name><div class="small"><ID id={j.id} /></div></> },
              { head: "State", cell: (j) => <State state={j.state} /> },
              { head: "Progress", cell: (j) => <JobBar c={j.counters} /> },
              { head: "Created", cell: (j) => <Time at={j.created_at} /> },
              { head: "Took", num: true, cell: (j) => duration((j.finished_at ? Date.parse(j.finished_at) : Math.round(now.value / 1000) * 1000) - Date.parse(j.created_at)) },
            ]}
          />
        )}
        <Pager next={list.data?.next} />
      </Section>
    </>
  );
}

interface JobStatus extends Job {
  budget: { max_attempts_per_task?: number; max_cost?: number; max_duration_ns?: number; max_no_progress?: number; max_repairs?: number; max_total_attempts?: number };
  states?: Record<string, number>;
  waiting?: Record<string, number>;
  bottleneck?: string;
  next_due?: string;
  deadline_at?: string;
  exhausted_at?: string;
  attempts_used?: number;
  cost?: number;
  based_on?: string[];
  cancel_requested?: boolean;
  cancel_by?: string;
  cancel_reason?: string;
  idempotency_key?: string;
}

const cost = (micro: number) => number(micro / 1_000_000);

export function OneJob({ id }: { id: string }) {
  const topic = useTopic<JobStatus>("job:" + id);
  const live = topic.rows[0];
  const version = live?.updated_at ?? "";
  const status = useLoad("job " + id, (s) => get<JobStatus>("v1/jobs/" + encodeURIComponent(id), {}, s), live && ended(live.state) ? 0 : 5_000);
  useReload(status.reload, version);
  const why = useWhy("v1/jobs/" + encodeURIComponent(id), version, !live || !ended(live.state));
  const j = status.data ? { ...status.data, ...live } : undefined;
  const problem = topic.problem ?? status.problem;
  if (problem && !j)
    return (
      <>
        <PageHead title="Job" sub={<a href={href("jobs")}>Jobs</a>} />
        <ProblemBox problem={problem} retry={status.reload} />
      </>
    );
  const over = j ? ended(j.state) : false;
  const verbs = mayOperate.value && j && (
    <>
      {(j.state === "failed" || j.state === "cancelled" || !!j.states?.["failed"] || !!j.states?.["cancelled"]) && (
        <Button
          icon="retry"
          onClick={() =>
            openVerb({
              title: "Retry the job",
              verb: "Retry",
              keeps: "Every failed or cancelled task starts again with new attempts. Succeeded tasks and completed steps keep their results and do not run again.",
              check: "Also tasks whose cleanup ran: their completed steps count as done",
              run: (r, keep) => post<{ retried: number }>(`v1/jobs/${id}/retry`, { ...because(r), ...(keep ? { keep_steps: true } : {}) }),
              done: (got) => `${plural((got as { retried: number }).retried, "task")} retried.`,
              after: status.reload,
            })
          }
        >
          Retry
        </Button>
      )}
      {!over && (
        <Button
          icon="stop"
          onClick={() =>
            openVerb({
              title: "Cancel the job",
              verb: "Cancel the job",
              danger: true,
              keeps: "Waiting tasks end at once; running ones are asked to end. Succeeded tasks and completed steps stay, and a retry continues from them.",
              run: (r) => post<{ cancelled: number; asked: number }>(`v1/jobs/${id}/cancel`, because(r)),
              done: (got) => {
                const ack = got as { cancelled: number; asked: number };
                return `${plural(ack.cancelled, "task")} cancelled${ack.asked ? `, ${plural(ack.asked, "running task")} asked to end` : ""}.`;
              },
              after: status.reload,
            })
          }
        >
          Cancel
        </Button>
      )}
      {over && (
        <Button
          icon="trash"
          onClick={() =>
            openVerb({
              title: "Delete the job",
              verb: "Delete",
              danger: true,
              reason: false,
              keeps: `The job, its ${plural(j.counters.total, "task")} and all their records are removed. Only the audit keeps that it happened.`,
              run: () => del<{ tasks: number }>(`v1/jobs/${id}`),
              done: "The job is deleted.",
              after: () => go(href("jobs")),
            })
          }
        >
          Delete
        </Button>
      )}
    </>
  );
  const b = j?.budget;
  return (
    <>
      <PageHead
        title={<Text>{j?.name || id}</Text>}
        sub={
          <>
            <a href={href("jobs")}>Jobs</a> · <ID id={id} />
          </>
        }
      >
        <a class="button" href={tasksHref("job:" + id)}>
          As a list of tasks
        </a>
        {verbs}
        <CopyMenu command={cli("job", "show", id)} request={curl("GET", "v1/jobs/" + id)} />
      </PageHead>
      {problem && j && <ProblemBox problem={problem} retry={status.reload} />}
      {!j && <Loading rows={5} />}
      {j && (
        <Why
          why={why}
          above={mayOperate.value ? ["retry", "cancel", "delete"] : undefined}
          head={
            <div class="job-state">
              <State state={j.state} />
              <JobBar c={j.counters} states={status.data?.states} />
              {j.cancel_requested && !over && <span class="tag wait">cancel requested</span>}
            </div>
          }
        />
      )}
      <Tasks id={id} states={status.data?.states} />
      <Timeline id={id} version={version} live={!over} />
      {j && (
        <Section title="Facts">
          <Facts
            facts={[
              ["Next due", j.next_due ? <Time at={j.next_due} /> : ""],
              ["Created", <Time at={j.created_at} />],
              [over ? "Ended" : "Open for", over ? <Time at={j.finished_at} /> : duration(Math.round((now.value - Date.parse(j.created_at)) / 1000) * 1000)],
              ["Took", j.finished_at ? duration(Date.parse(j.finished_at) - Date.parse(j.created_at)) : ""],
              ["Deadline", j.deadline_at ? <Time at={j.deadline_at} /> : ""],
              ["Failed, which the job permits", j.counters.allowed ? number(j.counters.allowed) : ""],
              ["Cancelled by", j.cancel_by ? <><Text>{j.cancel_by}</Text>{j.cancel_reason && <>: <Text>{j.cancel_reason}</Text></>}</> : ""],
              ["Idempotency key", j.idempotency_key ? <Text>{j.idempotency_key}</Text> : ""],
              ["Budget used up", j.exhausted_at ? <Time at={j.exhausted_at} /> : ""],
              ["Cost", b?.max_cost || j.cost ? `${cost(j.cost ?? 0)}${b?.max_cost ? ` of ${cost(b.max_cost)}` : ""}` : ""],
              ["Attempts used", b?.max_total_attempts ? `${number(j.attempts_used ?? 0)} of ${number(b.max_total_attempts)}` : ""],
              ["Attempts of a task", b?.max_attempts_per_task ? number(b.max_attempts_per_task) : ""],
              ["Duration at most", b?.max_duration_ns ? nanos(b.max_duration_ns) : ""],
              ["Repairs of a task", b?.max_repairs ? number(b.max_repairs) : ""],
              ["Uses results of", j.based_on?.length ? <>{j.based_on.map((x) => <ID key={x} id={x} to={jobHref(x)} />)}</> : ""],
            ]}
          />
        </Section>
      )}
      {j?.meta && (
        <Section title="Metadata">
          <Pairs map={j.meta} />
        </Section>
      )}
    </>
  );
}

/** The tasks of a job: the first page live, oldest first if it has all. */
function Tasks({ id, states }: { id: string; states: Record<string, number> | undefined }) {
  const p = params.value;
  const [state, after] = [p.get("state") ?? "", p.get("tasks") ?? ""];
  const q = `job:${id}${state ? " state:" + state : ""}`;
  const topic = useTopic<Task>(after ? "" : "tasks:" + q);
  const page = useLoad(`${q} ${after}`, (s) => (after ? get<Found>("v1/tasks", { q, after }, s) : Promise.resolve(null)));
  const rows = after ? (page.data?.items ?? []) : topic.rows;
  const next = after ? page.data?.next : topic.next;
  const loaded = after ? !!page.data : topic.loaded;
  const problem = after ? page.problem : topic.problem;
  const chip = (s: string, text: string) => (
    <button type="button" class="chip" key={s} aria-pressed={state === s} onClick={() => setParams({ state: s || undefined, tasks: undefined })}>
      {text}
    </button>
  );
  return (
    <Section
      title="Tasks"
      aside={
        states && (
          <span class="state-filter" role="group" aria-label="States">
            {chip("", "all")}
            {Object.entries(states).map(([s, n]) => chip(s, `${s} ${number(n)}`))}
          </span>
        )
      }
    >
      {problem && <ProblemBox problem={problem} />}
      {!loaded ? (
        !problem && <Loading />
      ) : rows.length === 0 ? (
        <Empty title={state ? "No task has this state now." : "The job has no tasks."} />
      ) : (
        <Table
          label="Tasks of the job"
          rows={next || after ? rows : [...rows].reverse()}
          id={(t) => t.id}
          columns={[
            { head: "Task", cell: (t) => <><Name to={taskHref(t.id)}>{t.node || t.id}</Name><div class="small muted"><Text>{t.task_type}</Text></div></> },
            { head: "State", cell: (t) => <><State state={t.state} reason={t.waiting_reason} />{t.error && <div class="small muted"><Text most={120}>{t.error.message || t.error.kind}</Text></div>}</> },
            { head: "Open needs", num: true, cell: (t) => number(t.remaining_deps) },
            { head: "Attempts", num: true, cell: (t) => `${t.attempt_count} of ${t.max_attempts}` },
            { head: "Took", num: true, cell: (t) => (t.started_at && (t.finished_at || t.state === "running") ? duration((t.finished_at ? Date.parse(t.finished_at) : Math.round(now.value / 1000) * 1000) - Date.parse(t.started_at)) : "–") },
            { head: "Changed", cell: (t) => <Time at={t.updated_at} /> },
          ]}
        />
      )}
      <Pager next={next} param="tasks" />
    </Section>
  );
}

interface Bar {
  task_id: string;
  node?: string;
  task_type: string;
  attempt_no: number;
  worker?: string;
  started_at: string;
  ended_at?: string;
  outcome?: string;
  error_kind?: string;
}

/** The attempts of the tasks as bars on one time axis. */
function Timeline({ id, version, live }: { id: string; version: string; live: boolean }) {
  const after = params.value.get("attempts") ?? "";
  const load = useLoad(`timeline ${id} ${after}`, (s) => get<{ at: string; items: Bar[]; next?: string }>(`v1/jobs/${encodeURIComponent(id)}/timeline`, { limit: 100, after }, s), live ? 5_000 : 0);
  useReload(load.reload, version);
  const rows = new Map<string, Bar[]>();
  for (const b of load.data?.items ?? []) rows.set(b.task_id, [...(rows.get(b.task_id) ?? []), b]);
  const at = Date.parse(load.data?.at ?? "");
  const end = (b: Bar) => (b.ended_at ? Date.parse(b.ended_at) : at);
  const all = load.data?.items ?? [];
  const from = Math.min(...all.map((b) => Date.parse(b.started_at)));
  const span = Math.max(1, Math.max(...all.map(end)) - from);
  return (
    <Section title="Attempts over time" aside={all.length > 0 ? `${plural(all.length, "attempt")} of ${plural(rows.size, "task")}` : undefined}>
      {load.problem ? (
        <ProblemBox problem={load.problem} retry={load.reload} />
      ) : !load.data ? (
        <Loading />
      ) : all.length === 0 ? (
        <Empty title="No task has begun." />
      ) : (
        <ul class="gantt">
          {[...rows].map(([task, bars]) => (
            <li key={task}>
              <a href={taskHref(task)}>
                <Text most={40}>{bars[0]?.node || task}</Text>
              </a>
              <span class="lane">
                {bars.map((b) => {
                  const words = `attempt ${b.attempt_no}: ${outcomeWord[b.outcome ?? ""] ?? b.outcome}${b.error_kind ? ", " + b.error_kind.replaceAll("_", " ") : ""}, ${duration(end(b) - Date.parse(b.started_at))}`;
                  return (
                    <i key={b.attempt_no} class={outcomeClass[b.outcome ?? ""] ?? "bad"} title={`${words}\nfrom ${duration(Date.parse(b.started_at) - from)} on${b.worker ? " by " + b.worker : ""}`} style={{ left: `${(100 * (Date.parse(b.started_at) - from)) / span}%`, width: `${(100 * (end(b) - Date.parse(b.started_at))) / span}%` }}>
                      <span class="visually-hidden">{words}</span>
                    </i>
                  );
                })}
              </span>
            </li>
          ))}
          <li class="axis" aria-hidden="true">
            <span />
            <span class="lane">
              {[0, 0.25, 0.5, 0.75, 1].map((f) => (
                <span key={f}>{duration(f * span)}</span>
              ))}
            </span>
          </li>
        </ul>
      )}
      <Pager next={load.data?.next} param="attempts" />
    </Section>
  );
}
