// The tabs of a task's page.
import { useEffect, useState } from "preact/hooks";
import { apiURL, get, Problem, send } from "../lib/api";
import { bytes, number } from "../lib/format";
import { field, parse, type Json } from "../lib/json";
import { useLoad, useReload } from "../lib/load";
import { taskHref } from "../lib/router";
import { mayReadValues } from "../lib/session";
import { ended, taskPath, undoFailed } from "../lib/task";
import { nanos } from "../lib/time";
import type { Artifact, AuditEntry, History, Need, Task, UndoEffect } from "../lib/types";
import { Button, Empty, ID, Loading, ProblemBox, Section, State, Text, Time, type Children } from "../parts/basic";
import { Table } from "../parts/data";
import { Icon, type IconName } from "../parts/icons";
import { payloadOf, PayloadOf, PayloadOnDemand, Viewer } from "../parts/payload";
import type { Records } from "./task";
import { TaskList } from "./tasks";

/** A field of an entry of the records, with its numbers as they were stored. */
function item(h: Records, list: "signals" | "checkpoints", i: number, name: string): Json | undefined {
  const all = field(parse(h.text), list);
  return all?.kind === "array" ? field(all.items[i], name) : undefined;
}

export function Values({ t, h, version }: { t: Task; h: Records | undefined; version: string }) {
  if (t.forgotten || t.values_dropped)
    return (
      <div class="panel">
        <Empty title={t.forgotten ? "Its values were erased." : "A retention rule removed its values."} />
      </div>
    );
  const one = (what: string, title: string, empty: string) => (
    <Section title={title}>
      <div class="panel-body">
        <PayloadOf path={taskPath(t.id, "/payloads/" + what)} name={what} version={version} empty={empty} />
      </div>
    </Section>
  );
  const results = (h?.steps ?? []).filter((s) => s.state === "completed" && /^(step|ask|signal|start|race|each)$/.test(s.kind));
  return (
    <>
      {one("input", "Input", "It has no input.")}
      {t.state === "succeeded" && one("output", "Output", "It has no output.")}
      {t.unblock_input !== undefined && one("unblock_input", "Answer of the unblock", "It was unblocked without a value.")}
      {results.length > 0 && (
        <Section title="Results of steps" aside={number(results.length)}>
          <ul class="panel-body plain-list">
            {results.slice(0, 200).map((s) => (
              <li key={`${s.name} ${s.round ?? 0}`}>
                <PayloadOnDemand path={taskPath(t.id, "/payloads/steps/" + encodeURIComponent(s.name))} name={s.name} title={s.name} />
              </li>
            ))}
          </ul>
        </Section>
      )}
      {(h?.artifacts.length ?? 0) > 0 && <Artifacts list={h?.artifacts ?? []} />}
      {(h?.checkpoints.length ?? 0) > 0 && (
        <Section title="Checkpoints" aside={number(h?.checkpoints.length ?? 0)}>
          <ul class="panel-body plain-list">
            {h?.checkpoints.map((c, i) => (
              <li key={c.name}>
                <Text>{c.name}</Text> <span class="muted">saved <Time at={c.saved_at} /> by attempt {c.attempt_no}</span>
                {h && <Viewer of={payloadOf(item(h, "checkpoints", i, "value"))} name={"checkpoint " + c.name} />}
              </li>
            ))}
          </ul>
        </Section>
      )}
    </>
  );
}

function Artifacts({ list }: { list: Artifact[] }) {
  return (
    <Section title="Files" aside={number(list.length)}>
      <Table
        label="Files"
        rows={list}
        id={(a) => a.artifact_id}
        columns={[
          {
            head: "Name",
            cell: (a) =>
              a.blob?.size !== undefined && a.link === undefined ? (
                <a href={apiURL("v1/artifacts/" + encodeURIComponent(a.artifact_id), { task: a.task_id })} download>
                  <Icon name="download" /> <Text>{a.name}</Text>
                </a>
              ) : (
                <>
                  <Text>{a.name}</Text> <span class="muted"><Text most={200}>{typeof a.link === "string" ? a.link : JSON.stringify(a.link)}</Text></span>
                </>
              ),
          },
          { head: "Type", cell: (a) => <Text>{a.content_type}</Text> },
          { head: "Size", num: true, cell: (a) => (a.blob?.size === undefined ? "–" : bytes(a.blob.size)) },
          { head: "Attempt", cell: (a) => <>{a.attempt_no}{a.step && <> in <Text>{a.step}</Text></>}</> },
          { head: "Stored", cell: (a) => <Time at={a.created_at} /> },
          { head: "Kept until", cell: (a) => (a.expires_at ? <Time at={a.expires_at} /> : "its task is deleted") },
        ]}
      />
    </Section>
  );
}

const needWords: Record<string, string> = { success: "must succeed", failed: "must fail", done: "must end", ended: "must end" };

