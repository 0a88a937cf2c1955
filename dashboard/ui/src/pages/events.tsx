// The live tail of events, over a stream of its own.
import { useEffect, useRef, useState } from "preact/hooks";
import { apiURL, Problem, signedOut } from "../lib/api";
import { number, plural } from "../lib/format";
import { jobHref, params, taskHref } from "../lib/router";
import { exact } from "../lib/time";
import { Button, Empty, ID, PageHead, ProblemBox, Section, Text } from "../parts/basic";
import { Filters, Table } from "../parts/data";
import { knownQueues, knownTypes, loadNames } from "../parts/palette";
import { queueHref } from "./queues";
import { typeHref } from "./types";

const shownEach = 200; // rows of one second
const kept = 1000;

interface Event {
  event: string;
  timestamp: string;
  task_id?: string;
  job_id?: string;
  task_type?: string;
  queue?: string;
  attempt_no?: number;
  [name: string]: unknown;
}

interface Row {
  key: number;
  gap?: boolean;
  left?: number; // events of the same second that are not shown
  ev: Event;
}

/** The fields that have no column, as one line. */
const plain = new Set(["event", "timestamp", "namespace", "task_id", "job_id", "task_type", "queue", "sequence"]);
const rest = (e: Event): string =>
  Object.entries(e)
    .filter(([k]) => !plain.has(k))
    .map(([k, v]) => `${k}=${typeof v === "string" ? v : JSON.stringify(v)}`)
    .join(" ");

let lastKey = 0;

/** Reads the stream until it ends. It throws a Problem if the server refuses it. */
async function follow(url: string, signal: AbortSignal, each: (kind: string, id: string, data: string) => void): Promise<void> {
  const res = await fetch(url, { signal, credentials: "same-origin", cache: "no-store" });
  if (!res.ok || !res.body) {
    const p = (await res.json().catch(() => ({}))) as Partial<Problem>;
    if (res.status === 401) signedOut.value = true;
    throw new Problem(res.status, p.title ?? `The answer was ${res.status}.`, p.detail ?? "", p.type, p.errors);
  }
  const reader = res.body.pipeThrough(new TextDecoderStream()).getReader();
  let text = "";
  for (;;) {
    const { value, done } = await reader.read();
    if (done) return;
    text += value;
    const frames = text.split("\n\n");
    text = frames.pop() ?? "";
    for (const frame of frames) {
      const at = (name: string) => frame.split("\n").find((l) => l.startsWith(name + ": "))?.slice(name.length + 2) ?? "";
      each(at("event"), at("id"), at("data"));
    }
  }
}

function useTail(filter: Record<string, string>, paused: boolean) {
  const [state, set] = useState<{ rows: Row[]; shown: number; of: number; live: boolean; problem: Problem | null; waiting: number }>({ rows: [], shown: 0, of: 0, live: false, problem: null, waiting: 0 });
  const pausedNow = useRef(paused);
  pausedNow.current = paused;
  const key = JSON.stringify(filter);
  useEffect(() => {
    const abort = new AbortController();
    let cursor = "";
    let buffer: Row[] = []; // of this second, at most shownEach
    let count = 0;
    set({ rows: [], shown: 0, of: 0, live: false, problem: null, waiting: 0 });
    const timer = setInterval(() => {
      const [taken, all] = [buffer, count];
      const left = all - taken.length;
      if (left > 0) taken.unshift({ key: ++lastKey, ev: { event: "", timestamp: taken[0]?.ev.timestamp ?? "" }, left });
      buffer = [];
      count = 0;
      if (pausedNow.current) {
        if (all > 0) set((s) => ({ ...s, waiting: s.waiting + all }));
        return;
      }
      set((s) => (all === 0 && s.of === 0 && s.waiting === 0 ? s : { ...s, rows: all ? [...taken.reverse(), ...s.rows].slice(0, kept) : s.rows, shown: all - left, of: all, waiting: 0 }));
    }, 1000);
    const run = async () => {
      for (let failures = 0; !abort.signal.aborted; ) {
        try {
          const opened = follow(apiURL("v1/events", { ...(JSON.parse(key) as Record<string, string>), after: cursor }), abort.signal, (kind, id, data) => {
            failures = 0;
            if (id) cursor = id;
            set((s) => (s.live && !s.problem ? s : { ...s, live: true, problem: null }));
            if (data === "") return;
            const ev = JSON.parse(data) as Event & { status?: number; title?: string; detail?: string };
            if (kind === "error") {
              set((s) => ({ ...s, problem: new Problem(ev.status ?? 0, ev.title ?? "The stream reports an error.", ev.detail ?? "") }));
              return;
            }
            count++;
            // The newest of the second are kept.
            buffer.push({ key: ++lastKey, ev, gap: kind === "gap" });
            if (buffer.length > shownEach) buffer.shift();
          });
          await opened;
        } catch (err) {
          if (abort.signal.aborted) return;
          failures++;
          if (err instanceof Problem && err.status >= 400 && err.status < 500 && err.status !== 429) {
            set((s) => ({ ...s, live: false, problem: err }));
            return;
          }
          set((s) => ({ ...s, live: false }));
        }
        await new Promise((r) => setTimeout(r, Math.min(10_000, 500 * 2 ** failures)));
      }
    };
    void run();
    return () => {
      clearInterval(timer);
      abort.abort();
    };
  }, [key]);
  return { ...state, clear: () => set((s) => ({ ...s, rows: [] })) };
}

