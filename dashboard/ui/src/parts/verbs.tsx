// The verbs of a task: when each is possible, and its dialog, which says beforehand what is kept and repeated.
import { useState } from "preact/hooks";
import { get, post, Problem, send } from "../lib/api";
import { plural } from "../lib/format";
import { useLoad } from "../lib/load";
import { go, href, path, taskHref } from "../lib/router";
import { may } from "../lib/session";
import { cli, ended, etag, nameOf, taskPath, undoFailed, undoing } from "../lib/task";
import type { History, Task, UndoEffect, WhyAction } from "../lib/types";
import { Copy, Text, type Children } from "./basic";
import { closeOpened, Field, FormDialog, open, ReasonField, toast } from "./dialog";
import type { IconName } from "./icons";
import { openRepair, openRerun, openSignal, openUnblock } from "./inputverbs";

export { openRepair, openRerun, openSignal, openUnblock };

/** The options of a verb that an explanation proposes. */
export interface Preset {
  force?: boolean;
  ask?: string;
  from?: string;
  name?: string;
  add_attempts?: number;
  add_cost?: number;
  keep_steps?: boolean;
  cleanup?: boolean;
  abandon_undo?: boolean;
}

export interface TaskVerb {
  id: string;
  title: string;
  icon: IconName;
  key: string;
  main?: boolean; // a button of its own, not an entry of the menu
  danger?: boolean;
  run: () => void;
}

/** The verbs that the task's state and the user's access allow. */
export function verbsOf(t: Task): TaskVerb[] {
  if (!may("read", "operate")) return [];
  const list: (TaskVerb | false)[] = [
    t.state === "blocked" && { id: "unblock", title: t.error?.ask ? "Answer" : "Unblock", icon: "hand", key: "u", main: true, run: () => openUnblock(t) },
    (t.state === "failed" || t.state === "cancelled" || undoing(t)) && { id: "retry", title: "Retry", icon: "retry", key: "r", main: ended(t), run: () => openRetry(t) },
    (t.state === "blocked" || t.waiting_reason === "repair") && may("submit") && { id: "repair", title: "Repair the input", icon: "types", key: "i", main: t.error?.kind === "decode_error", run: () => openRepair(t) },
    t.state === "pending" && /^(delay|retry|sleep)$/.test(t.waiting_reason ?? "") && { id: "reschedule", title: "Start now or later", icon: "schedules", key: "n", main: true, run: () => openReschedule(t) },
    !ended(t) && t.pause !== "task" && { id: "pause", title: "Pause", icon: "pause", key: "p", run: () => openPause(t) },
    !ended(t) && t.pause === "task" && { id: "resume", title: "Resume", icon: "play", key: "p", main: true, run: () => openResume(t) },
    !ended(t) && { id: "signal", title: "Send a signal", icon: "events", key: "s", main: t.waiting_reason === "signal", run: () => openSignal(t) },
    { id: "rerun", title: "Rerun as a new task", icon: "copy", key: "e", main: t.state === "succeeded", run: () => openRerun(t) },
    (!ended(t) || undoing(t)) && { id: "cancel", title: ended(t) ? "Accept the failed undo" : "Cancel", icon: "stop", key: "c", main: !ended(t), run: () => openCancel(t, ended(t) ? { abandon_undo: true } : {}) },
    ended(t) && !t.job_id && { id: "delete", title: "Delete", icon: "trash", key: "d", danger: true, run: () => openDelete(t) },
  ];
  return list.filter((v): v is TaskVerb => !!v);
}

/** A request's body in which some fields are JSON texts, whose numbers stay as they are. */
export function bodyText(plain: Record<string, unknown>, raw: Record<string, string | undefined> = {}): string {
  const fields = Object.entries(plain).filter(([, v]) => v !== undefined && v !== "" && v !== false).map(([k, v]) => [k, JSON.stringify(v)]);
  fields.push(...Object.entries(raw).filter((e): e is [string, string] => e[1] !== undefined));
  return "{" + fields.map(([k, v]) => JSON.stringify(k) + ":" + v).join(",") + "}";
}

