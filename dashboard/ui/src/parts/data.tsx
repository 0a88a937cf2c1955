// Tables, filters, pages, strips of runs, and the dialog of a verb.
import { useLayoutEffect, useRef, useState } from "preact/hooks";
import { get } from "../lib/api";
import { number, plural, visible } from "../lib/format";
import { useLoad, useReload } from "../lib/load";
import { useMarkKeys, type MarkKeys } from "../lib/marks";
import { go, href, jobHref, params, setParams, taskHref } from "../lib/router";
import { exact, now, relative } from "../lib/time";
import type { Found, Job, Page, Task } from "../lib/types";
import { Button, Text, type Children } from "./basic";
import { closeOpened, Field, FormDialog, open, ReasonField, toast } from "./dialog";

export interface Column<T> {
  head: string;
  cell: (row: T) => Children;
  num?: boolean;
  hidden?: boolean; // the heading is only read aloud
}

/** A table that becomes cards on narrow screens. The first column names the row. */
export function Table<T>({ label, rows, id, columns, rowClass, class: cls }: { label: string; class?: string; rows: T[]; id: (row: T, i: number) => string; columns: (Column<T> | false)[]; rowClass?: (row: T) => string | undefined }) {
  const list = columns.filter((c) => c !== false);
  return (
    <div class="scroll">
      <table class={"cards" + (cls ? " " + cls : "")} aria-label={label}>
        <thead>
          <tr>
            {list.map((c) => (
              <th scope="col" key={c.head} class={c.num ? "num" : undefined}>
                {c.hidden ? <span class="visually-hidden">{c.head}</span> : c.head}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {rows.map((row, i) => (
            <tr key={id(row, i)} class={rowClass?.(row)}>
              {list.map((c, at) =>
                at === 0 ? (
                  <th scope="row" key={c.head}>
                    {c.cell(row)}
                  </th>
                ) : (
                  <td key={c.head} data-label={c.hidden ? undefined : c.head} class={c.num ? "num" : undefined}>
                    <div>{c.cell(row)}</div>
                  </td>
                ),
              )}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

/** The text of a name; its full text is in the title. */
export const Name = ({ children, to }: { children: string; to: string }) => (
  <a href={to} class="name" title={visible(children)}>
    <Text>{children}</Text>
  </a>
);

export interface Filter {
  name: string; // of the URL's parameter
  label: string;
  placeholder?: string;
  options?: (string | [string, string])[]; // a list to choose from
  suggest?: string[];
}

/** Filters of a list. Their values are parameters of the URL; a change leads to the first page. */
export function Filters({ filters, children }: { filters: Filter[]; children?: Children }) {
  const p = params.value;
  const any = filters.some((f) => p.get(f.name));
  const set = (name: string, value: string) => setParams({ [name]: value.trim(), after: undefined });
  return (
    <search class="filters">
      {filters.map((f) => (
        <label key={f.name}>
          <span>{f.label}</span>
          {f.options ? (
            <select value={p.get(f.name) ?? ""} onChange={(ev) => set(f.name, ev.currentTarget.value)}>
              <option value="">all</option>
              {f.options.map((o) => {
                const [value, text] = typeof o === "string" ? [o, o] : o;
                return (
                  <option value={value} key={value}>
                    {text}
                  </option>
                );
              })}
            </select>
          ) : (
            <input
              type="search"
              value={p.get(f.name) ?? ""}
              placeholder={f.placeholder}
              list={f.suggest ? "suggest-" + f.name : undefined}
              spellcheck={false}
              autoComplete="off"
              onChange={(ev) => set(f.name, ev.currentTarget.value)}
              onInput={(ev) => ev.currentTarget.value === "" && set(f.name, "")}
              onKeyDown={(ev) => ev.key === "Enter" && set(f.name, ev.currentTarget.value)}
            />
          )}
          {f.suggest && (
            <datalist id={"suggest-" + f.name}>
              {f.suggest.map((s) => (
                <option value={s} key={s} />
              ))}
            </datalist>
          )}
        </label>
      ))}
      {any && (
        <Button kind="plain" onClick={() => setParams({ ...Object.fromEntries(filters.map((f) => [f.name, undefined])), after: undefined })}>
          Clear
        </Button>
      )}
      {children}
    </search>
  );
}

/** The way through a list by cursors. The browser's Back leads to the page before. */
export function Pager({ next, param = "after" }: { next: string | undefined; param?: string }) {
  const later = params.value.has(param);
  if (!next && !later) return null;
  const to = (value: string | undefined) => setParams({ [param]: value }, { replace: false });
  return (
    <nav class="pager" aria-label="Pages of the list">
      <Button small icon="left" disabled={!later} onClick={() => to(undefined)}>
        First page
      </Button>
      <Button small icon="right" disabled={!next} onClick={() => to(next)}>
        Next page
      </Button>
    </nav>
  );
}

const markOf: Record<string, string> = { succeeded: "ok", success: "ok", failed: "bad", failure: "bad", blocked: "wait", cancelled: "idle" };

export interface Mark {
  id: string;
  state: string;
  text?: string;
  to?: string;
}

/** The mark that the keys have chosen, for screen readers. */
export function Spoken({ keys, count, children }: { keys: MarkKeys; count: number; children: string }) {
  const at = keys.at < 0 ? count - 1 : keys.at;
  return (
    <span role="option" class="visually-hidden" key={at} id={keys.id} aria-selected="true" aria-posinset={at + 1} aria-setsize={count}>
      {children}
    </span>
  );
}

/** Runs as small marks, oldest first: a failure is a full bar, a success half of one. A click or Enter opens the run. */
export function Marks({ marks }: { marks: Mark[] }) {
  const by = new Map<string, number>();
  for (const m of marks) by.set(m.state, (by.get(m.state) ?? 0) + 1);
  const words = [...by].map(([s, n]) => `${number(n)} ${s}`).join(", ");
  const show = (m: Mark | undefined) => m?.to && go(m.to);
  const k = useMarkKeys(marks.length, (at) => show(marks[at]));
  if (marks.length === 0) return <span class="muted">none yet</span>;
  const chosen = marks[k.at];
  const text = (m: Mark | undefined) => m?.text ?? m?.state ?? "";
  return (
    <span class="runs-keys" aria-label={`The last ${plural(marks.length, "run")}: ${words}`} {...k.keys}>
      <span class="runs" aria-hidden="true" onClick={(ev) => show(marks[Number((ev.target as HTMLElement).dataset["at"] ?? NaN)])}>
        {marks.map((m, i) => (
          <i key={m.id} class={(markOf[m.state] ?? "idle") + (i === k.at ? " chosen" : "")} title={text(m)} data-at={i} />
        ))}
      </span>
      {chosen && (
        <span class="runs-tip" aria-hidden="true">
          {text(chosen)}
        </span>
      )}
      <Spoken keys={k} count={marks.length}>
        {text(marks[k.at < 0 ? marks.length - 1 : k.at])}
      </Spoken>
    </span>
  );
}

/** The marks of tasks or jobs, given newest first. */
function marksOf(list: (Task | Job)[]): Mark[] {
  const when = (at: string | undefined) => (at ? `, ${relative(Date.parse(at), now.peek())}\n${exact(Date.parse(at))}` : "");
  return list.map((t) => ({ id: t.id, state: t.state, to: "counters" in t ? jobHref(t.id) : taskHref(t.id), text: t.state + ("error" in t && t.error ? ": " + (t.error as Task["error"])?.kind.replaceAll("_", " ") : "") + when(t.finished_at) })).reverse();
}

/** The last 50 ended tasks of a query, or jobs of a name, as marks. They are loaded when they come into view, again every 30 s, and when version changes. */
export function Strip({ q, job, version = "" }: { q: string; job?: string | undefined; version?: string }) {
  const box = useRef<HTMLSpanElement>(null);
  const [seen, setSeen] = useState(false);
  useLayoutEffect(() => {
    const el = box.current;
    if (!el) return;
    if (el.getBoundingClientRect().top < innerHeight * 2) return setSeen(true);
    const watch = new IntersectionObserver((list) => list.some((e) => e.isIntersecting) && setSeen(true));
    watch.observe(el);
    return () => watch.disconnect();
  }, []);
  return (
    <span class="runs-box" ref={box}>
      {seen && <Loaded q={q} job={job} version={version} />}
    </span>
  );
}

function Loaded({ q, job, version }: { q: string; job?: string | undefined; version: string }) {
  const runs = useLoad(
    q + job,
    async (s) => marksOf((await (job === undefined ? get<Found>("v1/tasks", { q: `${q} state:succeeded,failed,cancelled`, limit: 50 }, s) : get<Page<Job>>("v1/jobs", { name: job, state: ["succeeded", "failed", "cancelled"], limit: 50 }, s))).items),
    30_000,
  );
  useReload(runs.reload, version);
  if (runs.problem) return <span class="muted">not available</span>;
  return runs.data ? <Marks marks={runs.data} /> : <span class="loading muted">…</span>;
}

/** A share of attempts that failed, in words. */
export function rate(bad: number, all: number): string {
  if (all === 0) return "–";
  const percent = (bad / all) * 100;
  return `${bad > 0 && percent < 1 ? "< 1" : Math.round(percent)} % of ${number(all)}`;
}

interface Verb {
  title: string;
  verb: string; // the button
  keeps?: Children; // the effects of the verb
  danger?: boolean;
  reason?: boolean; // false: the verb has none
  check?: string; // the label of an option that run gets
  run: (reason: string, checked: boolean) => Promise<unknown>;
  done: string | ((result: unknown) => string);
  link?: (result: unknown) => string | undefined; // of the message
  after?: () => void;
}

/** Asks for the reason of a verb, and does it. */
export function openVerb(v: Verb): void {
  open(<VerbDialog {...v} />);
}

function VerbDialog(v: Verb) {
  const [reason, setReason] = useState("");
  const [checked, setChecked] = useState(false);
  return (
    <FormDialog
      title={v.title}
      verb={v.verb}
      danger={v.danger ?? false}
      close={closeOpened}
      submit={async () => {
        const result = await v.run(reason.trim(), checked);
        toast(typeof v.done === "string" ? v.done : v.done(result), v.link?.(result));
        v.after?.();
      }}
    >
      {v.keeps && <p class="dialog-text">{v.keeps}</p>}
      {v.check && (
        <label class="check">
          <input type="checkbox" checked={checked} onChange={(ev) => setChecked(ev.currentTarget.checked)} /> {v.check}
        </label>
      )}
      {v.reason !== false && <ReasonField value={reason} set={setReason} />}
    </FormDialog>
  );
}

/** The body of a verb. */
export const because = (reason: string): { reason?: string } => (reason ? { reason } : {});

/** The progress of a job as one bar, and in words. Without the states, ended tasks that did not succeed are counted as one. */
export function JobBar({ c, states }: { c: { total: number; unfinished: number; succeeded: number }; states?: Record<string, number> | undefined }) {
  const rest = Math.max(0, c.total - c.unfinished - c.succeeded);
  const failed = states ? (states["failed"] ?? 0) : rest;
  const cancelled = rest - failed;
  const words = [`${number(c.succeeded)} of ${plural(c.total, "task")} succeeded`, failed > 0 && `${number(failed)} ${states ? "failed" : "failed or cancelled"}`, cancelled > 0 && `${number(cancelled)} cancelled`, c.unfinished > 0 && `${number(c.unfinished)} not ended`].filter(Boolean).join(", ");
  const part = (n: number, cls: string) => n > 0 && <i class={cls} style={{ width: `${(100 * n) / Math.max(c.total, 1)}%` }} />;
  return (
    <span class="job-bar">
      <span class="bar" aria-hidden="true">
        {part(c.succeeded, "ok")}
        {part(failed, "bad")}
        {part(cancelled, "idle")}
      </span>
      <span>{words}</span>
    </span>
  );
}

/** A list of names and values as a small table, for labels and metadata. */
export function Pairs({ map }: { map: Record<string, string> }) {
  return (
    <dl class="facts">
      {Object.entries(map).map(([k, v]) => (
        <div key={k}>
          <dt>
            <Text>{k}</Text>
          </dt>
          <dd>
            <Text>{v}</Text>
          </dd>
        </div>
      ))}
    </dl>
  );
}

/** A labelled text input, for the forms of dialogs. */
export function TextField({ label, value, set, help, error, ...rest }: { label: string; value: string; set: (s: string) => void; help?: Children; error?: string | undefined; type?: string; required?: boolean; placeholder?: string; min?: number; list?: string; pattern?: string }) {
  return (
    <Field label={label} help={help} error={error}>
      {(a) => <input {...a} type="text" autoComplete="off" spellcheck={false} {...rest} value={value} onInput={(ev) => set(ev.currentTarget.value)} />}
    </Field>
  );
}

/** A link to tasks by a query. */
export const tasksHref = (q: string): string => href("tasks", { q });
