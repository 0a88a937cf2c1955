// One task: its state in words, what helps, and everything that is recorded about it.
import { useEffect, useRef, useState } from "preact/hooks";
import { apiURL, Problem, send } from "../lib/api";
import { config } from "../lib/config";
import { number, plural } from "../lib/format";
import { useKeys } from "../lib/keys";
import { useTopic } from "../lib/live";
import { useLoad, useReload } from "../lib/load";
import { quoted } from "../lib/query";
import { href, jobHref, params, setParams, taskHref } from "../lib/router";
import { features, mayReadValues } from "../lib/session";
import { cli, curl, ended, nameOf, taskPath } from "../lib/task";
import { nanos } from "../lib/time";
import type { History, Step, Task } from "../lib/types";
import { Button, Empty, Facts, ID, Labels, Loading, PageHead, ProblemBox, Section, State, Tabs, Text, Time, type Children, type Tab } from "../parts/basic";
import { CopyMenu, Menu } from "../parts/menu";
import { Logs, PayloadOnDemand } from "../parts/payload";
import { Attempts, ErrorText, Strip } from "../parts/timeline";
import { verbsOf, type TaskVerb } from "../parts/verbs";
import { useWhy, Why } from "../parts/why";
import { Audit, Events, Related, Signals, UndoPlan, Values } from "./taskparts";

/** All records with the answer's text, in which numbers are as they were stored. */
export interface Records extends History {
  text: string;
}

async function history(id: string, signal: AbortSignal): Promise<Records> {
  const text = await (await send("GET", taskPath(id, "/history"), { signal })).text();
  return { ...(JSON.parse(text) as History), text };
}

export function TaskPage({ id }: { id: string }) {
  const topic = useTopic<Task>("task:" + id);
  const [late, setLate] = useState(false);
  const seen = useRef(false);
  useEffect(() => {
    const timer = setTimeout(() => setLate(true), 1000);
    return () => clearTimeout(timer);
  }, []);
  const row = topic.rows[0];
  if (row) seen.current = true;
  const status = topic.problem?.status;
  if (status === 404 || status === 400 || (topic.loaded && !topic.problem && !row)) return <Gone id={id} deleted={seen.current} />;
  // Without a stream the records come alone.
  if (row || late) return <Loaded id={id} row={row} />;
  return <Before id={id} />;
}

function Before({ id, problem, retry }: { id: string; problem?: Error | null; retry?: () => void }) {
  return (
    <>
      <PageHead title="Task" sub={<span class="mono">{id}</span>} />
      {problem ? <ProblemBox problem={problem} retry={retry} /> : <Loading rows={8} />}
    </>
  );
}

function Loaded({ id, row }: { id: string; row: Task | undefined }) {
  const live = row?.task_type ? row : undefined; // a row that is too large for the stream has its id alone
  const version = row ? `${live?.lease_epoch} ${live?.updated_at} ${live?.state} ${live?.pause ?? ""}` : "";
  const records = useLoad(id, (s) => history(id, s));
  useReload(records.reload, version);
  const t = live ?? records.data?.task;
  const why = useWhy(taskPath(id), version, !!t && !ended(t));
  if (t) return <Shown t={t} records={records.data} problem={records.problem} retry={records.reload} why={why} version={version} />;
  if (records.problem instanceof Problem && records.problem.status === 404) return <Gone id={id} deleted={false} />;
  return <Before id={id} problem={records.problem} retry={records.reload} />;
}

function Gone({ id, deleted }: { id: string; deleted: boolean }) {
  return (
    <>
      <PageHead title={deleted ? "The task was deleted" : "There is no such task"} sub={<span class="mono"><Text>{id}</Text></span>} />
      <div class="panel">
        <Empty title={deleted ? "It was deleted while this page was open." : "No task has this id."}>
          {deleted ? "Only the audit keeps that it happened." : "It may have been deleted, or the id is of another namespace."} <a href={href("tasks")}>Show all tasks</a>
        </Empty>
      </div>
    </>
  );
}

interface ShownProps {
  t: Task;
  records: Records | undefined;
  problem: Error | null;
  retry: () => void;
  why: ReturnType<typeof useWhy>;
  version: string;
}