/** The dialog of a verb. A task that has changed meanwhile is read again, and the user decides anew. */
export function VerbDialog({ task, title, verb, danger, request, command, keeps, done, children, ready, wide, reasonNeeded, unmatched, refused }: {
  task: Task;
  title: string;
  verb: string; // of the button
  danger?: boolean;
  request: (reason: string, headers: Record<string, string>) => Promise<unknown>;
  command?: string;
  keeps: Children;
  done: string | ((answer: unknown) => void);
  children?: Children;
  ready?: boolean;
  wide?: boolean;
  reasonNeeded?: boolean;
  unmatched?: boolean; // whatever its state is now
  refused?: (p: Problem) => void;
}) {
  const [seen, setSeen] = useState(task);
  const [reason, setReason] = useState("");
  const submit = async () => {
    try {
      const answer = await request(reason.trim(), unmatched ? {} : { "If-Match": etag(seen) });
      if (typeof done === "string") toast(done, path.peek() === "tasks/" + task.id ? undefined : taskHref(task.id));
      else done(answer);
    } catch (err) {
      if (err instanceof Problem && err.status === 412) {
        const fresh = await get<Task>(taskPath(task.id));
        setSeen(fresh);
        throw new Problem(412, "The task has changed since it was read.", `It is ${fresh.state} now, after ${plural(fresh.attempt_no, "attempt")}. If this is still right, send it once more.`);
      }
      if (err instanceof Problem) refused?.(err);
      // The first wrong value, or the message, may be out of sight in a long form.
      setTimeout(() => {
        const wrong = document.querySelector<HTMLElement>("dialog[open] [aria-invalid=true]");
        if (wrong) wrong.focus();
        else document.querySelector("dialog[open] .problem")?.scrollIntoView({ block: "nearest" });
      }, 50);
      throw err;
    }
  };
  return (
    <FormDialog title={title} verb={verb} danger={danger ?? false} submit={submit} close={closeOpened} wide={wide ?? false} ready={(ready ?? true) && (!reasonNeeded || reason.trim() !== "")}>
      <p class="verb-task">
        <Text>{nameOf(task)}</Text> <span class="muted mono">{task.id}</span>
      </p>
      <div class="keeps">{keeps}</div>
      {children}
      <ReasonField value={reason} set={setReason} required={reasonNeeded ?? false} />
      {command && (
        <p class="as-command">
          <code>{command + (reason.trim() ? " --reason " + JSON.stringify(reason.trim()) : "")}</code>
          <Copy text={() => command + (reason.trim() ? ` --reason '${reason.trim().replaceAll("'", "'\\''")}'` : "")} label="Copy the command" />
        </p>
      )}
    </FormDialog>
  );
}

const on = (t: Task, verb: string, plain: Record<string, unknown>) => (reason: string, headers: Record<string, string>) => post(taskPath(t.id, "/" + verb), bodyText({ ...plain, reason }), { headers });

const names = (list: string[]): string => (list.length > 8 ? `${list.slice(0, 8).join(", ")} and ${list.length - 8} more` : list.join(", "));

export function Check({ checked, set, children }: { checked: boolean; set: (on: boolean) => void; children: Children }) {
  return (
    <label class="check">
      <input type="checkbox" checked={checked} onChange={(ev) => set(ev.currentTarget.checked)} /> <span>{children}</span>
    </label>
  );
}

export const openRetry = (t: Task, preset: Preset = {}): void => open(<Retry t={t} preset={preset} />);

