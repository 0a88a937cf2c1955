// The attempts of a task on one time axis, with their decisions and steps.
import { useState } from "preact/hooks";
import { number, plural } from "../lib/format";
import { duration, exact, now } from "../lib/time";
import type { Attempt, Decision, History, Step, Task } from "../lib/types";
import { taskHref } from "../lib/router";
import { ended } from "../lib/task";
import { Button, Empty, Text, Time, type Children } from "./basic";
import { Table } from "./data";
import { Icon, type IconName } from "./icons";

interface Bar {
  key: string;
  label: Children;
  cls: string;
  from: number;
  to: number;
  open?: boolean; // it goes on
  sub?: boolean;
  title: string;
}

/** The colours of outcomes; all others are failures. */
export const outcomeClass: Record<string, string> = { success: "ok", undone: "ok", blocked: "wait", suspended: "idle", decompose: "idle", add_dependency: "idle", released: "idle", cancelled: "idle", "": "run" };
const outcomeIcon: Record<string, IconName> = { success: "check", undone: "undo", undo_failed: "warning", blocked: "hand", suspended: "hourglass", decompose: "jobs", add_dependency: "jobs", released: "left", cancelled: "stop", "": "play", lease_lost: "warning" };
export const outcomeWord: Record<string, string> = { "": "running", failure: "failed", success: "succeeded", suspended: "waits", undo_failed: "undo failed", add_dependency: "waits for tasks", decompose: "stored children", decode_failed: "could not read its input", lease_lost: "lost its lease", released: "given back" };

const said = (s: string): string => s.replaceAll("_", " ");
const ms = (t: string | undefined): number => (t && !t.startsWith("0001") ? Date.parse(t) : NaN);

/** A step as icon and words; a failed undo is not a failed step. */
export function StepState({ s }: { s: Step }) {
  const undo = s.kind === "undo" || s.kind === "cleanup";
  const bad = s.state === "failed";
  const icon: IconName = bad ? (undo ? "undo" : "cross") : s.state === "completed" ? (undo ? "undo" : "check") : "hourglass";
  const text = undo ? (bad ? `${s.kind} failed` : s.state === "completed" ? (s.kind === "undo" ? "undone" : "cleaned up") : s.kind + " begun") : s.state;
  return (
    <span class={"state " + (bad ? (undo ? "undo-failed" : "failed") : s.state === "completed" ? (undo ? "" : "succeeded") : "running")}>
      <Icon name={icon} />
      <span>{text}</span>
    </span>
  );
}

const stepWait = (s: Step) => s.kind === "sleep" || s.kind === "signal" || s.kind === "ask" || s.kind === "call" || s.kind === "race" || s.kind === "each";

/** More rows of the time axis are folded at first. */
const rowsShown = 24;

