// Limits of rates, running and waiting tasks.
import { useState } from "preact/hooks";
import { del, get, put, segment, Problem } from "../lib/api";
import { number, plural } from "../lib/format";
import { useLoad } from "../lib/load";
import { quoted } from "../lib/query";
import { params } from "../lib/router";
import { mayOperate } from "../lib/session";
import { now } from "../lib/time";
import type { Page } from "../lib/types";
import { Button, Empty, Loading, PageHead, ProblemBox, Section, Text, Time } from "../parts/basic";
import { because, Name, openVerb, Pager, Table, tasksHref, TextField } from "../parts/data";
import { closeOpened, Field, FormDialog, open, ReasonField, toast } from "../parts/dialog";

export interface Limit {
  name: string;
  starts?: number;
  per?: string;
  burst?: number;
  running?: number;
  pending?: number;
  weight?: number;
  in_use: number;
  waiting?: number;
  open_at?: string;
  rest_until?: string;
  updated_at?: string;
  by?: string;
  reason?: string;
}

/** What a limit allows, in words. */
export function limitText(l: Limit): string {
  return [
    l.starts && `${number(l.starts)} start each ${(l.per ?? "1s").replace(/(?<=\d[a-z])0s$|(?<=h)0m0s$/, "")}${l.burst && l.burst > 1 ? `, ${number(l.burst)} at once after a pause` : ""}`,
    l.running && `${number(l.running)} run at once`,
    l.pending && `${number(l.pending)} wait`,
    l.weight && `${number(l.weight)} in each turn`,
  ]
    .filter(Boolean)
    .join("; ");
}

/** The tasks that a limit restricts, if a query can select them. */
function tasksOf(name: string): string {
  const i = name.indexOf(":");
  const rest = name.slice(i + 1);
  switch (name.slice(0, i)) {
    case "queue":
      return tasksHref(`state:ready,running queue:${quoted(rest)}`);
    case "type":
      return tasksHref(`state:ready,running type:${quoted(rest)}`);
    case "label": {
      const eq = rest.indexOf("=");
      return tasksHref(`state:ready,running label.${rest.slice(0, eq)}=${quoted(rest.slice(eq + 1))}`);
    }
  }
  return "";
}

function Use({ l }: { l: Limit }) {
  const later = (at: string | undefined) => (at && Date.parse(at) > now.value ? at : undefined);
  const parts = [
    l.running ? (
      <span key="r" class="meter-line">
        <meter max={l.running} value={l.in_use} aria-label={`${l.name}: running`} /> {number(l.in_use)} of {number(l.running)} running
      </span>
    ) : null,
    l.pending ? (
      <span key="p" class="meter-line">
        <meter max={l.pending} value={l.waiting ?? 0} aria-label={`${l.name}: waiting`} /> {number(l.waiting ?? 0)} of {number(l.pending)} waiting
      </span>
    ) : null,
    later(l.rest_until) ? (
      <span key="w">
        A handler asked for a rest: opens <Time at={l.rest_until} />
      </span>
    ) : later(l.open_at) ? (
      <span key="o">
        Next start <Time at={l.open_at} />
      </span>
    ) : null,
  ].filter(Boolean);
  return <>{parts.length ? parts : <span class="muted">open</span>}</>;
}

export function Limits() {
  const after = params.value.get("after") ?? "";
  const list = useLoad("limits " + after, (s) => get<Page<Limit>>("v1/limits", { after, limit: 100 }, s), 3_000);
  const may = mayOperate.value;
  const remove = (l: Limit) =>
    openVerb({
      title: `Delete the limit ${l.name}`,
      verb: "Delete",
      danger: true,
      keeps: "Its tasks then start without this limit. No task is changed.",
      run: (r) => del(`v1/limits/${segment(l.name)}`, { params: because(r) }),
      done: `The limit ${l.name} is deleted.`,
      after: list.reload,
    });
  const edit = (l?: Limit) => open(<Edit limit={l} after={list.reload} />);
  return (
    <>
      <PageHead title="Limits" sub="They hold at once, across all processes.">
        {may && (
          <Button icon="limits" onClick={() => edit()}>
            Set a limit
          </Button>
        )}
      </PageHead>
      {list.problem && <ProblemBox problem={list.problem} retry={list.reload} />}
      <Section title="Limits" aside={list.data ? plural(list.data.items.length, "limit") : undefined}>
        {!list.data ? (
          !list.problem && <Loading />
        ) : list.data.items.length === 0 ? (
          <Empty title="No limit is set.">A limit restricts how many tasks of a queue, a type or a label start, run or wait.</Empty>
        ) : (
          <Table
            label="Limits"
            rows={list.data.items}
            id={(l) => l.name}
            columns={[
              { head: "Name", cell: (l) => (tasksOf(l.name) ? <Name to={tasksOf(l.name)}>{l.name}</Name> : <Text>{l.name}</Text>) },
              { head: "Allows", cell: (l) => limitText(l) },
              { head: "Use", cell: (l) => <Use l={l} /> },
              { head: "Set", cell: (l) => <span class="small">{l.updated_at && <Time at={l.updated_at} />}{l.by && <> by <Text>{l.by}</Text></>}{l.reason && <>: <Text>{l.reason}</Text></>}</span> },
              may && {
                head: "Actions",
                hidden: true,
                num: true,
                cell: (l) => (
                  <span class="row-actions">
                    <Button small onClick={() => edit(l)} aria-label={`Change ${l.name}`}>
                      Change
                    </Button>
                    <Button small kind="plain" icon="trash" label={`Delete ${l.name}`} onClick={() => remove(l)} />
                  </span>
                ),
              },
            ]}
          />
        )}
        <Pager next={list.data?.next} />
      </Section>
    </>
  );
}