const names = ["task.*", "task.enqueued", "task.started", "task.succeeded", "task.failed", "task.blocked", "task.cancelled", "step.*", "job.*"];

export function Events() {
  const p = params.value;
  const filter = Object.fromEntries(["name", "type", "queue", "task", "job"].map((k) => [k, p.get(k) ?? ""]));
  const [paused, setPaused] = useState(false);
  const tail = useTail(filter, paused);
  useEffect(() => void loadNames(), []);
  const any = Object.values(filter).some(Boolean);
  const refused = tail.problem && !tail.live;
  return (
    <>
      <PageHead title="Events" sub="What happens, as it happens.">
        <Button onClick={tail.clear} icon="trash">
          Clear
        </Button>
        <Button kind="primary" icon={paused ? "play" : "pause"} aria-pressed={paused} onClick={() => setPaused(!paused)}>
          {paused ? "Continue" : "Pause"}
        </Button>
      </PageHead>
      <Filters
        filters={[
          { name: "name", label: "Event", placeholder: "task.failed,step.*", suggest: names },
          { name: "type", label: "Type", placeholder: "acme.billing.*", suggest: knownTypes.value },
          { name: "queue", label: "Queue", suggest: knownQueues.value },
          { name: "task", label: "Task", placeholder: "id" },
          { name: "job", label: "Job", placeholder: "id" },
        ]}
      />
      {tail.problem && <ProblemBox problem={tail.problem} />}
      {tail.problem?.kind === "no-events" && (
        <p class="notice">
          Begin to keep them: <code>weaver serve</code> does (<code>--keep-events</code>), or a program with <code>Client.KeepEvents</code>. Then reload this page.
        </p>
      )}
      {!refused && (
        <Section
          title="Tail"
          aside={
            paused ? (
              <span>
                paused; {plural(tail.waiting, "event")} since, which {tail.waiting === 1 ? "is" : "are"} not shown
              </span>
            ) : tail.of > tail.shown ? (
              <strong>
                {number(tail.shown)} of {number(tail.of)} shown
              </strong>
            ) : tail.live ? (
              `${number(tail.of)} in the last second`
            ) : (
              "connecting"
            )
          }
        >
          {tail.rows.length === 0 ? (
            <Empty title={any ? "No event matches since the page was opened." : "Nothing has happened since the page was opened."}>Events appear here as soon as tasks change.</Empty>
          ) : (
            <Table
              label="Events, newest first"
              rows={tail.rows}
              id={(r) => String(r.key)}
              columns={[
                { head: "Time", cell: (r) => (r.gap || r.left ? "" : <time dateTime={r.ev.timestamp}>{exact(Date.parse(r.ev.timestamp), undefined, true)}</time>) },
                { head: "Event", cell: (r) => (r.left ? <span class="tag">{number(r.left)} more in this second</span> : r.gap ? <span class="tag wait">gap: events before this are not kept</span> : <span class={"event-name" + (/fail|lost|crash|error/.test(r.ev.event) ? " error" : "")}>{r.ev.event}</span>) },
                { head: "Task", cell: (r) => (r.ev.task_id ? <ID id={r.ev.task_id} to={taskHref(r.ev.task_id)} /> : r.ev.job_id ? <>job <ID id={r.ev.job_id} to={jobHref(r.ev.job_id)} /></> : "–") },
                { head: "Type", cell: (r) => (r.ev.task_type ? <a href={typeHref(r.ev.task_type)}><Text>{r.ev.task_type}</Text></a> : r.ev.queue ? <a href={queueHref(r.ev.queue)}><Text>{r.ev.queue}</Text></a> : "–") },
                { head: "Details", cell: (r) => <span class="small muted"><Text most={200}>{r.gap ? "" : rest(r.ev)}</Text></span> },
              ]}
            />
          )}
        </Section>
      )}
    </>
  );
}
