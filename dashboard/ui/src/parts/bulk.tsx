// One verb for many tasks: a dry run first, then requests in turn, which can be stopped and continued.
import { useEffect, useRef, useState } from "preact/hooks";
import { post, Problem } from "../lib/api";
import { number, plural } from "../lib/format";
import { taskHref } from "../lib/router";
import { Button, ID, Loading, ProblemBox, State, Text } from "./basic";
import { closeOpened, Dialog, Field, open, ReasonField } from "./dialog";

export type Verb = "retry" | "cancel" | "delete" | "unblock";

interface Refused {
  id: string;
  problem: { title: string; detail?: string };
}

interface Result {
  done: number;
  asked: number;
  undone_first?: number;
  already_done: number;
  refused: Refused[];
  states?: Record<string, number>;
  samples?: { id: string; task_type: string; queue: string; state: string }[];
  scanned: number;
  unread: number;
  newest?: string;
  next?: string;
  trouble?: string;
}

export interface Target {
  q?: string; // all tasks that match
  ids?: string[];
}

const words: Record<Verb, { title: string; done: string; keeps: string; danger?: boolean }> = {
  retry: { title: "Retry", done: "retried", keeps: "Completed steps keep their results and do not run again; the failed step runs again, with new attempts. Dependents that were cancelled with a task become pending again." },
  cancel: { title: "Cancel", done: "cancelled", keeps: "Waiting tasks end at once; running ones are asked to end. Their records and completed steps stay, and a retry continues from them.", danger: true },
  delete: { title: "Delete", done: "deleted", keeps: "The tasks and all their records are removed. Only the audit keeps that it happened. Tasks of jobs are refused.", danger: true },
  unblock: { title: "Unblock", done: "unblocked", keeps: "The tasks continue without an answer: for questions that need one, decide them one by one in the inbox." },
};

/** Requests of more tasks than this need the number to be typed. */
const typedAbove = 1000;
const refusalsShown = 200;

export function openBulk(verb: Verb, target: Target, done: () => void): void {
  open(<BulkDialog verb={verb} target={target} done={done} />);
}

const nothing: Result = { done: 0, asked: 0, undone_first: 0, already_done: 0, refused: [], states: {}, scanned: 0, unread: 0 };

/** The sum of a result and a further one of the same verb. */
function plus(a: Result, b: Result): Result {
  const states = { ...a.states };
  for (const [s, n] of Object.entries(b.states ?? {})) states[s] = (states[s] ?? 0) + n;
  return {
    ...b,
    done: a.done + b.done,
    asked: a.asked + b.asked,
    undone_first: (a.undone_first ?? 0) + (b.undone_first ?? 0),
    already_done: a.already_done + b.already_done,
    refused: [...a.refused, ...b.refused].slice(0, refusalsShown),
    states,
    samples: a.samples ?? b.samples ?? [],
    scanned: a.scanned + b.scanned,
    unread: a.unread + b.unread,
    newest: a.newest ?? b.newest ?? "",
  };
}

/** Sends the requests of one dry run in turn, until the end or until it is stopped. */
async function dryRun(body: Record<string, unknown>, seen: (r: Result) => void, stopped: () => boolean): Promise<void> {
  let total = nothing;
  do {
    const at: Record<string, unknown> = { ...body, dry_run: true };
    if (total.next) at["next"] = total.next;
    if (total.newest) at["newest"] = total.newest;
    total = plus(total, await post<Result>("v1/tasks/bulk", at));
    seen(total);
  } while (total.next && !stopped());
}