export function Strip({ t, h }: { t: Task; h: History }) {
  const [all, setAll] = useState(false);
  if (h.attempts.length === 0) return null;
  const live = !ended(t);
  const at = live ? now.value : 0;
  const bars: Bar[] = [];
  const many = h.attempts.length + h.steps.length > rowsShown && !all;
  const attempts = h.attempts.slice(many ? -20 : -500);
  for (const a of attempts) {
    const end = ms(a.finished_at);
    const running = Number.isNaN(end);
    bars.push({ key: "a" + a.attempt_no, label: `Attempt ${a.attempt_no}`, cls: a.outcome === "undo_failed" ? "undo-bad" : a.outcome === "undone" ? "undone" : (outcomeClass[a.outcome ?? ""] ?? "bad"), from: ms(a.started_at), to: running ? at : end, open: running, title: outcomeWord[a.outcome ?? ""] ?? said(a.outcome ?? "") });
    if (many && a.attempt_no < (h.attempts.at(-3)?.attempt_no ?? 0)) continue;
    for (const s of h.steps.filter((s) => s.attempt_no === a.attempt_no).slice(0, many ? 15 : 200)) {
      const from = ms(s.started_at);
      const done = ms(s.completed_at);
      const wake = ms(s.wake_at);
      const start = Number.isNaN(from) ? (s.kind === "sleep" ? done : NaN) : from;
      if (Number.isNaN(start)) continue;
      // The wait of a sleep ends at its time; its record is complete at its begin.
      const stop = s.kind === "sleep" && !Number.isNaN(wake) ? wake : done;
      const waits = stepWait(s);
      const undo = s.kind === "undo" || s.kind === "cleanup";
      const bad = s.state === "failed";
      bars.push({ key: `s${a.attempt_no} ${s.name} ${s.try} ${s.kind} ${s.round ?? 0}`, sub: true, label: <><Text most={60}>{s.name}</Text>{s.try > 1 ? ` ×${s.try}` : ""}</>, cls: (bad ? (undo ? "undo-bad" : "bad") : waits ? "waits" : undo ? "undone" : "ok") + " thin", from: start, to: Number.isNaN(stop) ? at || ms(t.finished_at) : stop, open: Number.isNaN(stop) && live, title: `${said(s.kind)}: ${s.state}` });
    }
  }
  const times = bars.flatMap((b) => [b.from, b.to]).filter((x) => x > 0);
  const first = Math.min(ms(t.created_at), ...times);
  const ready = t.state === "pending" ? ms(t.ready_at) : NaN;
  const last = Math.max(first + 1, ...times, live ? at : 0, ms(t.finished_at) || 0, ready - at < 3_600_000 ? ready : 0);
  const span = last - first;
  const left = (x: number, width = 0) => `min(${((Math.max(first, x) - first) / span) * 100}%, calc(100% - ${width}px))`;
  const marks: { at: number; title: string; icon: IconName }[] = [
    ...h.signals.map((s) => ({ at: ms(s.sent_at), title: `Signal ${s.name}`, icon: "events" as IconName })),
    ...h.audit.map((e) => ({ at: ms(e.at), title: `${said(e.verb)} by ${e.actor}`, icon: "hand" as IconName })),
  ].filter((m) => m.at >= first && m.at <= last);
  return (
    <figure class="tl" aria-label={`Time axis: ${plural(h.attempts.length, "attempt")} in ${duration(span)}`}>
      <div class="tl-axis" aria-hidden="true">
        <span class="tl-label" />
        <span class="tl-track">
          <span>{exact(first)}</span>
          <span>{duration(span / 2)}</span>
          <span>{live ? "now" : `after ${duration(span)}`}</span>
        </span>
      </div>
      {marks.length > 0 && (
        <div class="tl-row">
          <span class="tl-label muted">Signals, operators</span>
          <span class="tl-track">
            {marks.slice(0, 100).map((m, i) => (
              <span key={i} class="tl-mark" title={`${m.title}\n${exact(m.at, undefined, true)}`} style={{ left: left(m.at, 8) }}>
                <Icon name={m.icon} />
                <span class="visually-hidden">{m.title}</span>
              </span>
            ))}
          </span>
        </div>
      )}
      {bars.map((b) => (
        <div class={"tl-row" + (b.sub ? " sub" : "")} key={b.key}>
          <span class="tl-label">{b.label}</span>
          <span class="tl-track">
            <span class={"tl-bar " + b.cls + (b.open ? " open" : "")} style={{ left: left(b.from, 4), width: `${Math.max(0, ((b.to - b.from) / span) * 100)}%` }} title={`${b.title}, ${duration(b.to - b.from)}\n${exact(b.from, undefined, true)}`} />
            <span class={"tl-text" + ((b.from - first) / span > 0.6 ? " before" : "")} style={(b.from - first) / span > 0.6 ? { right: `${100 - ((b.from - first) / span) * 100}%` } : { left: left(b.to) }}>
              {b.title}, {b.open && b.sub ? "waiting " : ""}
              {duration(b.to - b.from)}
            </span>
          </span>
        </div>
      ))}
      {(many || attempts.length < h.attempts.length) && (
        <figcaption class="muted">
          {plural(attempts.length, "attempt")} of {number(h.attempts.length)}, with the first steps of the last three.{" "}
          {many && (
            <Button small onClick={() => setAll(true)}>
              Show everything
            </Button>
          )}
        </figcaption>
      )}
    </figure>
  );
}

