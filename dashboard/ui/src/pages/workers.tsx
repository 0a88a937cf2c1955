// Workers: who is alive, what they can run, how full they are.
import { number, plural } from "../lib/format";
import { useTopic } from "../lib/live";
import { href } from "../lib/router";
import type { Worker } from "../lib/types";
import { Age, Empty, Loading, PageHead, ProblemBox, Section, Text } from "../parts/basic";
import { Table, tasksHref } from "../parts/data";
import { Icon } from "../parts/icons";

interface Trouble {
  task_type?: string;
  name?: string;
  detail?: string;
  [name: string]: unknown;
}

function Life({ w }: { w: Worker }) {
  if (w.dead) return <span class="state failed"><Icon name="cross" /> <span>ended</span></span>;
  if (w.silent) return <span class="state blocked"><Icon name="warning" /> <span>silent</span></span>;
  return <span class="state succeeded"><Icon name="check" /> <span>alive</span></span>;
}

export function Workers() {
  const topic = useTopic<Worker>("workers");
  const alive = topic.rows.filter((w) => !w.dead && !w.silent);
  const slots = alive.reduce((n, w) => n + (w.slots ?? 0), 0);
  const used = alive.reduce((n, w) => n + w.running.n, 0);
  const order = (w: Worker) => (w.silent && !w.dead ? 0 : w.dead ? 2 : 1);
  const rows = [...topic.rows].sort((a, b) => order(a) - order(b) || (a.name < b.name ? -1 : 1));
  return (
    <>
      <PageHead title="Workers" sub={topic.loaded && rows.length > 0 ? `${number(alive.length)} alive, ${number(used)} of ${plural(slots, "slot")} used.` : undefined}>
        <a class="button" href={tasksHref("state:running")}>
          What runs now
        </a>
      </PageHead>
      {topic.problem && <ProblemBox problem={topic.problem} />}
      <Section title="Workers" aside={topic.loaded ? plural(rows.length, "worker") : undefined}>
        {!topic.loaded ? (
          <Loading />
        ) : rows.length === 0 ? (
          <Empty title="No worker is known.">
            Start one: <code>weaver worker</code>, or your program.
          </Empty>
        ) : (
          <Table
            label="Workers"
            rows={rows}
            id={(w) => w.worker_id}
            rowClass={(w) => (w.dead ? "gone" : undefined)}
            columns={[
              { head: "Worker", cell: (w) => <><Text>{w.name}</Text>{w.host && <div class="small muted"><Text>{w.host}</Text>{w.pid ? `, process ${w.pid}` : ""}</div>}</> },
              { head: "State", cell: (w) => <Life w={w} /> },
              { head: "Last seen", cell: (w) => <><Age at={w.last_seen} /> ago{w.silent && !w.dead && <div class="small muted">Its tasks are taken over when their leases end.</div>}</> },
              { head: "Slots used", cell: (w) => (w.dead || !w.slots ? "–" : <span class="meter-line"><meter max={Math.max(w.slots, 1)} value={w.running.n} aria-label={`${w.name}: used slots`} /> {number(w.running.n)} of {number(w.slots)}</span>) },
              { head: "Version", cell: (w) => <span class="small"><Text>{w.version || "–"}</Text>{typeof w["program"] === "string" && w["program"] && <div class="muted"><Text>{w["program"]}</Text></div>}</span> },
              { head: "Queues", cell: (w) => ((w["queues"] as string[] | undefined)?.length ? <Text>{(w["queues"] as string[]).join(", ")}</Text> : <span class="muted">all</span>) },
              { head: "Types", cell: (w) => <Types w={w} /> },
            ]}
          />
        )}
      </Section>
    </>
  );
}

function Types({ w }: { w: Worker }) {
  const troubles = (w["troubles"] as Trouble[] | undefined) ?? [];
  const link = (t: string) => (
    <li key={t}>
      <a href={href("types/" + encodeURIComponent(t))}>
        <Text>{t}</Text>
      </a>
    </li>
  );
  const types = w.task_types ?? [];
  if (types.length === 0) return <span class="muted">{w["sender"] ? <a href={href("orders")}>sends orders</a> : "none"}</span>;
  return (
    <>
      <details>
        <summary>{plural(types.length, "type")}</summary>
        <ul class="plain-list small">{types.map(link)}</ul>
      </details>
      {troubles.map((t, i) => (
        <div key={i} class="small field-error">
          <Icon name="warning" /> <Text>{[t.task_type ?? t.name, ...Object.entries(t).filter(([k, v]) => k !== "task_type" && k !== "name" && typeof v === "string").map(([, v]) => String(v))].join(": ")}</Text>
        </div>
      ))}
    </>
  );
}
