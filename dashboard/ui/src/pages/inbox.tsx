// What waits for a person: blocked tasks by cause, the oldest first, each with the question and its answer.
import { useEffect, useRef, useState } from "preact/hooks";
import { plural } from "../lib/format";
import { useKeys } from "../lib/keys";
import { useTopic } from "../lib/live";
import { go, href, jobHref, params, setParams, taskHref } from "../lib/router";
import { may, mayOperate } from "../lib/session";
import type { Task } from "../lib/types";
import { Age, Button, Empty, ID, Loading, PageHead, ProblemBox, Section, Text, Time } from "../parts/basic";
import { openBulk } from "../parts/bulk";
import { openRepair, openUnblock } from "../parts/verbs";

/** The causes of a block, in words. */
function causeOf(t: Task): string {
  if (t.undo) return "An undo needs help";
  if (t.error?.ask) return "A question";
  switch (t.error?.kind) {
    case "decode_error":
      return "Stored data cannot be read";
    case "no_progress":
      return "No progress";
    case undefined:
      return "Blocked";
    default:
      return (t.error?.kind ?? "").replaceAll("_", " ").replace(/^./, (c) => c.toUpperCase());
  }
}

export function Inbox() {
  const inbox = useTopic<Task>("inbox");
  const cause = params.value.get("cause") ?? "";
  const [cursor, setCursor] = useState("");
  const list = useRef<HTMLDivElement>(null);
  const all = [...inbox.rows].sort((a, b) => Date.parse(a.updated_at) - Date.parse(b.updated_at));
  const causes = [...new Set(all.map(causeOf))];
  const groups = causes.filter((c) => !cause || c === cause).map((c) => ({ cause: c, tasks: all.filter((t) => causeOf(t) === c) }));
  const order = groups.flatMap((g) => g.tasks);
  const at = order.findIndex((t) => t.id === cursor);

  const move = (by: number) => {
    const to = order[Math.max(0, Math.min(order.length - 1, at < 0 ? 0 : at + by))];
    if (!to) return;
    setCursor(to.id);
    const item = list.current?.querySelector<HTMLElement>(`[data-id="${to.id}"]`);
    item?.querySelector<HTMLElement>("a, button")?.focus({ preventScroll: true });
    item?.scrollIntoView({ block: "nearest" });
  };
  useKeys([
    { keys: "j", text: "Next task", group: "list", run: () => move(1) },
    { keys: "k", text: "Previous task", group: "list", run: () => move(-1) },
    { keys: "u", text: "Decide", group: "list", run: () => order[at] && decide(order[at]) },
    { keys: "Enter", text: "Open the task", group: "list", run: () => order[at] && go(taskHref(order[at].id)) },
  ]);
  // A decided task leaves the list; the next one takes the cursor.
  const last = useRef(0);
  useEffect(() => {
    if (at >= 0) last.current = at;
    else if (cursor && order.length > 0) setCursor(order[Math.min(last.current, order.length - 1)]?.id ?? "");
  }, [order.length, at]);

  if (inbox.problem) return <><PageHead title="Inbox" /><ProblemBox problem={inbox.problem} /></>;
  return (
    <>
      <PageHead title="Inbox" sub={inbox.loaded ? `${plural(order.length, "task")} ${order.length === 1 ? "waits" : "wait"} for a person` : undefined}>
        {mayOperate.value && all.length > 1 && (
          <Button onClick={() => openBulk("cancel", { ids: order.map((t) => t.id) }, () => undefined)}>Cancel all shown</Button>
        )}
      </PageHead>
      {causes.length > 1 && (
        <div class="chips" role="group" aria-label="Causes">
          {causes.map((c) => (
            <button type="button" class="chip" key={c} aria-pressed={cause === c} onClick={() => setParams({ cause: cause === c ? undefined : c })}>
              {c}
            </button>
          ))}
        </div>
      )}
      {!inbox.loaded ? (
        <Loading rows={6} />
      ) : order.length === 0 ? (
        <div class="panel">
          <Empty title="Nothing waits for a person.">Tasks come here when they ask a question, when stored data cannot be read, or when an undo needs help.</Empty>
        </div>
      ) : (
        <div ref={list}>
          {groups.map((g) => (
            <Section key={g.cause} title={g.cause} aside={plural(g.tasks.length, "task")}>
              <ul class="inbox">
                {g.tasks.map((t) => (
                  <li key={t.id} data-id={t.id} class={cursor === t.id ? "cursor" : undefined}>
                    <div class="inbox-text">
                      <p class="inbox-message">
                        <Text most={400}>{t.error?.message.replace(/^[a-z_]+: /, "") || "It was blocked without a message."}</Text>
                      </p>
                      <p class="muted">
                        <a href={taskHref(t.id)} onFocus={() => setCursor(t.id)}>
                          <Text>{t.node ?? t.task_type}</Text>
                        </a>{" "}
                        <ID id={t.id} /> {t.job_id && <a href={jobHref(t.job_id)}>job …{t.job_id.slice(-6)}</a>} waits for <Age at={t.updated_at} />
                        {t.error?.ask_until && (
                          <>
                            ; the question expires <Time at={t.error.ask_until} />
                          </>
                        )}
                      </p>
                    </div>
                    <div class="actions">
                      {mayOperate.value ? (
                        <Button kind="primary" onClick={() => decide(t)} onFocus={() => setCursor(t.id)}>
                          {t.error?.ask ? "Answer" : "Decide"}
                        </Button>
                      ) : (
                        <a class="button" href={taskHref(t.id)}>
                          Show
                        </a>
                      )}
                    </div>
                  </li>
                ))}
              </ul>
            </Section>
          ))}
          {(inbox.next || inbox.leftOut > 0) && (
            <p class="muted">
              There are more: <a href={href("tasks", { q: "state:blocked" })}>all blocked tasks</a>.
            </p>
          )}
        </div>
      )}
    </>
  );
}

/** Opens what decides about the task: an answer, another input, or the page with all its verbs. */
function decide(t: Task): void {
  if (t.undo) go(taskHref(t.id));
  else if (t.error?.kind === "decode_error" && may("submit")) openRepair(t);
  else openUnblock(t);
}