const decisionWord: Record<string, string> = { mark_dead: "give up", block: "wait for a person", retry: "retry", repair: "repair the input", decompose: "store children", add_dependency: "wait for tasks", succeed: "succeed" };

export function Attempts({ h, value }: { h: History; value: (s: Step) => Children }) {
  if (h.attempts.length === 0) return <Empty title="It has not started yet." />;
  const shown = h.attempts.slice(-50).reverse();
  const before = h.steps.filter((s) => s.attempt_no === 0);
  return (
    <ol class="attempts">
      {shown.map((a, i) => (
        <li key={a.attempt_no}>
          <AttemptBox a={a} decisions={h.decisions.filter((d) => d.attempt_no === a.attempt_no)} steps={h.steps.filter((s) => s.attempt_no === a.attempt_no)} open={i < 3} value={value} />
        </li>
      ))}
      {shown.length < h.attempts.length && <li class="muted">And {number(h.attempts.length - shown.length)} earlier attempts.</li>}
      {before.length > 0 && (
        <li>
          <h3>Taken over from the task that this one repeats</h3>
          <Steps steps={before} value={value} />
        </li>
      )}
    </ol>
  );
}

function AttemptBox({ a, decisions, steps, open, value }: { a: Attempt; decisions: Decision[]; steps: Step[]; open: boolean; value: (s: Step) => Children }) {
  const o = a.outcome ?? "";
  const end = ms(a.finished_at);
  return (
    <details class="attempt" open={open}>
      <summary>
        <h3>Attempt {a.attempt_no}</h3>
        <span class={"outcome " + (outcomeClass[o] ?? "bad")}>
          <Icon name={outcomeIcon[o] ?? "cross"} /> {outcomeWord[o] ?? said(o)}
        </span>
        <span class="muted">
          <Time at={a.started_at} /> · {duration((Number.isNaN(end) ? now.value : end) - ms(a.started_at))} · <Text>{a.worker}</Text>
          {a.code_version > 1 && ` · code version ${a.code_version}`}
          {a.handler && (
            <>
              {" "}
              · handler <Text>{a.handler}</Text> <Text>{a.handler_reason}</Text>
            </>
          )}
        </span>
      </summary>
      <div class="attempt-body">
        {a.error && <ErrorText e={a.error} />}
        {decisions.map((d, i) => (
          <DecisionText d={d} key={i} />
        ))}
        {a.notes && Object.keys(a.notes).length > 0 && <Evidence of={a.notes} />}
        {(a.steps_unreached?.length ?? 0) > 0 && (
          <p class="note">
            Completed steps that this attempt never reached: <Text>{a.steps_unreached?.join(", ")}</Text>. They may have been renamed.
          </p>
        )}
        {steps.length > 0 && <Steps steps={steps} value={value} />}
      </div>
    </details>
  );
}

export function ErrorText({ e }: { e: NonNullable<Attempt["error"]> }) {
  const long = e.message.length > 600 || e.message.split("\n").length > 8;
  return (
    <div class="error-text">
      <p>
        <span class="tag bad">{said(e.kind)}</span>
        {e.code && (
          <span class="tag">
            <Text>{e.code}</Text>
          </span>
        )}
        {e.step && (
          <span class="muted">
            {" "}
            in step <Text>{e.step}</Text>
          </span>
        )}
      </p>
      {long ? (
        <details>
          <summary>
            <Text most={200}>{e.message}</Text>
          </summary>
          <pre tabIndex={0}><Text>{e.message}</Text></pre>
        </details>
      ) : (
        <pre><Text>{e.message}</Text></pre>
      )}
      {e.stack && (
        <details>
          <summary>Stack</summary>
          <pre tabIndex={0}><Text>{e.stack}</Text></pre>
        </details>
      )}
    </div>
  );
}

