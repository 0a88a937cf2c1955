// Queues: backlog, pauses, last runs.
import { useState } from "preact/hooks";
import { get, post, segment } from "../lib/api";
import { count, number, plural, type Count } from "../lib/format";
import { useTopic } from "../lib/live";
import { useLoad } from "../lib/load";
import { quoted } from "../lib/query";
import { href } from "../lib/router";
import { features, mayOperate } from "../lib/session";
import type { Found, Page, Queue } from "../lib/types";
import { Age, Button, Empty, Facts, Loading, PageHead, ProblemBox, Section, Text, Time } from "../parts/basic";
import { because, Name, openVerb, Strip, Table, tasksHref, TextField } from "../parts/data";
import { closeOpened, FormDialog, open, ReasonField, toast } from "../parts/dialog";
import { Icon } from "../parts/icons";
import type { Limit } from "./limits";
import { limitText } from "./limits";

export const queueHref = (name: string): string => href("queues/" + encodeURIComponent(name));

const pausedKeeps = "No task starts while it is paused; running tasks go on, and new ones are accepted. A resume loses nothing.";

export function pauseTarget(what: "queue" | "type", name: string, after?: () => void): void {
  openVerb({ title: `Pause the ${what} ${name}`, verb: "Pause", keeps: pausedKeeps, run: (r) => post(`v1/${what}s/${segment(name)}/pause`, because(r)), done: `The ${what} ${name} is paused.`, ...(after ? { after } : {}) });
}

export function resumeTarget(what: "queue" | "type", name: string, after?: () => void): void {
  openVerb({ title: `Resume the ${what} ${name}`, verb: "Resume", keeps: "Its due tasks start as soon as workers have free slots.", run: (r) => post(`v1/${what}s/${segment(name)}/resume`, because(r)), done: `The ${what} ${name} goes on.`, ...(after ? { after } : {}) });
}

export function PauseButton({ what, name, paused, after, small = true }: { what: "queue" | "type"; name: string; paused: boolean; after?: () => void; small?: boolean }) {
  if (!mayOperate.value) return null;
  return (
    <Button small={small} icon={paused ? "play" : "pause"} aria-label={`${paused ? "Resume" : "Pause"} ${name}`} onClick={() => (paused ? resumeTarget : pauseTarget)(what, name, after)}>
      {paused ? "Resume" : "Pause"}
    </Button>
  );
}

/** A pause in words. */
export function Paused({ pause }: { pause: { actor: string; at: string; reason?: string } | undefined }) {
  return (
    <span class="paused">
      <Icon name="pause" /> paused
      {pause?.at && (
        <>
          {pause.actor && <> by <Text>{pause.actor}</Text>,</>} <Time at={pause.at} />
        </>
      )}
      {pause?.reason && (
        <>
          : <Text>{pause.reason}</Text>
        </>
      )}
    </span>
  );
}

const zero: Count = { n: 0 };

export function Queues() {
  const topic = useTopic<Queue>("queues");
  const counts = useTopic<Count>("counts");
  const rows = topic.rows.filter((q) => !q.task_type);
  const types = topic.rows.filter((q) => q.task_type);
  const known = new Set(rows.map((q) => q.queue));
  const idle = counts.ids
    .filter((id) => id.startsWith("queue:") && !known.has(id.slice(6)))
    .map((id): Queue => ({ queue: id.slice(6), due: zero, later: zero, running: zero, paused: false }));
  const total = (name: string): Count | undefined => counts.rows[counts.ids.indexOf("queue:" + name)];
  return (
    <>
      <PageHead title="Queues" sub="Tasks that are due, later, and running.">
        {mayOperate.value && (
          <Button icon="pause" onClick={() => open(<PauseAny />)}>
            Pause a queue
          </Button>
        )}
      </PageHead>
      {topic.problem && <ProblemBox problem={topic.problem} />}
      <Section title="Queues" aside={topic.loaded ? plural(rows.length + idle.length, "queue") : undefined}>
        {!topic.loaded ? (
          <Loading />
        ) : rows.length + idle.length === 0 ? (
          <Empty title="There is no queue yet.">A queue exists as soon as a task is enqueued in it.</Empty>
        ) : (
          <Table
            label="Queues"
            rows={[...rows, ...idle]}
            id={(q) => q.queue}
            columns={[
              { head: "Queue", cell: (q) => <><Name to={queueHref(q.queue)}>{q.queue}</Name>{q.paused && <div class="small"><Paused pause={q.pause} /></div>}</> },
              { head: "Due", num: true, cell: (q) => <a href={tasksHref(`state:ready queue:${quoted(q.queue)}`)}>{count(q.due)}</a> },
              { head: "Oldest", cell: (q) => (q.oldest_due ? <Age at={q.oldest_due} /> : "–") },
              { head: "Running", num: true, cell: (q) => <a href={tasksHref(`state:running queue:${quoted(q.queue)}`)}>{count(q.running)}</a> },
              { head: "Later", num: true, cell: (q) => count(q.later) },
              { head: "All kept", num: true, cell: (q) => <a href={tasksHref(`queue:${quoted(q.queue)}`)}>{total(q.queue) ? count(total(q.queue)) : "–"}</a> },
              { head: "Last 50 runs", cell: (q) => <Strip q={`queue:${quoted(q.queue)}`} version={`${JSON.stringify(q.running)} ${JSON.stringify(total(q.queue))}`} /> },
              mayOperate.value && { head: "Actions", hidden: true, num: true, cell: (q) => <PauseButton what="queue" name={q.queue} paused={q.paused} /> },
            ]}
          />
        )}
      </Section>
      {types.length > 0 && (
        <Section title="Paused types" aside={plural(types.length, "type")}>
          <Table
            label="Paused types"
            rows={types}
            id={(q) => q.task_type ?? ""}
            columns={[
              { head: "Type", cell: (q) => <Name to={href("types/" + encodeURIComponent(q.task_type ?? ""))}>{q.task_type ?? ""}</Name> },
              { head: "Pause", cell: (q) => <Paused pause={q.pause} /> },
              mayOperate.value && { head: "Actions", hidden: true, num: true, cell: (q) => <PauseButton what="type" name={q.task_type ?? ""} paused /> },
            ]}
          />
        </Section>
      )}
    </>
  );
}

