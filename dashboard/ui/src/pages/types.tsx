// Task types: who serves them, their schemas and defaults, and a form that enqueues one.
import { useState } from "preact/hooks";
import { get, post, Problem, segment, send } from "../lib/api";
import { plural, type Count } from "../lib/format";
import { useTopic } from "../lib/live";
import { field, parse, type Json } from "../lib/json";
import { useLoad } from "../lib/load";
import { quoted } from "../lib/query";
import { href, params, setParams, taskHref } from "../lib/router";
import { features, may } from "../lib/session";
import { nanos } from "../lib/time";
import type { AuditEntry, List, Stats, Worker } from "../lib/types";
import { Button, Empty, Facts, Loading, PageHead, ProblemBox, Section, Text, Time } from "../parts/basic";
import { Name, Pairs, rate, Strip, Table, tasksHref, TextField } from "../parts/data";
import { FormDialog, toast } from "../parts/dialog";
import { payloadOf, Viewer } from "../parts/payload";
import { errorsBelow, read, specOfSchema, startOf, ValueForm } from "../parts/schemaform";
import { outcomeClass } from "../parts/timeline";
import { Paused, PauseButton, queueHref } from "./queues";

interface TaskType {
  task_type: string;
  schema_version: number;
  code_version?: number;
  description?: string;
  input_schema?: unknown;
  defaults?: { queue?: string; priority?: number; max_attempts?: number; max_repairs?: number; max_no_progress?: number; backoff_ns?: number; backoff_max_ns?: number; timeout_ns?: number; expire_after_ns?: number; fair_by?: string; labels?: Record<string, string>; rate_limit?: { key?: string; starts?: number; per?: string }; cleanup_when_cancelled?: boolean };
  redact?: string[];
  announced_at?: string;
  announced_by?: string;
  workers?: number;
  paused?: boolean;
  pause?: AuditEntry;
}

export const typeHref = (name: string, query: Record<string, string | undefined> = {}): string => href("types/" + encodeURIComponent(name), query);

/** The failed and all ended attempts of each type in the last hour. */
function useRates(type?: string): Map<string, { bad: number; all: number }> {
  const stats = useLoad("rates " + (type ?? ""), (s) => (features.value["stats"] ? get<Stats>("v1/stats", { by: ["type", "outcome"], type }, s) : Promise.resolve(null)), 15_000);
  const map = new Map<string, { bad: number; all: number }>();
  for (const r of stats.data?.rows ?? []) {
    const colour = outcomeClass[r.outcome ?? ""] ?? "bad";
    if (colour === "idle" && r.outcome !== "cancelled") continue;
    const was = map.get(r.task_type ?? "") ?? { bad: 0, all: 0 };
    map.set(r.task_type ?? "", { bad: was.bad + (colour === "bad" ? r.count : 0), all: was.all + r.count });
  }
  return map;
}

function Rate({ r }: { r: { bad: number; all: number } | undefined }) {
  return <span class={r && r.bad > 0 ? "error" : "muted"}>{r ? rate(r.bad, r.all) : "–"}</span>;
}

export function Types() {
  const list = useLoad("types", (s) => get<List<TaskType>>("v1/types", {}, s), 10_000);
  const counts = useTopic<Count>("counts");
  const rates = useRates();
  const known = new Set(list.data?.items.map((t) => t.task_type));
  const others = counts.ids.filter((id) => id.startsWith("type:") && !known.has(id.slice(5))).map((id): TaskType => ({ task_type: id.slice(5), schema_version: 0 }));
  return (
    <>
      <PageHead title="Types" sub="What workers can run." />
      {list.problem && <ProblemBox problem={list.problem} retry={list.reload} />}
      <Section title="Types" aside={list.data ? plural(list.data.items.length + others.length, "type") : undefined}>
        {!list.data ? (
          !list.problem && <Loading />
        ) : list.data.items.length + others.length === 0 ? (
          <Empty title="No worker has announced a type.">
            Start one: <code>weaver worker</code>, or your program.
          </Empty>
        ) : (
          <Table
            label="Types"
            rows={[...list.data.items, ...others]}
            id={(t) => t.task_type}
            columns={[
              { head: "Type", cell: (t) => <><Name to={typeHref(t.task_type)}>{t.task_type}</Name>{t.paused && <div class="small"><Paused pause={t.pause} /></div>}{t.description && <div class="small muted"><Text most={120}>{t.description}</Text></div>}</> },
              { head: "Workers", num: true, cell: (t) => (t.schema_version === 0 ? <span class="tag">not announced</span> : t.workers ? String(t.workers) : <span class="tag bad">none alive</span>) },
              { head: "Queue", cell: (t) => (t.defaults?.queue ? <Text>{t.defaults.queue}</Text> : "–") },
              { head: "Failed attempts, 1 h", num: true, cell: (t) => <Rate r={rates.get(t.task_type)} /> },
              { head: "Last 50 runs", cell: (t) => <Strip q={`type:${quoted(t.task_type)}`} /> },
              { head: "Actions", hidden: true, num: true, cell: (t) => <PauseButton what="type" name={t.task_type} paused={!!t.paused} after={list.reload} /> },
            ]}
          />
        )}
      </Section>
    </>
  );
}