function DecisionText({ d }: { d: Decision }) {
  return (
    <div class="decision">
      <p>
        <Icon name="right" /> Decision: <strong>{decisionWord[d.kind] ?? said(d.kind)}</strong>
        {ms(d.next_ready_at) > 0 && (
          <>
            , due <Time at={d.next_ready_at} />
          </>
        )}
        : <Text>{d.reason.text}</Text>
        {d.reason.change && (
          <>
            . Change: <Text>{d.reason.change}</Text>
          </>
        )}
      </p>
      <p class="evidence muted">
        policy <Text>{d.reason.policy}</Text> v{d.reason.version}
        {d.reason.evidence && <Evidence of={d.reason.evidence} />}
      </p>
      {(d.child_task_ids?.length ?? 0) > 0 && (
        <p class="muted">
          {plural(d.child_task_ids?.length ?? 0, "child", "children")}:{" "}
          {d.child_task_ids?.slice(0, 10).map((id) => (
            <a key={id} class="mono" href={taskHref(id)}>
              …{id.slice(-6)}{" "}
            </a>
          ))}
        </p>
      )}
    </div>
  );
}

function Evidence({ of }: { of: Record<string, unknown> }) {
  return (
    <span class="labels">
      {Object.entries(of).map(([k, v]) => (
        <span class="chip" key={k}>
          <span class="muted">{said(k)}</span> <Text most={80}>{typeof v === "string" ? v : JSON.stringify(v)}</Text>
        </span>
      ))}
    </span>
  );
}

export function Steps({ steps, value }: { steps: Step[]; value: (s: Step) => Children }) {
  return (
    <>
      <Table
        label="Steps"
        class="steps"
        rows={steps.slice(0, 500)}
        id={(s) => `${s.name} ${s.kind} ${s.round ?? 0} ${s.try} ${s.attempt_no}`}
        columns={[
          { head: "Step", cell: (s) => <Text>{s.name}</Text> },
          {
            head: "State",
            cell: (s) => (
              <>
                <StepState s={s} />
                {s.undo && s.undo !== "open" && s.kind !== "undo" && <span class={"tag" + (s.undo === "skipped" ? " wait" : "")}>{s.undo === "kept" ? "kept" : s.undo === "undone" ? "undone since" : "undo skipped"}</span>}
                {s.undo === "open" && <span class="tag">has an undo</span>}
              </>
            ),
          },
          { head: "Kind", cell: (s) => said(s.kind) },
          { head: "Try", num: true, cell: (s) => s.try },
          {
            head: "Took",
            num: true,
            cell: (s) => {
              const took = ms(s.completed_at) - ms(s.started_at);
              return Number.isNaN(took) ? "–" : duration(took);
            },
          },
          {
            head: "Details",
            cell: (s) => (
              <>
                {s.signal && <>waits for signal <Text>{s.signal}</Text>. </>}
                {s.kind === "sleep" && s.wake_at && <>until <Time at={s.wake_at} />. </>}
                {s.kind !== "sleep" && ms(s.wake_at) > 0 && <>times out <Time at={s.wake_at} />. </>}
                {s.children ? `${number((s.children ?? 0) - (s.children_left ?? 0))} of ${plural(s.children, "child", "children")} ended. ` : ""}
                {s.cost ? `Cost ${number(s.cost)} µ. ` : ""}
                {s.error && <span class="error"><Text most={200}>{s.error.message}</Text></span>}
                {value(s)}
              </>
            ),
          },
        ]}
      />
      {steps.length > 500 && <p class="muted">The first 500 of {number(steps.length)} steps.</p>}
    </>
  );
}