function Needs({ title, list, empty }: { title: string; list: Need[]; empty: string }) {
  return (
    <Section title={title} aside={list.length ? number(list.length) : undefined}>
      {list.length === 0 ? (
        <p class="panel-body muted">{empty}</p>
      ) : (
        <>
          <Table
            label={title}
            rows={list.slice(0, 500)}
            id={(n) => n.id + n.kind}
            columns={[
              { head: "Task", cell: (n) => <>{n.node && <a href={taskHref(n.id)}><Text>{n.node}</Text></a>} <ID id={n.id} to={taskHref(n.id)} /></> },
              { head: "State", cell: (n) => <><State state={n.state} />{n.error_kind && <span class="tag bad">{n.error_kind.replaceAll("_", " ")}</span>}</> },
              { head: "Condition", cell: (n) => <>{needWords[n.kind] ?? n.kind}{n.allow_failure && ", may fail"}{n.step && <> (<Text>{n.step}</Text>)</>}</> },
              { head: "Decided", cell: (n) => (n.done ? "yes" : "not yet") },
            ]}
          />
          {list.length > 500 && <p class="panel-body muted">The first 500 of {number(list.length)}.</p>}
        </>
      )}
    </Section>
  );
}

export function Related({ t, h }: { t: Task; h: History }) {
  const link = (id: string) => <ID id={id} to={taskHref(id)} />;
  const up: [string, Children][] = [
    ["Stored by", t.parent_task_id && link(t.parent_task_id)],
    ["Repeats", t.rerun_of && link(t.rerun_of)],
    ["Undoes", t.undo_of && link(t.undo_of)],
  ];
  return (
    <>
      {up.some(([, x]) => x) && (
        <Section title="Comes from">
          <dl class="facts">
            {up.map(([k, v]) => v && (
              <div key={k}>
                <dt>{k}</dt>
                <dd>{v}</dd>
              </div>
            ))}
          </dl>
        </Section>
      )}
      <Needs title="Needs" list={h.needs} empty="It needs no other task." />
      <Needs title="Needed by" list={h.dependents} empty="No task needs it." />
      <section aria-labelledby="children">
        <h2 id="children" class="part-title">Children</h2>
        <TaskList q={"parent:" + t.id} />
      </section>
    </>
  );
}

const undoWords: Record<string, { icon: IconName; text: string; cls: string }> = {
  declared: { icon: "undo", text: "will be undone", cls: "" },
  none: { icon: "dot", text: "has no undo: it stays", cls: "" },
  kept: { icon: "check", text: "stays", cls: "succeeded" },
  undone: { icon: "undo", text: "undone", cls: "succeeded" },
  failing: { icon: "undo", text: "undo fails, is tried again", cls: "undo-failed" },
  given_up: { icon: "warning", text: "undo given up: the effect remains", cls: "undo-failed" },
  skipped: { icon: "right", text: "undo skipped: the effect remains", cls: "blocked" },
};

function UndoState({ of }: { of: string }) {
  const w = undoWords[of] ?? { icon: "dot", text: of, cls: "" };
  return (
    <span class={"state " + w.cls}>
      <Icon name={w.icon} />
      <span>{w.text}</span>
    </span>
  );
}

export function UndoPlan({ t, version }: { t: Task; version: string }) {
  const plan = useLoad("undo " + t.id, (s) => get<{ effects: UndoEffect[] }>(taskPath(t.id, "/undo"), {}, s));
  useReload(plan.reload, version);
  if (plan.problem) return <ProblemBox problem={plan.problem} retry={plan.reload} />;
  if (!plan.data) return <Loading rows={4} />;
  const running = !!t.undo;
  return (
    <Section title="Undo plan" aside={undoFailed(t) ? <span class="tag bad">the undo failed</span> : running && !ended(t) ? <span class="tag wait">in progress, ends as {String(t.undo?.["ends_as"] ?? "")}</span> : undefined}>
      <p class="panel-body muted">{ended(t) ? "What became of the effects, the last one first." : running ? "In the order in which the effects are undone." : "What is undone, in this order, if the task ends without success."}</p>
      {plan.data.effects.length === 0 ? (
        <Empty title="No step has had an effect yet." />
      ) : (
        <Table
          label="Undo plan"
          rows={plan.data.effects}
          id={(e) => `${e.step} ${e.round ?? 0}`}
          columns={[
            { head: "Step", cell: (e) => <Text>{e.step}</Text> },
            { head: "Undo", cell: (e) => <UndoState of={e.undo} /> },
            { head: "Effect", cell: (e) => (e.effect === "unknown" ? "unknown: it may exist" : e.effect) },
            { head: "Began", cell: (e) => <Time at={e.at} /> },
            { head: "Failed tries", num: true, cell: (e) => e.tries || "–" },
            { head: "Last error", cell: (e) => e.error && <span class="error"><Text most={200}>{e.error.message}</Text></span> },
          ]}
        />
      )}
    </Section>
  );
}