interface Announced extends TaskType {
  schemas: { input: Json | undefined; output: Json | undefined }; // their numbers have all digits
}

async function load(id: string, signal: AbortSignal): Promise<Announced | null> {
  // The list says whether it was announced: tasks may have types that were not.
  const list = await get<List<TaskType>>("v1/types", {}, signal);
  if (!list.items.some((t) => t.task_type === id)) return null;
  const text = await (await send("GET", `v1/types/${segment(id)}`, { signal })).text();
  const raw = parse(text);
  return { ...(JSON.parse(text) as TaskType), schemas: { input: field(raw, "input_schema"), output: field(raw, "output_schema") } };
}

function SchemaPanel({ title, value, of }: { title: string; value: Json | undefined; of: string }) {
  return <Section title={title}>{value ? <div class="panel-body"><Viewer of={payloadOf(value)} name={of} /></div> : <Empty title="It was announced without one." />}</Section>;
}

export function OneType({ id }: { id: string }) {
  const type = useLoad("type " + id, (s) => load(id, s), 15_000);
  const workers = useTopic<Worker>("workers");
  const rates = useRates(id);
  const serving = workers.rows.filter((w) => !w.dead && w.task_types?.includes(id));
  const t = type.data;
  const d = t?.defaults;
  const q = `type:${quoted(id)}`;
  const maySubmit = may("submit") && !!t;
  return (
    <>
      <PageHead title={<Text>{id}</Text>} sub={<a href={href("types")}>Types</a>}>
        <a class="button" href={tasksHref(q)}>
          All its tasks
        </a>
        {type.data !== undefined && <PauseButton what="type" name={id} paused={!!t?.paused} small={false} after={type.reload} />}
        {maySubmit && (
          <Button kind="primary" icon="play" onClick={() => setParams({ submit: "1" })}>
            Submit a task
          </Button>
        )}
      </PageHead>
      {type.problem && <ProblemBox problem={type.problem} retry={type.reload} />}
      {t === undefined && !type.problem && <Loading />}
      {t === null && (
        <Section title="Not announced">
          <Empty title="No worker has announced this type.">Its schema and defaults are not known. Start a worker that handles it.</Empty>
        </Section>
      )}
      {t && (
        <Section title="Now">
          {t.paused && (
            <p class="notice">
              <Paused pause={t.pause} />
            </p>
          )}
          {t.description && (
            <p class="notice">
              <Text>{t.description}</Text>
            </p>
          )}
          <Facts
            facts={[
              ["Failed attempts in the last hour", <Rate r={rates.get(id)} />],
              ["Served by", serving.length ? <a href={href("workers")}>{plural(serving.length, "worker")}: <Text most={80}>{serving.map((w) => w.name).join(", ")}</Text></a> : workers.loaded ? <span class="error">no live worker</span> : "…"],
              ["Schema version", String(t.schema_version)],
              ["Code version", t.code_version ? String(t.code_version) : ""],
              ["Announced", t.announced_at ? <><Time at={t.announced_at} />{t.announced_by && <> by <Text>{t.announced_by}</Text></>}</> : ""],
            ]}
          />
        </Section>
      )}
      <Section title="Last 50 runs" aside={<a href={tasksHref(`state:succeeded,failed,cancelled ${q}`)}>As a list</a>}>
        <div class="panel-body">
          <Strip q={q} />
        </div>
      </Section>
      {d && (
        <Section title="Defaults">
          <Facts
            facts={[
              ["Queue", d.queue ? <a href={queueHref(d.queue)}><Text>{d.queue}</Text></a> : ""],
              ["Priority", d.priority ? `${d.priority} (1 first, 9 last)` : ""],
              ["Attempts", d.max_attempts ? String(d.max_attempts) : ""],
              ["Delay between attempts", d.backoff_ns ? `${nanos(d.backoff_ns)}, doubling up to ${nanos(d.backoff_max_ns)}` : ""],
              ["Time of an attempt", d.timeout_ns ? nanos(d.timeout_ns) : ""],
              ["Expires after", d.expire_after_ns ? nanos(d.expire_after_ns) : ""],
              ["Repairs", d.max_repairs ? String(d.max_repairs) : ""],
              ["Turns by label", d.fair_by ? <Text>{d.fair_by}</Text> : ""],
              ["Rate", d.rate_limit?.key ? <a href={href("limits")}><Text>{`${d.rate_limit.key}: ${d.rate_limit.starts ?? ""} each ${d.rate_limit.per ?? ""}`}</Text></a> : ""],
              ["Hidden values", t?.redact?.length ? <Text>{t.redact.join(", ")}</Text> : ""],
            ]}
          />
          {d.labels && <Pairs map={d.labels} />}
        </Section>
      )}
      {t && (
        <div class="two">
          <SchemaPanel title="Input schema" value={t.schemas.input} of={id + "-input-schema"} />
          <SchemaPanel title="Output schema" value={t.schemas.output} of={id + "-output-schema"} />
        </div>
      )}
      {t && maySubmit && params.value.get("submit") && <Submit type={t} close={() => setParams({ submit: undefined })} />}
    </>
  );
}