function BulkDialog({ verb, target, done }: { verb: Verb; target: Target; done: () => void }) {
  const w = words[verb];
  const [plan, setPlan] = useState<Result | null>(null);
  const [counting, setCounting] = useState(true);
  const [problem, setProblem] = useState<Error | null>(null);
  const [reason, setReason] = useState("");
  const [typed, setTyped] = useState("");
  const [flags, setFlags] = useState<{ force?: boolean; keep_steps?: boolean }>({});
  const [run, setRun] = useState<{ done: number; asked: number; refused: Refused[]; refusals: number; next: string | undefined; busy: boolean; ended: boolean; trouble: string } | null>(null);
  const stop = useRef(false);
  const body = { verb, ...(target.ids ? { ids: target.ids } : { q: target.q ?? "" }), ...flags };

  useEffect(() => {
    let left = false;
    setCounting(true);
    dryRun(body, (r) => !left && setPlan(r), () => left).then(
      () => !left && setCounting(false),
      (err: unknown) => {
        if (left) return;
        setCounting(false);
        setProblem(err as Error);
      },
    );
    return () => (left = true);
  }, [flags.force, flags.keep_steps]);
  useEffect(() => () => void (stop.current = true), []);

  const start = async () => {
    if (!plan) return;
    stop.current = false;
    setProblem(null);
    let state = run ?? { done: 0, asked: 0, refused: [], refusals: 0, next: undefined, busy: true, ended: false, trouble: "" };
    state = { ...state, busy: true };
    setRun(state);
    try {
      do {
        const r: Result = await post<Result>("v1/tasks/bulk", { ...body, reason: reason || undefined, ...(plan.newest && !target.ids ? { newest: plan.newest } : {}), ...(state.next ? { next: state.next } : {}) });
        state = { done: state.done + r.done, asked: state.asked + r.asked, refused: [...state.refused, ...r.refused].slice(0, refusalsShown), refusals: state.refusals + r.refused.length, next: r.next, busy: true, ended: !r.next, trouble: r.trouble ?? "" };
        setRun(state);
        done();
      } while (state.next && !stop.current);
    } catch (err) {
      if (!(err instanceof Problem)) console.error(err);
      setProblem(err as Error);
    }
    setRun({ ...state, busy: false });
  };

  const total = plan?.done ?? 0;
  const needsTyping = total > typedAbove && !run;
  const ready = !counting && total > 0 && (!needsTyping || typed.replace(/\D/g, "") === String(total));
  const handled = run ? run.done + run.refusals : 0;
  return (
    <Dialog title={`${w.title} ${target.ids ? plural(target.ids.length, "task") : "all tasks that match"}`} close={closeOpened} wide>
      <div class="dialog-body">
        {target.q !== undefined && (
          <p>
            Query: {target.q ? <code>{target.q}</code> : "all tasks"}
          </p>
        )}
        {!run && (
          <>
            {plan ? (
              <p class="plan" aria-live="polite">
                <strong>
                  {counting ? "At least " : ""}
                  {plural(total, "task")}
                </strong>{" "}
                will be {w.done}
                {counting && "; counting goes on"}.{plan.already_done > 0 && ` ${plural(plan.already_done, "task")} need nothing.`}
                {!!plan.undone_first && ` ${plural(plan.undone_first, "task")} will first be undone.`}
                {plan.unread > 0 && ` The values of ${plural(plan.unread, "task")} cannot be read: they are left as they are.`}
              </p>
            ) : (
              !problem && <Loading rows={2} />
            )}
            {plan?.states && (
              <p class="labels">
                {Object.entries(plan.states).map(([s, n]) => (
                  <span class="chip" key={s}>
                    <State state={s} /> {number(n)}
                  </span>
                ))}
              </p>
            )}
            {plan && plan.refused.length > 0 && <Refusals list={plan.refused} total={plan.refused.length} />}
            {plan?.samples && plan.samples.length > 0 && (
              <details>
                <summary>The newest {plan.samples.length}</summary>
                <ul class="plain-list">
                  {plan.samples.map((s) => (
                    <li key={s.id}>
                      <State state={s.state} /> <ID id={s.id} to={taskHref(s.id)} /> <Text>{s.task_type}</Text> <span class="muted">in</span> <Text>{s.queue}</Text>
                    </li>
                  ))}
                </ul>
              </details>
            )}
            <p class="muted">{w.keeps}</p>
            {verb === "cancel" && (
              <label class="check">
                <input type="checkbox" checked={!!flags.force} onChange={(ev) => setFlags({ force: ev.currentTarget.checked })} /> End running tasks at once, without waiting for their handlers
              </label>
            )}
            {verb === "retry" && (
              <label class="check">
                <input type="checkbox" checked={!!flags.keep_steps} onChange={(ev) => setFlags({ keep_steps: ev.currentTarget.checked })} /> Also tasks whose cleanup ran: their completed steps count as done
              </label>
            )}
            <ReasonField value={reason} set={setReason} />
            {needsTyping && !counting && (
              <Field label={`Type ${number(total)} to confirm`}>
                {(a) => <input {...a} type="text" inputMode="numeric" value={typed} autoComplete="off" onInput={(ev) => setTyped(ev.currentTarget.value)} />}
              </Field>
            )}
          </>
        )}
        {run && (
          <div aria-live="polite">
            <p>
              <strong>
                {number(run.done)} of {number(total)}
              </strong>{" "}
              {w.done}
              {run.asked > 0 && `; ${plural(run.asked, "running task")} asked to end`}
              {run.refusals > 0 && `; ${number(run.refusals)} refused`}.{run.ended ? " Done." : run.busy ? "" : " Stopped: the rest is unchanged."}
            </p>
            <progress max={Math.max(total, 1)} value={run.ended ? Math.max(total, 1) : Math.min(handled, total)} aria-label="Progress" />
            {run.trouble && <p class="field-error">{run.trouble}</p>}
            {run.refused.length > 0 && <Refusals list={run.refused} total={run.refusals} />}
          </div>
        )}
        {problem && <ProblemBox problem={problem} />}
      </div>
      <footer>
        <Button onClick={closeOpened}>Close</Button>
        {run?.busy ? (
          <Button icon="stop" onClick={() => (stop.current = true)}>
            Stop
          </Button>
        ) : (
          !run?.ended && (
            <Button kind={w.danger ? "danger" : "primary"} disabled={!ready} onClick={() => void start()}>
              {run ? "Continue" : `${w.title} ${plural(total, "task")}`}
            </Button>
          )
        )}
      </footer>
    </Dialog>
  );
}

function Refusals({ list, total }: { list: Refused[]; total: number }) {
  return (
    <details open={list.length < 6}>
      <summary>
        {plural(total, "task")} refused{total > list.length ? `, the first ${list.length} are here` : ""}
      </summary>
      <ul class="plain-list">
        {list.map((r) => (
          <li key={r.id}>
            <ID id={r.id} to={taskHref(r.id)} /> <Text>{r.problem.detail ?? r.problem.title}</Text>
          </li>
        ))}
      </ul>
    </details>
  );
}