export function Signals({ h }: { h: Records }) {
  const waits = h.steps.filter((s) => s.kind === "signal" && s.state === "waiting");
  const payload = (i: number) => item(h, "signals", i, "payload");
  return (
    <Section title="Signals">
      {waits.map((s) => (
        <p class="panel-body" key={s.name}>
          <Icon name="hourglass" /> Step <Text>{s.name}</Text> waits for <strong><Text>{s.signal}</Text></strong>
          {s.wake_at && <>, until <Time at={s.wake_at} /></>}.
        </p>
      ))}
      {h.signals.length === 0 ? (
        <Empty title="No signal was sent." />
      ) : (
        <ol class="panel-body plain-list">
          {h.signals.map((s, i) => (
            <li key={s.seq}>
              <strong><Text>{s.name}</Text></strong> <Time at={s.sent_at} /> {s.actor && <>by <Text>{s.actor}</Text></>} <span class="muted">{s.step ? <>taken by <Text>{s.step}</Text></> : "not taken yet"}, key <Text>{s.key}</Text></span>
              {mayReadValues.value && payload(i) && <Viewer of={payloadOf(payload(i))} name={"signal " + s.name} />}
            </li>
          ))}
        </ol>
      )}
    </Section>
  );
}

export function Audit({ list }: { list: AuditEntry[] }) {
  return (
    <Section title="Audit" aside={list.length ? number(list.length) : undefined}>
      {list.length === 0 ? (
        <Empty title="No person has changed this task." />
      ) : (
        <Table
          label="Audit"
          rows={[...list].reverse()}
          id={(e, i) => e.id ?? String(i)}
          columns={[
            { head: "Verb", cell: (e) => e.verb.replaceAll("_", " ") },
            { head: "Who", cell: (e) => <Text>{e.actor}</Text> },
            { head: "When", cell: (e) => <Time at={e.at} /> },
            { head: "Reason", cell: (e) => <Text>{e.reason}</Text> },
          ]}
        />
      )}
    </Section>
  );
}

interface TaskEvent {
  event: string;
  timestamp: string;
  attempt_no?: number;
  sequence?: number;
  step?: string;
  delay_ns?: number;
  duration_ns?: number;
  error?: { kind: string; message: string };
  reason?: string;
  actor?: string;
  [name: string]: unknown;
}

/** The recorded events, oldest first; the last page is read again when the task changes. */
export function Events({ t, version }: { t: Task; version: string }) {
  const [pages, setPages] = useState<{ text: string; items: TaskEvent[]; next: string | undefined; at: string }[]>([]);
  const [problem, setProblem] = useState<Error | null>(null);
  const [busy, setBusy] = useState(false);
  const load = async (after: string, kept: typeof pages) => {
    setBusy(true);
    setProblem(null);
    try {
      const text = await (await send("GET", taskPath(t.id, "/events"), { params: { after, limit: 100 } })).text();
      const page = JSON.parse(text) as { items: TaskEvent[]; next?: string };
      setPages([...kept, { text, items: page.items, next: page.next, at: after }]);
    } catch (err) {
      if (!(err instanceof Problem)) console.error(err);
      setProblem(err as Error);
    }
    setBusy(false);
  };
  useEffect(() => {
    const last = pages.at(-1);
    const timer = setTimeout(() => void load(last?.at ?? "", pages.slice(0, -1)), last ? 1000 : 0);
    return () => clearTimeout(timer);
  }, [version]);
  const last = pages.at(-1);
  return (
    <Section title="Events">
      {problem && <ProblemBox problem={problem} retry={() => void load(last?.next ?? "", pages)} />}
      {pages.length === 0 && !problem ? (
        <Loading rows={5} />
      ) : pages.every((p) => p.items.length === 0) ? (
        !problem && <Empty title="No events are kept of this task." />
      ) : (
        <ol class="event-list">
          {pages.flatMap((p) => p.items.map((e, i) => (
            <li key={`${e.sequence} ${e.event} ${i}`}>
              <EventLine e={e} json={() => { const l = field(parse(p.text), "items"); return l?.kind === "array" ? l.items[i] : undefined; }} />
            </li>
          )))}
        </ol>
      )}
      {last?.next && (
        <div class="more">
          <Button disabled={busy} onClick={() => void load(last.next ?? "", pages)}>
            Later events
          </Button>
        </div>
      )}
    </Section>
  );
}

function EventLine({ e, json }: { e: TaskEvent; json: () => Json | undefined }) {
  const [open, setOpen] = useState(false);
  return (
    <details onToggle={(ev) => ev.target === ev.currentTarget && setOpen(ev.currentTarget.open)}>
      <summary>
        <strong>{e.event}</strong> <Time at={e.timestamp} />{" "}
        <span class="muted">
          {e.attempt_no ? `attempt ${e.attempt_no} ` : ""}
          {e.step && <Text>{e.step}</Text>}
          {e.duration_ns ? ` took ${nanos(e.duration_ns)}` : ""}
          {e.delay_ns ? ` delay ${nanos(e.delay_ns)}` : ""} <Text>{e.reason}</Text> {e.actor && <>by <Text>{e.actor}</Text></>}
        </span>{" "}
        {e.error && <span class="error"><Text most={120}>{`${e.error.kind}: ${e.error.message}`}</Text></span>}
      </summary>
      {open && <Viewer of={payloadOf(json())} name={e.event} />}
    </details>
  );
}
