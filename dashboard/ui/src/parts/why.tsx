// Why a task or job is in its state, and what helps.
import { get, Problem } from "../lib/api";
import { count } from "../lib/format";
import { useLoad, useReload, type Loaded } from "../lib/load";
import { jobHref, taskHref } from "../lib/router";
import { may } from "../lib/session";
import type { Cause, Explanation, Task, WhyAction } from "../lib/types";
import { Button, Copy, Loading, ProblemBox, Section, Text, Time, type Children } from "./basic";
import { toast } from "./dialog";
import { Icon, type IconName } from "./icons";
import { openAction } from "./verbs";

/** The explanation of a task or job ("v1/tasks/ID"). It is read again when version changes, and while it may change without that. */
export function useWhy(path: string, version: string, waiting: boolean): Loaded<Explanation> {
  const why = useLoad(path + "/why", (s) => get<Explanation>(path + "/why", {}, s), waiting ? 10_000 : 60_000);
  useReload(why.reload, version);
  return why;
}

const stateIcons: Record<string, IconName> = { failed: "warning", blocked: "hand", pending: "hourglass", ready: "hourglass", running: "play", succeeded: "check", cancelled: "stop" };

export function WhyPanel({ why, task, head, above }: { why: Explanation | undefined; task?: Task | undefined; head?: Children; above?: string[] | undefined }) {
  if (!why)
    return (
      <Section title="Why">
        <Loading rows={2} />
      </Section>
    );
  return (
    <section class={"panel why " + why.state} aria-label="Why">
      <p class="why-summary">
        <Icon name={stateIcons[why.state] ?? "dot"} />
        <strong>
          <Text>{why.summary}</Text>
        </strong>
      </p>
      <div class="why-body">
        {head}
        {why.root_cause && (
          <p>
            <span class="muted">Cause: </span>
            <Text>{why.root_cause}</Text>
          </p>
        )}
        <Causes list={why.because} here={why.id} />
        {(why.notes ?? []).map((n) => (
          <p key={n}>
            <Text>{n}</Text>
          </p>
        ))}
        <Start why={why} />
        <Actions list={above ? why.actions.filter((a) => a.target.id !== why.id || !above.includes(a.verb)) : why.actions} task={task} />
        {why.past && why.past.length > 0 && (
          <details>
            <summary>What was tried</summary>
            <ol class="past">
              {why.past.map((p) => (
                <li key={p.at}>
                  <Text>{p.sentence}</Text>
                </li>
              ))}
            </ol>
          </details>
        )}
      </div>
    </section>
  );
}

/** The causes as a tree; each task links to its page. */
function Causes({ list, here }: { list: Cause[] | undefined; here: string }) {
  if (!list?.length) return null;
  return (
    <ul class="causes">
      {list.map((c, i) => (
        <li key={(c.task_id ?? c.kind) + i}>
          <Text>{c.sentence}</Text>{" "}
          {c.task_id && c.task_id !== here && (
            <a href={taskHref(c.task_id)} aria-label={`Show task ${c.task_id}`}>
              Show
            </a>
          )}
          <Causes list={c.because} here={here} />
        </li>
      ))}
    </ul>
  );
}

function Start({ why }: { why: Explanation }) {
  const s = why.start;
  if (!s) return null;
  const zero = (t: string | undefined) => !t || t.startsWith("0001");
  return (
    <p>
      <span class="muted">Start: </span>
      {zero(s.earliest) && zero(s.latest) ? (
        <>unknown</>
      ) : (
        <>
          {!zero(s.earliest) && (
            <>
              probably not before <Time at={s.earliest} />
            </>
          )}
          {!zero(s.latest) && (
            <>
              {!zero(s.earliest) && ", "}probably by <Time at={s.latest} />
            </>
          )}
        </>
      )}
      {s.ahead && s.ahead.n > 0 && `; ${count(s.ahead)} due before it`}
      {s.per_minute ? `, ${s.per_minute.toPrecision(2)} start each minute` : ""}
      {s.reason && (
        <>
          ; <Text>{s.reason}</Text>
        </>
      )}
      .
    </p>
  );
}

const titles: Record<string, string> = { retry: "Retry", cancel: "Cancel", unblock: "Unblock", signal: "Send a signal", repair: "Repair the input", rerun: "Rerun", reschedule: "Start now", resume: "Resume" };

/** What the button of an action says. */
export function actionTitle(a: WhyAction): string {
  const x = { ...a.args, ...a.request?.body } as { force?: boolean; abandon_undo?: boolean; cleanup?: boolean; from?: string; name?: string; ask?: string };
  if (a.verb === "unblock" && x.ask) return "Answer";
  if (a.verb === "cancel") return x.abandon_undo ? "Give up the undo" : x.force ? "Cancel by force" : "Cancel";
  if (a.verb === "retry" && x.cleanup) return "Retry the undo";
  return (titles[a.verb] ?? a.verb) + (a.verb === "resume" ? " the " + a.target.kind : a.target.kind === "job" ? " the job" : "");
}

/** The actions as buttons where the user may do them, each with its command line. */
export function Actions({ list, task }: { list: WhyAction[]; task?: Task | undefined }) {
  if (list.length === 0) return null;
  const run = (a: WhyAction) =>
    openAction(a, task).catch((err: unknown) => {
      if (!(err instanceof Problem)) console.error(err);
      toast((err as Error).message);
    });
  return (
    <ul class="why-actions">
      {list.map((a, i) => (
        <li key={a.command}>
          {a.verb === "why" ? (
            <a class="button small" href={a.target.kind === "job" ? jobHref(a.target.id) : taskHref(a.target.id)}>
              Show the {a.target.kind}
            </a>
          ) : a.request && may("read", "operate") ? (
            <Button small kind={i === 0 && a.verb !== "cancel" ? "primary" : undefined} onClick={() => void run(a)}>
              {actionTitle(a)}
            </Button>
          ) : null}
          <span class="why-effect">
            <Text>{a.effect}</Text>
          </span>
          <span class="why-command">
            <code>{a.command}</code>
            <Copy text={a.command} label="Copy the command" />
          </span>
        </li>
      ))}
    </ul>
  );
}

/** The panel, or the problem of its request. The verbs above have a button on the page already. */
export function Why({ why, task, head, above }: { why: Loaded<Explanation>; task?: Task | undefined; head?: Children; above?: string[] | undefined }) {
  if (why.problem && !why.data) return <ProblemBox problem={why.problem} retry={why.reload} />;
  return <WhyPanel why={why.data} task={task} head={head} above={above} />;
}