function Shown({ t, records: h, problem, retry, why, version }: ShownProps) {
  const verbs = verbsOf(t);
  const hasUndo = !!t.undo || !!t.undo_open || !!h?.steps.some((s) => s.undo || s.kind === "undo" || s.kind === "cleanup");
  const hasSignals = !!h?.signals.length || t.waiting_reason === "signal" || !!h?.steps.some((s) => s.kind === "signal");
  const count = (n: number | undefined): Children => (n ? <span class="tab-count">{number(n)}</span> : null);
  const related = (h?.needs.length ?? 0) + (h?.dependents.length ?? 0) + (t.parent_task_id ? 1 : 0) + (t.rerun_of ? 1 : 0);
  const allTabs: (Tab | false)[] = [
    { id: "history", title: <>History {count(h?.attempts.length)}</> },
    mayReadValues.value && { id: "values", title: <>Values {h?.artifacts.length ? <>and files {count(h.artifacts.length)}</> : null}</> },
    mayReadValues.value && { id: "logs", title: "Output" },
    { id: "related", title: <>Related {count(related)}</> },
    hasUndo && { id: "undo", title: <>Undo {count(t.undo_open)}</> },
    hasSignals && { id: "signals", title: <>Signals {count(h?.signals.length)}</> },
    !!features.value["recorded_events"] && { id: "events", title: "Events" },
    { id: "audit", title: <>Audit {count(h?.audit.length)}</> },
  ];
  const tabs = allTabs.filter((x): x is Tab => !!x);
  const wanted = params.value.get("tab") ?? "history";
  const tab = tabs.some((x) => x.id === wanted) ? wanted : "history";
  const choose = (id: string) => setParams({ tab: id === "history" ? undefined : id });
  useKeys([
    ...verbs.map((v) => ({ keys: v.key, text: v.title, group: "verb", run: v.run })),
    ...tabs.slice(0, 9).map((x, i) => ({ keys: String(i + 1), text: "Show the tab " + x.id, group: "tabs", run: () => choose(x.id) })),
  ]);
  const results = (s: Step) => (mayReadValues.value && s.state === "completed" && /^(step|ask|signal|start|race|each)$/.test(s.kind) ? <PayloadOnDemand path={taskPath(t.id, "/payloads/steps/" + encodeURIComponent(s.name))} name={s.name} title="Result" /> : null);
  return (
    <>
      <PageHead
        title={<Text>{nameOf(t)}</Text>}
        sub={
          <span class="task-sub">
            <State state={t.state} reason={t.waiting_reason} />
            {t.cancel_requested && !ended(t) && <span class="tag wait">cancel requested</span>}
            {t.undo && !ended(t) && <span class="tag wait">being undone</span>}
            {t.node && (
              <span class="mono">
                <Text>{t.task_type}</Text>
              </span>
            )}
            <ID id={t.id} whole />
            {t.job_id && <a href={jobHref(t.job_id)}>Job …{t.job_id.slice(-6)}</a>}
          </span>
        }
      >
        {verbs.filter((v) => v.main).map((v, i) => (
          <Button key={v.id} icon={v.icon} kind={i === 0 && v.id !== "cancel" ? "primary" : undefined} onClick={v.run}>
            {v.title}
          </Button>
        ))}
        <Menu label="More actions" text="More" icon="down" items={verbs.filter((v) => !v.main).map((v: TaskVerb) => ({ text: v.title, icon: v.icon, danger: v.danger, run: v.run }))} />
        <CopyMenu
          command={cli("task", "show", t.id)}
          request={curl("GET", taskPath(t.id))}
          more={[{ text: "Open as JSON", icon: "external", href: apiURL(taskPath(t.id, "/history")) }, ...config.links.map((l) => ({ text: l.name, icon: "external" as const, href: filled(l.url, t) }))]}
        />
      </PageHead>
      <div class="task-grid">
        <div class="task-main">
          <Why why={why} task={t} head={<Head t={t} />} />
          {problem && !h && <ProblemBox problem={problem} retry={retry} />}
          <Tabs label="Records of the task" tabs={tabs} chosen={tab} choose={choose}>
            {!h && (tab === "history" || tab === "related" || tab === "audit") ? (
              <Loading rows={5} />
            ) : tab === "history" && h ? (
              <Section title="Attempts" aside={`${t.attempt_count} of ${t.max_attempts} used`}>
                <Strip t={t} h={h} />
                <Attempts h={h} value={results} />
              </Section>
            ) : tab === "values" ? (
              <Values t={t} h={h} version={version} />
            ) : tab === "logs" && h?.attempts.length === 0 ? (
              <Section title="Output">
                <Empty title="It has not started yet." />
              </Section>
            ) : tab === "logs" ? (
              <Section title="Output">
                <div class="panel-body">
                  <Logs path={taskPath(t.id, "/logs")} attempts={(h?.attempts ?? []).map((a) => a.attempt_no)} attempt={params.value.get("attempt") ?? ""} choose={(a) => setParams({ attempt: a })} running={t.state === "running"} key={version && !ended(t) ? "" : "ended"} />
                </div>
              </Section>
            ) : tab === "related" && h ? (
              <Related t={t} h={h} />
            ) : tab === "undo" ? (
              <UndoPlan t={t} version={version} />
            ) : tab === "signals" && h ? (
              <Signals h={h} />
            ) : tab === "events" ? (
              <Events t={t} version={version} />
            ) : tab === "audit" && h ? (
              <Audit list={h.audit} />
            ) : null}
          </Tabs>
        </div>
        <aside class="task-side" aria-label="Facts">
          <TaskFacts t={t} h={h} />
        </aside>
      </div>
    </>
  );
}

