// The list of tasks: a query, live rows that do not move under the pointer, a selection and its verbs.
import { useEffect, useLayoutEffect, useMemo, useRef, useState } from "preact/hooks";
import { announce } from "../lib/announce";
import { get, Problem } from "../lib/api";
import { firstLine, number, plural } from "../lib/format";
import { useKeys } from "../lib/keys";
import { useTopic } from "../lib/live";
import { storedText } from "../lib/prefs";
import { quoted } from "../lib/query";
import { go, href, jobHref, params, setParams, taskHref } from "../lib/router";
import { mayOperate } from "../lib/session";
import { cli, curl } from "../lib/task";
import { duration, now } from "../lib/time";
import type { Found, Task } from "../lib/types";
import { Button, Empty, Labels, Loading, PageHead, ProblemBox, State, Text, Time, type Children } from "../parts/basic";
import { openBulk, type Verb } from "../parts/bulk";
import { closeOpened, Dialog, open } from "../parts/dialog";
import { CopyMenu } from "../parts/menu";
import { QueryBox } from "../parts/querybox";

interface Column {
  id: string;
  title: string;
  num?: boolean;
  cell: (t: Task) => Children;
}

/** How long the last attempt ran, or the present one runs. */
function ran(t: Task): string {
  if (!t.started_at) return "–";
  const end = t.state === "running" ? now.value : Date.parse(t.finished_at ?? t.updated_at);
  return duration(Math.max(0, end - Date.parse(t.started_at)));
}

const columns: Column[] = [
  { id: "queue", title: "Queue", cell: (t) => <Text>{t.queue}</Text> },
  { id: "attempts", title: "Attempts", num: true, cell: (t) => `${t.attempt_count}/${t.max_attempts}` },
  { id: "created", title: "Created", cell: (t) => <Time at={t.created_at} /> },
  { id: "updated", title: "Changed", cell: (t) => <Time at={t.updated_at} /> },
  { id: "ran", title: "Ran for", num: true, cell: ran },
  { id: "error", title: "Error", cell: (t) => (t.error ? <span class="error"><Text most={120}>{t.error.message || t.error.kind}</Text></span> : t.progress?.message ? <Text most={80}>{t.progress.message}</Text> : null) },
  { id: "labels", title: "Labels", cell: (t) => <Labels labels={t.labels} to={(k, v) => href("tasks", { q: `label.${k}=${quoted(v)}` })} /> },
  { id: "job", title: "Job", cell: (t) => (t.job_id ? <a class="mono" href={jobHref(t.job_id)}>…{t.job_id.slice(-6)}</a> : null) },
  { id: "priority", title: "Priority", num: true, cell: (t) => t.priority },
  { id: "worker", title: "Worker", cell: (t) => <Text>{t.leased_by}</Text> },
  { id: "steps", title: "Steps", num: true, cell: (t) => t.step_count || null },
  { id: "ready", title: "Next start", cell: (t) => (t.ready_at && t.state === "pending" ? <Time at={t.ready_at} /> : null) },
];

const chosenColumns = storedText("columns", "queue,attempts,updated,ran,error,labels");

const sizes = [50, 100, 200];

export function Tasks() {
  const q = params.value.get("q") ?? "";
  const size = sizes.includes(Number(params.value.get("rows"))) ? Number(params.value.get("rows")) : 50;
  return (
    <>
      <PageHead title="Tasks">
        <Button icon="columns" onClick={() => open(<Columns />)}>
          Columns
        </Button>
        <CopyMenu command={cli("task", "ls", "--q", q)} request={curl("GET", "v1/tasks?q=" + encodeURIComponent(q))} />
      </PageHead>
      <TaskList q={q} size={size} setQuery={(next) => setParams({ q: next }, { replace: false })} key={size} />
    </>
  );
}