function Retry({ t, preset }: { t: Task; preset: Preset }) {
  const [cleanup, setCleanup] = useState(preset.cleanup ?? (undoing(t) || undoFailed(t)));
  const [keep, setKeep] = useState(preset.keep_steps ?? false);
  const [more, setMore] = useState(preset.add_attempts ? String(preset.add_attempts) : "");
  const [skip, setSkip] = useState<string[]>([]);
  const mayUndo = undoing(t) || undoFailed(t) || preset.cleanup || !!t.undo_open;
  const loaded = useLoad("retry " + t.id, (s) => get<History>(taskPath(t.id, "/history"), {}, s));
  const undo = useLoad("undo " + t.id + mayUndo, (s) => (mayUndo ? get<{ effects: UndoEffect[] }>(taskPath(t.id, "/undo"), {}, s) : Promise.resolve({ effects: [] })));
  const h = loaded.data;
  const kept = h?.steps.filter((s) => s.state === "completed" && s.kind !== "undo" && s.kind !== "cleanup" && s.undo !== "undone" && s.undo !== "skipped").map((s) => s.name) ?? [];
  const again = h?.steps.filter((s) => s.state === "failed" && s.kind !== "undo").map((s) => s.name) ?? [];
  const cleaned = h?.steps.some((s) => s.kind === "cleanup") ?? false;
  const revived = h?.dependents.filter((d) => d.state === "cancelled") ?? [];
  const open_ = undo.data?.effects.filter((e) => e.undo === "declared" || e.undo === "failing" || e.undo === "given_up") ?? [];
  const body = cleanup ? { cleanup, skip: skip.length ? skip : undefined } : { keep_steps: keep, add_attempts: Number(more) || undefined, add_cost: preset.add_cost };
  const command = cli("task", "retry", t.id, ...(cleanup ? ["--cleanup", ...(skip.length ? ["--skip=" + skip.join(",")] : [])] : [...(keep ? ["--keep-steps"] : []), ...(Number(more) ? ["--add-attempts=" + more] : [])]));
  return (
    <VerbDialog
      task={t}
      title={cleanup ? "Retry the undo" : "Retry the task"}
      verb={cleanup ? "Retry the undo" : "Retry"}
      request={on(t, "retry", body)}
      command={command}
      done={cleanup ? "The undo is tried again." : "The task starts again."}
      reasonNeeded={skip.length > 0}
      keeps={
        cleanup ? (
          <ul>
            <li>Only what is left to undo is undone{open_.length ? `: ${names(open_.map((e) => e.step))}` : ""}. The task itself does not run again.</li>
            <li>It then ends as before.</li>
          </ul>
        ) : (
          <ul>
            <li>{h ? (kept.length ? <>Kept, not repeated: {plural(kept.length, "completed step")} (<Text>{names(kept)}</Text>).</> : "No step was completed: the handler runs from its beginning.") : "Completed steps are kept and not repeated."}</li>
            {again.length > 0 && (
              <li>
                Repeated: <Text>{names(again)}</Text>.
              </li>
            )}
            <li>It gets its full number of attempts ({t.max_attempts + (Number(more) || 0)}) again. A passed deadline no longer applies.</li>
            {revived.length > 0 && (
              <li>
                {plural(revived.length, "dependent")} that {revived.length === 1 ? "was" : "were"} cancelled {revived.length === 1 ? "becomes" : "become"} pending again: <Text>{names(revived.map((d) => d.node ?? d.id))}</Text>.
              </li>
            )}
          </ul>
        )
      }
    >
      {mayUndo && (
        <Check checked={cleanup} set={setCleanup}>
          Only try its undo again
        </Check>
      )}
      {cleanup && open_.length > 0 && (
        <fieldset class="nested">
          <legend>Give up the undo of these steps: their effects stay. A reason is required.</legend>
          {open_.map((e) => (
            <Check key={e.step} checked={skip.includes(e.step)} set={(c) => setSkip(c ? [...skip, e.step] : skip.filter((s) => s !== e.step))}>
              <Text>{e.step}</Text> {e.error && <span class="muted"><Text most={100}>{e.error.message}</Text></span>}
            </Check>
          ))}
        </fieldset>
      )}
      {!cleanup && (cleaned || preset.keep_steps) && (
        <Check checked={keep} set={setKeep}>
          A cleanup ran: count the completed steps as done all the same, because their effects still hold
        </Check>
      )}
      {!cleanup && (
        <Field label="Further attempts" help="Raises the task's maximum.">
          {(a) => <input {...a} type="number" min={0} max={1000} value={more} placeholder="0" onInput={(ev) => setMore(ev.currentTarget.value)} />}
        </Field>
      )}
    </VerbDialog>
  );
}

export const openCancel = (t: Task, preset: Preset = {}): void => open(<Cancel t={t} preset={preset} />);

function Cancel({ t, preset }: { t: Task; preset: Preset }) {
  const [force, setForce] = useState(preset.force ?? false);
  const [abandon, setAbandon] = useState(preset.abandon_undo ?? false);
  const running = t.state === "running";
  const undo = undoing(t);
  return (
    <VerbDialog
      task={t}
      title={abandon ? (ended(t) ? "Accept the failed undo" : "Give up the undo") : force ? "Cancel by force" : "Cancel the task"}
      verb={abandon ? (ended(t) ? "Accept" : "Give up the undo") : "Cancel the task"}
      danger
      unmatched={running}
      request={on(t, "cancel", { force, abandon_undo: abandon })}
      command={cli("task", "cancel", t.id, ...(force ? ["--force"] : []), ...(abandon ? ["--abandon-undo"] : []))}
      done={running && !force ? "The task was asked to end." : "The task was cancelled."}
      keeps={
        <ul>
          {abandon ? (
            <li>{ended(t) ? "You confirm that a person has dealt with what was not undone. The task may then be deleted." : "The task fails at once. What is not undone yet stays as it is."}</li>
          ) : force ? (
            <li>It ends at once: its lease is revoked, whatever its handler does. The handler may still run for a while, and its results are refused.</li>
          ) : running ? (
            <li>The handler is asked to end. The task is cancelled when it returns, unless it returns success.</li>
          ) : (
            <li>It ends at once and does not start.</li>
          )}
          {!abandon && <li>{t.undo_open ? `${plural(t.undo_open, "step")} will be undone first.` : "Nothing is to be undone."} Its records and {plural(t.step_count, "completed step")} are kept: a retry continues from them.</li>}
          {!abandon && <li>Tasks that need it are cancelled, too, unless they allow its failure.</li>}
        </ul>
      }
    >
      {(running || undo) && !abandon && (
        <Check checked={force} set={setForce}>
          By force: do not wait for its handler
        </Check>
      )}
      {undo && (
        <Check checked={abandon} set={setAbandon}>
          {ended(t) ? "Accept that its undo was given up" : "Give up what is being undone; the effects stay"}
        </Check>
      )}
    </VerbDialog>
  );
}