/** Progress and the error, which belong to the explanation. */
function Head({ t }: { t: Task }) {
  const p = t.progress;
  return (
    <>
      {p && !ended(t) && (
        <div class="task-progress">
          {p.total ? <progress max={p.total} value={Math.min(p.current, p.total)} aria-label="Progress" /> : null}
          <p>
            {p.total ? `${number(p.current)} of ${number(p.total)}` : p.current ? number(p.current) : ""}
            {p.message && (p.total || p.current) ? ": " : ""}
            <Text>{p.message}</Text>
          </p>
        </div>
      )}
      {t.error && t.state === "failed" && (t.error.stack || t.error.message.includes("\n")) && <ErrorText e={t.error} />}
    </>
  );
}

/** A configured link with the values of the task. */
function filled(url: string, t: Task): string {
  const values: Record<string, string> = { id: t.id, type: t.task_type, queue: t.queue, job: t.job_id ?? "" };
  return url.replace(/\{(id|type|queue|job)\}/g, (_, name: string) => encodeURIComponent(values[name] ?? ""));
}

function TaskFacts({ t, h }: { t: Task; h: History | undefined }) {
  const time = (at: string | undefined) => at && <Time at={at} />;
  const query = (q: string, text: string) => (
    <a href={href("tasks", { q })}>
      <Text>{text}</Text>
    </a>
  );
  const lasted = t.finished_at && t.started_at ? nanos((Date.parse(t.finished_at) - Date.parse(t.started_at)) * 1e6) : "";
  return (
    <Section title="Facts">
      <Facts
        facts={[
          ["Type", query("type:" + quoted(t.task_type), t.task_type)],
          ["Queue", query("queue:" + quoted(t.queue), t.queue)],
          ["Priority", t.priority],
          ["Attempts", `${t.attempt_count} of ${t.max_attempts}${t.attempt_no !== t.attempt_count ? `; ${plural(t.attempt_no, "run")}` : ""}`],
          ["Steps done", t.step_count || null],
          ["Created", time(t.created_at)],
          [t.state === "running" ? "Started" : "Last start", time(t.started_at)],
          ["Ended", time(t.finished_at)],
          ["Took", lasted],
          ["Next start", t.state === "pending" && time(t.ready_at)],
          ["Deadline", time(t.deadline_at)],
          ["Changed", time(t.updated_at)],
          ["Worker", t.leased_by && <Text>{t.leased_by}</Text>],
          ["Lease ends", time(t.lease_expires_at)],
          ["Lease epoch", t.lease_epoch],
          ["Paused", t.pause && `by its ${t.pause}`],
          ["Cancelled", t.cancel_by && <><Text>{t.cancel_by}</Text>{t.cancel_reason && <>: <Text>{t.cancel_reason}</Text></>}</>],
          ["Crashes", t.crash_count || null],
          ["Repairs", t.repair_count ? `${t.repair_count} of ${t.max_repairs}` : null],
          ["Cost", t.cost || t.max_cost ? `${number(t.cost ?? 0)}${t.max_cost ? " of " + number(t.max_cost) : ""} µ` : null],
          ["Backoff", `${nanos(t.backoff_ns)} to ${nanos(t.backoff_max_ns)}`],
          ["Timeout", t.timeout_ns ? nanos(t.timeout_ns) : null],
          ["Idempotency", t.idempotency_key && query("key:" + quoted(t.idempotency_key), t.idempotency_key)],
          ["Concurrency", t.concurrency_key && <>{query("key:" + quoted(t.concurrency_key), t.concurrency_key)} {t.concurrency_limit ? `(${t.concurrency_limit} at a time)` : ""}</>],
          ["Holds its place", h?.key_holders?.length ? h.key_holders.slice(0, 5).map((x) => <a key={x} class="mono" href={taskHref(x)}>…{x.slice(-6)} </a>) : null],
          ["Ahead of it", h?.key_ahead && <a class="mono" href={taskHref(h.key_ahead)}>…{h.key_ahead.slice(-6)}</a>],
          ["Schema", `version ${t.schema_version}`],
          ["Values", t.forgotten ? "erased" : t.values_dropped ? "removed by retention" : t.payloads_hidden ? "you may not read them" : null],
        ]}
      />
      {Object.keys(t.labels ?? {}).length > 0 && (
        <div class="panel-body">
          <h3>Labels</h3>
          <Labels labels={t.labels} to={(k, v) => href("tasks", { q: `label.${k}=${quoted(v)}` })} />
        </div>
      )}
      {Object.keys(t.metadata ?? {}).length > 0 && (
        <div class="panel-body">
          <h3>Metadata</h3>
          <Labels labels={t.metadata} />
        </div>
      )}
      {config.links.length > 0 && (
        <div class="panel-body">
          <h3>Elsewhere</h3>
          <ul class="plain-list">
            {config.links.map((l) => (
              <li key={l.name}>
                <a href={filled(l.url, t)} target="_blank" rel="noreferrer">
                  {l.name}
                </a>
              </li>
            ))}
          </ul>
        </div>
      )}
    </Section>
  );
}