/** Pauses a queue by its name, also one without tasks. */
function PauseAny() {
  const [name, setName] = useState("");
  const [reason, setReason] = useState("");
  const [force, setForce] = useState(false);
  return (
    <FormDialog
      title="Pause a queue"
      verb="Pause"
      close={closeOpened}
      ready={name !== ""}
      submit={async () => {
        await post(`v1/queues/${segment(name)}/pause`, { ...because(reason.trim()), ...(force ? { force } : {}) });
        toast(`The queue ${name} is paused.`, queueHref(name));
      }}
    >
      <p class="dialog-text">{pausedKeeps}</p>
      <TextField label="Queue" value={name} set={setName} required />
      <ReasonField value={reason} set={setReason} />
      <label class="check">
        <input type="checkbox" checked={force} onChange={(ev) => setForce(ev.currentTarget.checked)} /> Also if no task or worker has this queue yet
      </label>
    </FormDialog>
  );
}

const sampled = 500; // waiting tasks that are counted by type

export function OneQueue({ id }: { id: string }) {
  const topic = useTopic<Queue>("queues");
  const at = quoted(id);
  const q = topic.rows.find((r) => r.queue === id && !r.task_type) ?? { queue: id, due: zero, later: zero, running: zero, paused: false };
  const waiting = useLoad(id, (s) => get<Found>("v1/tasks", { q: `queue:${at} state:ready,pending,running`, limit: sampled }, s), 10_000);
  const limits = useLoad("limit " + id, (s) => (features.value["limits"] ? get<Page<Limit>>("v1/limits", { limit: 1000 }, s) : Promise.resolve({ items: [] })), 15_000);
  const limit = limits.data?.items.find((l) => l.name === "queue:" + id);
  const by = new Map<string, Record<string, number>>();
  for (const t of waiting.data?.items ?? []) {
    const row = by.get(t.task_type) ?? {};
    row[t.state] = (row[t.state] ?? 0) + 1;
    by.set(t.task_type, row);
  }
  const whole = !waiting.data?.next;
  return (
    <>
      <PageHead title={<Text>{id}</Text>} sub={<a href={href("queues")}>Queues</a>}>
        <a class="button" href={tasksHref(`queue:${at}`)}>
          All its tasks
        </a>
        {topic.loaded && <PauseButton what="queue" name={id} paused={q.paused} small={false} />}
      </PageHead>
      <Section title="Now">
        {q.paused && (
          <p class="notice">
            <Paused pause={q.pause} />
          </p>
        )}
        {topic.loaded ? (
          <Facts
            facts={[
              ["Due", <a href={tasksHref(`state:ready queue:${at}`)}>{count(q.due)}</a>],
              ["Oldest due task", q.oldest_due ? <Age at={q.oldest_due} /> : "–"],
              ["Running", <a href={tasksHref(`state:running queue:${at}`)}>{count(q.running)}</a>],
              ["Later", count(q.later)],
              ["Limit", limit ? <a href={href("limits")}>{limitText(limit)}</a> : ""],
            ]}
          />
        ) : (
          <Loading rows={2} />
        )}
      </Section>
      <Section title="Last 50 runs" aside={<a href={tasksHref(`state:succeeded,failed,cancelled queue:${at}`)}>As a list</a>}>
        <div class="panel-body">
          <Strip q={`queue:${at}`} />
        </div>
      </Section>
      <Section title="Tasks not ended, by type" aside={waiting.data && !whole ? `of the newest ${number(sampled)}` : undefined}>
        {waiting.problem ? (
          <ProblemBox problem={waiting.problem} retry={waiting.reload} />
        ) : !waiting.data ? (
          <Loading />
        ) : by.size === 0 ? (
          <Empty title="Nothing waits or runs in this queue." />
        ) : (
          <Table
            label="Tasks not ended, by type"
            rows={[...by].sort((a, b) => (a[0] < b[0] ? -1 : 1))}
            id={([type]) => type}
            columns={[
              { head: "Type", cell: ([type]) => <Name to={href("types/" + encodeURIComponent(type))}>{type}</Name> },
              ...["ready", "running", "pending"].map((s) => ({ head: s[0]?.toUpperCase() + s.slice(1), num: true, cell: ([type, n]: [string, Record<string, number>]) => (n[s] ? <a href={tasksHref(`state:${s} queue:${at} type:${quoted(type)}`)}>{number(n[s])}{whole ? "" : "+"}</a> : "0") })),
            ]}
          />
        )}
      </Section>
    </>
  );
}