/** Tasks of a query. The first 50 rows are live; older ones are as they were when they were loaded. */
export function TaskList({ q, size = 50, setQuery }: { q: string; size?: number; setQuery?: (q: string) => void }) {
  const topic = useTopic<Task>("tasks:" + q);
  const rows = useRef(new Map<string, Task>());
  const [ids, setIDs] = useState<string[]>([]);
  const [fresh, setFresh] = useState<string[]>([]); // newer rows that wait
  const [gone, setGone] = useState(new Set<string>()); // rows that do not match any more
  const [next, setNext] = useState<string | undefined>();
  const [older, setOlder] = useState<{ busy: boolean; problem: Error | null; scanned: number }>({ busy: false, problem: null, scanned: 0 });
  const [picked, setPicked] = useState(new Set<string>());
  const [all, setAll] = useState(false);
  const [cursor, setCursor] = useState("");
  const table = useRef<HTMLTableElement>(null);
  const pointed = useRef(false);
  const began = useRef("");
  const loadedOlder = useRef(false);

  const held = () => pointed.current || picked.size > 0 || window.scrollY > 60 || (table.current?.contains(document.activeElement) ?? false);

  // Another query is another list.
  if (began.current !== q) {
    began.current = q;
    rows.current = new Map();
    loadedOlder.current = false;
    if (ids.length) setIDs([]);
    if (fresh.length) setFresh([]);
    if (gone.size) setGone(new Set());
    if (picked.size) setPicked(new Set());
    if (all) setAll(false);
  }

  // Before the page is painted: it never says that there are no tasks when there are.
  useLayoutEffect(() => {
    if (!topic.loaded) return;
    const live = topic.rows;
    for (const t of live) rows.current.set(t.id, t);
    const liveIDs = new Set(live.map((t) => t.id));
    const oldest = live.at(-1)?.id ?? "";
    const whole = !topic.next; // the topic has all that match
    const lost = ids.filter((id) => !liveIDs.has(id) && (whole || id > oldest));
    if (ids.length === 0 || !held()) {
      takeLive();
    } else {
      const known = new Set(ids);
      setFresh(live.map((t) => t.id).filter((id) => !known.has(id) && id > (ids[0] ?? "")));
      setGone(new Set(lost));
    }
  }, [topic]);

  /** Shows the live rows, and older ones below them unless rows between the two are missing. */
  const takeLive = () => {
    const live = topic.ids;
    const oldest = live.at(-1) ?? "";
    const joined = loadedOlder.current && !!topic.next && (ids[0] ?? "") >= oldest;
    const merged = joined ? [...live, ...ids.filter((id) => id < oldest)] : live;
    if (!joined) {
      loadedOlder.current = false;
      setNext(topic.next);
    }
    if (merged.join() !== ids.join()) setIDs(merged);
    setFresh([]);
    setGone(new Set());
  };

  // More rows than the live page has.
  useEffect(() => {
    if (next && next === topic.next && ids.length >= topic.ids.length && ids.length < size && !older.busy && !older.problem && !loadedOlder.current) void more(size - ids.length);
  }, [next, ids.length, topic]);

  const more = async (limit = 50) => {
    if (!next) return;
    setOlder((o) => ({ ...o, busy: true, problem: null }));
    try {
      const page = await get<Found>("v1/tasks", { q, after: next, limit });
      if (began.current !== q) return;
      loadedOlder.current = true;
      for (const t of page.items) rows.current.set(t.id, t);
      setIDs((was) => [...was, ...page.items.map((t) => t.id).filter((id) => !was.includes(id))]);
      setNext(page.next);
      setOlder((o) => ({ busy: false, problem: null, scanned: o.scanned + page.scanned }));
    } catch (err) {
      if (!(err instanceof Problem)) console.error(err);
      setOlder((o) => ({ ...o, busy: false, problem: err as Error }));
    }
  };

  useEffect(() => {
    if (fresh.length > 0) announce(`${plural(fresh.length, "new task")}.`);
  }, [fresh.length]);

  const showFresh = () => {
    takeLive();
    window.scrollTo(0, 0);
  };

  const list = ids.map((id) => rows.current.get(id)).filter((t): t is Task => !!t);
  const labels = useMemo(() => [...new Set(list.flatMap((t) => Object.entries(t.labels ?? {}).map(([k, v]) => `${k}=${quoted(v)}`)))].slice(0, 200), [ids]);
  const shownColumns = chosenColumns.value.split(",").map((id) => columns.find((c) => c.id === id)).filter((c): c is Column => !!c);

  const pick = (id: string, on: boolean) => {
    const s = new Set(picked);
    if (on) s.add(id);
    else s.delete(id);
    setPicked(s);
    setAll(false);
  };
  const move = (by: number) => {
    const at = list.findIndex((t) => t.id === cursor);
    const to = list[Math.max(0, Math.min(list.length - 1, at < 0 ? 0 : at + by))];
    if (!to) return;
    setCursor(to.id);
    const row = table.current?.querySelector<HTMLElement>(`[data-id="${to.id}"]`);
    row?.querySelector<HTMLElement>("a")?.focus({ preventScroll: true });
    row?.scrollIntoView({ block: "nearest" });
  };
  useKeys([
    { keys: "j", text: "Next row", group: "list", run: () => move(1) },
    { keys: "k", text: "Previous row", group: "list", run: () => move(-1) },
    { keys: "x", text: "Select the row", group: "list", run: () => cursor && pick(cursor, !picked.has(cursor)) },
    { keys: "Enter", text: "Open the row", group: "list", run: () => cursor && go(taskHref(cursor)) },
    {
      keys: "Escape",
      text: "Clear the selection",
      group: "list",
      run: () => {
        setPicked(new Set());
        setAll(false);
        setCursor("");
      },
    },
  ]);

  const act = (verb: Verb) => openBulk(verb, all ? { q } : { ids: [...picked] }, () => undefined);
  const everything = list.length > 0 && list.every((t) => picked.has(t.id));

  return (
    <>
      {setQuery && <QueryBox q={q} set={setQuery} problem={topic.problem?.status === 400 ? topic.problem : null} labels={labels} />}
      {topic.problem && topic.problem.status !== 400 && <ProblemBox problem={topic.problem} />}
      <div class="list-head">
        <p>
          {topic.loaded && !topic.problem && (
            <>
              {plural(list.length, "task")}
              {next ? " shown, there are more" : ""}
            </>
          )}
          {fresh.length > 0 && (
            <Button small kind="primary" onClick={showFresh}>
              {fresh.length === 50 ? "50 or more" : number(fresh.length)} new
            </Button>
          )}
        </p>
        {setQuery && (
          <label class="rows">
            Rows{" "}
            <select value={String(size)} onChange={(ev) => setParams({ rows: ev.currentTarget.value === "50" ? undefined : ev.currentTarget.value })}>
              {sizes.map((n) => (
                <option key={n} value={n}>
                  {n}
                </option>
              ))}
            </select>
          </label>
        )}
      </div>
      {mayOperate.value && picked.size > 0 && (
        <div class="selection" role="region" aria-label="Selection">
          <span>
            {all ? "All tasks that match are selected." : `${plural(picked.size, "task")} selected.`}{" "}
            {!all && everything && (next || fresh.length > 0) && (
              <button type="button" class="link" onClick={() => setAll(true)}>
                Select all that match
              </button>
            )}
          </span>
          <span class="actions">
            {(["retry", "cancel", "unblock", "delete"] as Verb[]).map((v) => (
              <Button small key={v} onClick={() => act(v)}>
                {v[0]?.toUpperCase() + v.slice(1)}
              </Button>
            ))}
            <Button small kind="plain" onClick={() => (setPicked(new Set()), setAll(false))}>
              Clear
            </Button>
          </span>
        </div>
      )}
      {!topic.loaded && !topic.problem ? (
        <Loading rows={8} />
      ) : list.length === 0 && topic.problem ? null : list.length === 0 && !next ? (
        <div class="panel">
          <Empty title={q ? "No task matches." : "There are no tasks yet."}>
            {q ? (
              setQuery && <button type="button" class="link" onClick={() => setQuery("")}>Remove the query</button>
            ) : (
              <>
                Enqueue one from a program, or by hand: <code>weaver submit weaver.exec.run.v1 '{'{"shell": "echo hello"}'}'</code>
              </>
            )}
          </Empty>
        </div>
      ) : (
        <div
          class="panel scroll"
          onMouseEnter={() => (pointed.current = true)}
          onMouseLeave={() => (pointed.current = false)}
        >
          <table class="cards tasks" ref={table}>
            <thead>
              <tr>
                {mayOperate.value && (
                  <th scope="col" class="pick">
                    <label class="target">
                      <input type="checkbox" aria-label="Select all shown" checked={everything} onChange={(ev) => (setPicked(ev.currentTarget.checked ? new Set(list.map((t) => t.id)) : new Set()), setAll(false))} />
                    </label>
                  </th>
                )}
                <th scope="col">State</th>
                <th scope="col">Task</th>
                {shownColumns.map((c) => (
                  <th scope="col" key={c.id} class={c.num ? "num" : undefined}>
                    {c.title}
                  </th>
                ))}
              </tr>
            </thead>
            <tbody>
              {list.map((t) => (
                <tr key={t.id} data-id={t.id} class={[picked.has(t.id) && "chosen", cursor === t.id && "cursor", gone.has(t.id) && "gone"].filter(Boolean).join(" ")}>
                  {mayOperate.value && (
                    <td class="pick">
                      <label class="target">
                        <input type="checkbox" aria-label={`Select ${t.node ?? t.task_type} ${t.id.slice(-6)}`} checked={picked.has(t.id)} onChange={(ev) => pick(t.id, ev.currentTarget.checked)} />
                      </label>
                    </td>
                  )}
                  <td>
                    <State state={t.state} reason={t.waiting_reason} />
                    {gone.has(t.id) && <span class="tag">matches no more</span>}
                  </td>
                  <th scope="row">
                    <a href={taskHref(t.id)} onFocus={() => setCursor(t.id)}>
                      <Text>{t.node ?? t.task_type}</Text>
                    </a>{" "}
                    <span class="muted mono">
                      {t.node && <Text>{firstLine(t.task_type, 60)}</Text>} …{t.id.slice(-6)}
                    </span>
                  </th>
                  {shownColumns.map((c) => (
                    <td key={c.id} data-label={c.title} class={c.num ? "num" : undefined}>
                      {c.cell(t)}
                    </td>
                  ))}
                </tr>
              ))}
            </tbody>
          </table>
          {older.problem && <ProblemBox problem={older.problem} retry={() => void more()} />}
          {next && (
            <div class="more">
              <Button onClick={() => void more(size)} disabled={older.busy} aria-busy={older.busy}>
                {older.busy ? "Searching…" : "Older tasks"}
              </Button>
              {older.scanned > 0 && <span class="muted">{number(older.scanned)} more tasks read</span>}
            </div>
          )}
        </div>
      )}
    </>
  );
}

function Columns() {
  const on = new Set(chosenColumns.value.split(","));
  return (
    <Dialog title="Columns" close={closeOpened}>
      <div class="dialog-body">
        {columns.map((c) => (
          <label class="check" key={c.id}>
            <input
              type="checkbox"
              checked={on.has(c.id)}
              onChange={(ev) => {
                if (ev.currentTarget.checked) on.add(c.id);
                else on.delete(c.id);
                chosenColumns.value = columns.filter((x) => on.has(x.id)).map((x) => x.id).join(",");
              }}
            />
            {c.title}
          </label>
        ))}
      </div>
      <footer>
        <Button kind="primary" onClick={closeOpened}>
          Done
        </Button>
      </footer>
    </Dialog>
  );
}
