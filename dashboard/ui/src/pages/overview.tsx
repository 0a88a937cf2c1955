// What runs, what is stuck, and where to look next.
import { get } from "../lib/api";
import { count, number, plural, type Count } from "../lib/format";
import { useTopic } from "../lib/live";
import { useLoad } from "../lib/load";
import { quoted } from "../lib/query";
import { go, href, params, setParams } from "../lib/router";
import { features } from "../lib/session";
import { nanos, now } from "../lib/time";
import type { Queue, Stats, StatsRow, Task, Worker } from "../lib/types";
import { Empty, Loading, PageHead, Age, ProblemBox, Section, State, Text, type Children } from "../parts/basic";
import { Chart } from "../parts/chart";
import { Name, Table, tasksHref } from "../parts/data";
import { Icon } from "../parts/icons";
import { outcomeClass, outcomeWord } from "../parts/timeline";

/** The ranges to choose from, with the step of their charts. */
const ranges: Record<string, { text: string; ms: number; step: string; stepMs: number }> = {
  "15m": { text: "15 min", ms: 15 * 60_000, step: "30s", stepMs: 30_000 },
  "1h": { text: "1 h", ms: 3_600_000, step: "1m", stepMs: 60_000 },
  "6h": { text: "6 h", ms: 6 * 3_600_000, step: "10m", stepMs: 600_000 },
  "24h": { text: "24 h", ms: 24 * 3_600_000, step: "30m", stepMs: 1_800_000 },
  "7d": { text: "7 d", ms: 7 * 86_400_000, step: "4h", stepMs: 14_400_000 },
  "30d": { text: "30 d", ms: 30 * 86_400_000, step: "24h", stepMs: 86_400_000 },
};

const colourOf = (r: StatsRow): string => outcomeClass[r.outcome ?? ""] ?? "bad";

/** The bars of the chart of outcomes. */
const outcomes = [["ok", "succeeded"], ["bad", "failed"], ["wait", "blocked"], ["idle", "waits or cancelled"]] as const;

function span(name: string, at: number): { from: string; to: string; times: number[]; stepMs: number; step: string } {
  const r = ranges[name] ?? { text: "", ms: 3_600_000, step: "1m", stepMs: 60_000 };
  const to = Math.ceil(at / r.stepMs) * r.stepMs;
  const from = to - Math.ceil(r.ms / r.stepMs) * r.stepMs;
  const times: number[] = [];
  for (let t = from; t < to; t += r.stepMs) times.push(t / 1000);
  return { from: new Date(from).toISOString(), to: new Date(to).toISOString(), times, stepMs: r.stepMs, step: r.step };
}

export function Overview() {
  const range = ranges[params.value.get("range") ?? ""] ? (params.value.get("range") as string) : "1h";
  return (
    <>
      <PageHead title="Overview">
        <div class="segmented" role="group" aria-label="Range of the charts">
          {Object.entries(ranges).map(([k, r]) => (
            <button type="button" key={k} aria-pressed={k === range} onClick={() => setParams({ range: k === "1h" ? undefined : k })}>
              {r.text}
            </button>
          ))}
        </div>
      </PageHead>
      <Attention />
      <States />
      {features.value["stats"] && <Charts range={range} />}
      <Queues />
    </>
  );
}

interface Trouble {
  key: string;
  bad: boolean;
  href: string;
  text: Children;
  help: string;
}