export const openReschedule = (t: Task): void => open(<Reschedule t={t} />);

function Reschedule({ t }: { t: Task }) {
  const [at, setAt] = useState("");
  const when = at ? new Date(at) : null;
  return (
    <VerbDialog
      task={t}
      title="Change the start"
      verb={when ? "Start then" : "Start now"}
      request={on(t, "reschedule", { at: when ? when.toISOString() : undefined })}
      command={cli("task", "reschedule", ...(when ? ["--at=" + when.toISOString()] : ["--now"]), t.id)}
      done={when ? "The start was changed." : "The task is due now."}
      keeps={<p>{t.waiting_reason === "retry" ? "Only the wait before its next attempt changes." : t.waiting_reason === "sleep" ? "Its sleep ends then; completed steps are kept." : "Only its start changes."} Its deadline does not move.</p>}
    >
      <Field label="Start at" help="By the clock of this machine. Left empty: now.">
        {(a) => <input {...a} type="datetime-local" step={1} value={at} onInput={(ev) => setAt(ev.currentTarget.value)} />}
      </Field>
    </VerbDialog>
  );
}

export const openPause = (t: Task): void =>
  open(
    <VerbDialog
      task={t}
      title="Pause the task"
      verb="Pause"
      unmatched
      request={on(t, "pause", {})}
      command={cli("task", "pause", t.id)}
      done={t.state === "running" ? "The task is paused when its attempt has ended." : "The task is paused."}
      keeps={<p>{t.state === "running" ? "The running attempt ends normally; after it the task does not start" : "It does not start"} until somebody resumes it. Its due time and its records stay.</p>}
    />,
  );

export const openResume = (t: Task): void =>
  open(<VerbDialog task={t} title="Resume the task" verb="Resume" unmatched request={on(t, "resume", {})} command={cli("task", "resume", t.id)} done="The task may start again." keeps={<p>It keeps its original due time, so it may start at once.</p>} />);

export const openDelete = (t: Task): void =>
  open(
    <VerbDialog
      task={t}
      title="Delete the task"
      verb="Delete"
      danger
      request={(reason, headers) => send("DELETE", taskPath(t.id), { params: { reason }, headers })}
      command={cli("task", "delete", t.id)}
      done={() => {
        toast("The task was deleted.");
        go(href("tasks"));
      }}
      keeps={<p>The task and all its records are removed: attempts, steps, values, logs and artifacts. Only the audit keeps that it happened. Its idempotency key is free again.</p>}
    />,
  );

/** Opens the dialog of an explanation's action. */
export async function openAction(a: WhyAction, task?: Task): Promise<void> {
  const preset = (a.args ?? a.request?.body ?? {}) as Preset;
  const dialogs: Record<string, (t: Task, preset: Preset) => void> = { retry: openRetry, cancel: openCancel, unblock: openUnblock, signal: openSignal, repair: openRepair, rerun: openRerun, reschedule: openReschedule, resume: openResume };
  const dialog = dialogs[a.verb];
  if (a.target.kind === "task" && dialog) {
    const t = task?.id === a.target.id ? task : await get<Task>(taskPath(a.target.id));
    dialog(t, preset);
    return;
  }
  open(<Request a={a} />);
}

/** The request of an action on a job, a queue or a type. */
function Request({ a }: { a: WhyAction }) {
  const [reason, setReason] = useState("");
  const r = a.request;
  if (!r) return null;
  return (
    <FormDialog
      title={`${a.verb[0]?.toUpperCase()}${a.verb.slice(1)} the ${a.target.kind}`}
      verb={`${a.verb[0]?.toUpperCase()}${a.verb.slice(1)}`}
      danger={a.verb === "cancel"}
      close={closeOpened}
      submit={async () => {
        await send(r.method, r.path, { body: { ...r.body, reason: reason.trim() || undefined } });
        toast("It is done.");
      }}
    >
      <p class="keeps">
        <Text>{a.target.id}</Text>: <Text>{a.effect}</Text>.
      </p>
      <ReasonField value={reason} set={setReason} />
      <p class="as-command">
        <code>{a.command}</code>
        <Copy text={a.command} label="Copy the command" />
      </p>
    </FormDialog>
  );
}