function Submit({ type, close }: { type: TaskType; close: () => void }) {
  const spec = type.input_schema ? specOfSchema(type.input_schema) : null;
  const [input, setInput] = useState(() => startOf(spec));
  const [v, setV] = useState<Record<string, string>>({});
  const [labels, setLabels] = useState("");
  const [problem, setProblem] = useState<Problem | null>(null);
  const error = (name: string) => problem?.errors.find((e) => e.pointer === "#/" + name)?.detail;
  const parsed = read(input);
  const submit = async () => {
    const body: Record<string, unknown> = { task_type: type.task_type };
    for (const k of ["queue", "delay", "idempotency_key"]) if (v[k]?.trim()) body[k] = v[k]?.trim();
    if (v["priority"]) body["priority"] = Number(v["priority"]);
    const map = Object.fromEntries(
      labels
        .split(/[\n,]/)
        .map((l) => l.trim())
        .filter(Boolean)
        .map((l) => [l.split("=", 1)[0] ?? "", l.slice(l.indexOf("=") + 1)]),
    );
    if (Object.keys(map).length > 0) body["labels"] = map;
    setProblem(null);
    try {
      // The input is sent as it was written: its numbers keep their digits.
      const got = await post<{ id: string; disposition: string }>("v1/tasks", JSON.stringify(body).slice(0, -1) + `,"input":${input}}`);
      toast(got.disposition === "created" ? "The task is enqueued." : "A task with this key exists already: nothing was enqueued.", taskHref(got.id));
    } catch (err) {
      if (err instanceof Problem) setProblem(err);
      throw err;
    }
  };
  const text = (name: string, label: string, more: { help?: string; placeholder?: string | undefined; type?: string; min?: number } = {}) => {
    const { placeholder, ...rest } = more;
    return <TextField label={label} value={v[name] ?? ""} set={(s) => setV((v) => ({ ...v, [name]: s }))} error={error(name)} {...rest} {...(placeholder ? { placeholder } : {})} />;
  };
  return (
    <FormDialog title={`Submit ${type.task_type}`} verb="Submit" wide close={close} submit={submit} ready={parsed.value !== undefined}>
      <ValueForm
        spec={spec}
        text={input}
        set={(s) => {
          setInput(s);
          setProblem(null);
        }}
        errors={problem ? errorsBelow(problem, "input") : {}}
        label="Input"
      />
      <div class="field-row">
        {text("queue", "Queue", { placeholder: type.defaults?.queue })}
        {text("priority", "Priority", { type: "number", min: 1, placeholder: String(type.defaults?.priority ?? 5), help: "1 first, 9 last." })}
        {text("delay", "Delay", { placeholder: "0s", help: "As 90s or 1h30m." })}
      </div>
      <div class="field-row">
        <TextField label="Labels" value={labels} set={setLabels} placeholder="team=mail, order=42" error={problem?.errors.find((e) => e.pointer?.startsWith("#/labels"))?.detail} />
        {text("idempotency_key", "Idempotency key", { help: "A second task with it is not stored." })}
      </div>
    </FormDialog>
  );
}