const kinds: [string, string, string][] = [
  ["queue", "A queue", "its name, as billing"],
  ["type", "A type", "its name, as acme.mail.send.v1"],
  ["label", "A label's value", "KEY=VALUE, as tenant=acme"],
  ["rate", "A rate's key", "the key, as partner"],
];

function Edit({ limit, after }: { limit: Limit | undefined; after: () => void }) {
  const [kind, setKind] = useState("queue");
  const [name, setName] = useState("");
  const of = limit ? limit.name.slice(0, limit.name.indexOf(":")) : kind;
  const [v, setV] = useState<Record<string, string>>(() => Object.fromEntries(["starts", "per", "burst", "running", "pending", "weight"].map((k) => [k, String(limit?.[k as keyof Limit] ?? "")])));
  const [reason, setReason] = useState("");
  const [problem, setProblem] = useState<Problem | null>(null);
  const whole = limit?.name ?? `${kind}:${name}`;
  const number = (key: string, label: string, help: string) => (
    <TextField label={label} help={help} type="number" min={1} value={v[key] ?? ""} set={(s) => setV((v) => ({ ...v, [key]: s }))} error={problem?.errors.find((e) => e.pointer === "#/" + key)?.detail} />
  );
  const submit = async () => {
    const body: Record<string, unknown> = because(reason.trim());
    for (const k of ["starts", "burst", "running", "pending", "weight"]) if (v[k]) body[k] = Number(v[k]);
    if (v["per"]) body["per"] = v["per"];
    setProblem(null);
    try {
      await put(`v1/limits/${segment(whole)}`, body);
    } catch (err) {
      if (err instanceof Problem) setProblem(err);
      throw err;
    }
    toast(`The limit ${whole} is set.`);
    after();
  };
  return (
    <FormDialog title={limit ? `Change the limit ${limit.name}` : "Set a limit"} verb="Set" close={closeOpened} submit={submit} ready={!!limit || name !== ""}>
      <p class="dialog-text">It replaces a limit of this name. Running tasks stay; none starts beyond it.</p>
      {!limit && (
        <div class="field-row">
          <Field label="Of">
            {(a) => (
              <select {...a} value={kind} onChange={(ev) => setKind(ev.currentTarget.value)}>
                {kinds.map(([k, text]) => (
                  <option value={k} key={k}>
                    {text}
                  </option>
                ))}
              </select>
            )}
          </Field>
          <TextField label="Name" value={name} set={setName} required help={kinds.find((k) => k[0] === kind)?.[2]} />
        </div>
      )}
      {of !== "rate" && number("running", "Running at once", "Empty: not limited.")}
      {of === "queue" && number("pending", "Waiting", "A further enqueue is refused.")}
      <div class="field-row">
        {number("starts", "Starts", "How many start in each period.")}
        <TextField label="Period" value={v["per"] ?? ""} set={(s) => setV((v) => ({ ...v, per: s }))} placeholder="1s" help="As 1s, 1m or 24h." error={problem?.errors.find((e) => e.pointer === "#/per")?.detail} />
        {number("burst", "Burst", "At once after a pause.")}
      </div>
      {of === "label" && number("weight", "Weight", "Tasks in each turn.")}
      <ReasonField value={reason} set={setReason} />
    </FormDialog>
  );
}