/** What needs a person, in words, the worst first. */
function Attention() {
  const inbox = useTopic<Task>("inbox");
  const queues = useTopic<Queue>("queues");
  const workers = useTopic<Worker>("workers");
  const failures = useLoad("failures", (s) => get<Stats>("v1/stats", { by: ["type", "error_kind", "outcome"] }, s).catch(() => null), 15_000);
  const list: Trouble[] = [];
  const at = now.value;
  const oldest = inbox.rows[inbox.rows.length - 1];
  const living = workers.rows.filter((w) => !w.dead && !w.silent && (w.task_types ?? []).length > 0); // others send orders
  for (const w of workers.rows.filter((w) => w.silent && !w.dead)) {
    list.push({ key: "w" + w.worker_id, bad: true, href: href("workers"), text: <>Worker <Text>{w.name}</Text> has been silent for <Age at={w.last_seen} />.</>, help: "Its tasks are taken over when their leases end." });
  }
  for (const q of queues.rows) {
    const what = q.task_type ? <>The type <Text>{q.task_type}</Text></> : <>The queue <Text>{q.queue}</Text></>;
    if (q.paused) {
      list.push({ key: "p" + q.queue + q.task_type, bad: false, href: href("queues"), text: <>{what} has been paused{q.pause ? <>{q.pause.actor && <> by <Text>{q.pause.actor}</Text></>} for <Age at={q.pause.at} /></> : null}.</>, help: q.pause?.reason || `${count(q.due)} due` });
    } else if (q.oldest_due && at - Date.parse(q.oldest_due) > 60_000) {
      const served = living.length > 0;
      list.push({ key: "d" + q.queue, bad: !served, href: href("tasks", { q: `state:ready queue:${quoted(q.queue)}` }), text: <>{count(q.due)} due in {what}; the oldest has waited for <Age at={q.oldest_due} />.</>, help: served ? "The workers have no free slots, or do not handle its types." : "There is no live worker." });
    }
  }
  if (workers.loaded && living.length === 0 && queues.loaded && queues.rows.some((q) => q.due.n > 0)) {
    list.unshift({ key: "none", bad: true, href: href("workers"), text: "No worker is alive, and tasks are due.", help: "Start one: `weaver worker`, or your program." });
  }
  if (oldest) {
    list.push({ key: "inbox", bad: false, href: href("inbox"), text: <>{plural(inbox.rows.length, "task")}{inbox.next ? " or more" : ""} {inbox.rows.length === 1 ? "waits" : "wait"} for a person; the oldest for <Age at={oldest.updated_at} />.</>, help: "Decide in the inbox." });
  }
  const failing = new Map<string, { n: number; kind: string }>();
  for (const r of failures.data?.rows ?? []) {
    if (colourOf(r) !== "bad") continue;
    const key = r.task_type ?? "";
    const was = failing.get(key);
    failing.set(key, { n: (was?.n ?? 0) + r.count, kind: r.error_kind ?? was?.kind ?? "" });
  }
  for (const [type, f] of [...failing].sort((a, b) => b[1].n - a[1].n).slice(0, 3)) {
    list.push({ key: "f" + type, bad: true, href: href("tasks", { q: `state:failed type:${quoted(type)}` }), text: <>{plural(f.n, "failed attempt")} of <Text>{type}</Text> in the last hour.</>, help: f.kind ? "Most recent kind of error: " + f.kind.replaceAll("_", " ") : "" });
  }
  const ready = inbox.loaded && queues.loaded && workers.loaded;
  if (!ready) return <Loading rows={2} />;
  return (
    <Section title="Needs attention" class="attention" aside={list.length === 0 ? undefined : number(list.length)}>
      {list.length === 0 ? (
        <p class="all-well">
          <Icon name="check" /> Nothing is stuck: {living.length === 0 ? "no task is due" : `${plural(living.length, "worker")} alive, no queue is paused, nothing failed in the last hour`}.
        </p>
      ) : (
        <ul class="troubles">
          {list.sort((a, b) => Number(b.bad) - Number(a.bad)).map((t) => (
            <li key={t.key} class={t.bad ? "bad" : "wait"}>
              <Icon name={t.bad ? "warning" : "hand"} />
              <a href={t.href}>{t.text}</a>
              <span class="muted">
                <Text>{t.help}</Text>
              </span>
            </li>
          ))}
        </ul>
      )}
    </Section>
  );
}

const states = ["ready", "running", "blocked", "pending", "failed", "succeeded", "cancelled"];

function States() {
  const counts = useTopic<Count>("counts");
  const by = new Map(counts.ids.map((id, i) => [id, counts.rows[i] as Count]));
  if (counts.problem) return <ProblemBox problem={counts.problem} />;
  return (
    <ul class="counts" aria-label="Tasks by state">
      {states.map((s) => (
        <li key={s}>
          <a href={href("tasks", { q: "state:" + s })} class={"count " + s}>
            <span class="count-n">{counts.loaded ? count(by.get("state:" + s)) : "–"}</span>
            <State state={s} />
          </a>
        </li>
      ))}
    </ul>
  );
}

function Charts({ range }: { range: string }) {
  const stepNow = Math.floor(now.value / 30_000);
  const s = span(range, stepNow * 30_000);
  const stats = useLoad(
    range,
    (sig) => Promise.all([get<Stats>("v1/stats", { from: s.from, to: s.to, step: s.step, by: "outcome" }, sig), get<Stats>("v1/stats", { from: s.from, to: s.to, step: s.step }, sig), get<Stats>("v1/stats", { from: s.from, to: s.to, by: ["type", "error_kind", "outcome"] }, sig)]),
    10_000,
  );
  if (stats.problem) return <ProblemBox problem={stats.problem} retry={stats.reload} />;
  if (!stats.data) return <Loading rows={4} />;
  const [byOutcome, total, failures] = stats.data;
  const at = new Map(s.times.map((t, i) => [t, i]));
  const index = (r: StatsRow) => at.get(Math.floor(Date.parse(r.from) / s.stepMs) * (s.stepMs / 1000)) ?? -1;
  const series = outcomes.map(([colour, name]) => {
    const values = new Array<number>(s.times.length).fill(0);
    for (const r of byOutcome.rows) {
      const i = index(r);
      if (colourOf(r) === colour && i >= 0) values[i] = (values[i] ?? 0) + r.count;
    }
    return { name, colour, values };
  });
  const quantiles = (of: "run" | "wait") =>
    ([["p50", "q1"], ["p95", "q2"], ["p99", "q3"]] as const).map(([q, colour]) => {
      const values = new Array<number | null>(s.times.length).fill(null);
      for (const r of total.rows) {
        const i = index(r);
        if (i >= 0) values[i] = r[of][`${q}_ns`];
      }
      return { name: q, colour, values };
    });
  const choose = (from: number, to: number) => {
    go(tasksHref(`created>${new Date(from).toISOString()} created<${new Date(to).toISOString()}`));
  };
  const failed = failures.rows.filter((r) => /bad|wait/.test(colourOf(r)) || r.outcome === "cancelled").sort((a, b) => b.count - a.count);
  return (
    <>
      <div class="charts">
        <Section title="Attempts by outcome" aside={`${number(byOutcome.rows.reduce((n, r) => n + r.count, 0))} in ${ranges[range]?.text ?? ""}`}>
          <Chart label="Attempts by outcome" times={s.times} series={series} text={number} stacked choose={choose} />
        </Section>
        <Section title="Run time">
          <Chart label="Run time of attempts" times={s.times} series={quantiles("run")} text={nanos} choose={choose} />
        </Section>
        <Section title="Waiting time">
          <Chart label="Time from due to start" times={s.times} series={quantiles("wait")} text={nanos} choose={choose} />
        </Section>
      </div>
      <Section title="Attempts without success" aside={ranges[range]?.text}>
        {failed.length === 0 ? (
          <Empty title={`Every attempt of the last ${ranges[range]?.text ?? ""} succeeded.`} />
        ) : (
          <Table
            label="Attempts without success"
            rows={failed.slice(0, 12)}
            id={(r) => `${r.task_type} ${r.outcome} ${r.error_kind}`}
            columns={[
              { head: "Type", cell: (r) => <Name to={tasksHref(`type:${quoted(r.task_type ?? "")}${r.error_kind ? " error:" + r.error_kind : ""}`)}>{r.task_type ?? ""}</Name> },
              { head: "Outcome", cell: (r) => outcomeWord[r.outcome ?? ""] ?? (r.outcome ?? "").replaceAll("_", " ") },
              { head: "Error", cell: (r) => (r.error_kind ?? "").replaceAll("_", " ") || "–" },
              { head: "Attempts", num: true, cell: (r) => number(r.count) },
              { head: "Run time p50", num: true, cell: (r) => nanos(r.run.p50_ns) },
            ]}
          />
        )}
      </Section>
    </>
  );
}

function Queues() {
  const queues = useTopic<Queue>("queues");
  const rows = queues.rows.filter((q) => !q.task_type);
  return (
    <Section title="Queues" aside={<a href={href("queues")}>All queues</a>}>
      {rows.length === 0 ? (
        <Empty title="No queue has waiting or running tasks." />
      ) : (
        <Table
          label="Queues"
          rows={rows.slice(0, 20)}
          id={(q) => q.queue}
          columns={[
            { head: "Queue", cell: (q) => <><Name to={href("queues/" + encodeURIComponent(q.queue))}>{q.queue}</Name>{q.paused && <span class="tag wait">paused</span>}</> },
            { head: "Due", num: true, cell: (q) => <a href={tasksHref(`state:ready queue:${quoted(q.queue)}`)}>{count(q.due)}</a> },
            { head: "Oldest", cell: (q) => (q.oldest_due ? <Age at={q.oldest_due} /> : "–") },
            { head: "Running", num: true, cell: (q) => <a href={tasksHref(`state:running queue:${quoted(q.queue)}`)}>{count(q.running)}</a> },
            { head: "Later", num: true, cell: (q) => count(q.later) },
          ]}
        />
      )}
    </Section>
  );
}
