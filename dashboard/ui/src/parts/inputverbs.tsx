// The verbs of a task that take a value: unblock, signal, repair, rerun.
import { useEffect, useState } from "preact/hooks";
import { get, post, Problem, segment, send } from "../lib/api";
import { visible } from "../lib/format";
import { diff, field, parse, write } from "../lib/json";
import { useLoad } from "../lib/load";
import { taskHref } from "../lib/router";
import { may } from "../lib/session";
import { cli, taskPath } from "../lib/task";
import type { History, Task } from "../lib/types";
import { Loading, ProblemBox, Text } from "./basic";
import { Field, open, toast } from "./dialog";
import { check, errorsBelow, read, specOfSchema, specOfShape, ValueForm, type Errors, type Spec } from "./schemaform";
import { bodyText, Check, VerbDialog, type Preset } from "./verbs";

/** The text of a value as the API has it, with its numbers as they are. */
export async function valueText(path: string, signal?: AbortSignal): Promise<string> {
  const answer = await (await send("GET", path, { signal })).text();
  const v = field(parse(answer), "value");
  return v ? write(v) : "";
}

/** A value being edited: its text, its errors, and its JSON for the request. */
function useValue(spec: Spec | null, first: string) {
  const [text, set] = useState(first);
  const [server, setServer] = useState<Errors>({});
  const r = read(text);
  const own = spec && r.value ? check(r.value, spec) : {};
  return {
    text,
    set(s: string) {
      setServer({});
      set(s);
    },
    errors: { ...own, ...server },
    fine: !r.problem, // what the form refuses is shown, and the server decides
    raw: r.value ? write(r.value, 0) : undefined,
    refused: (p: Problem, name: string) => setServer(errorsBelow(p, name)),
  };
}

const shellJSON = (raw: string | undefined): string => (raw === undefined || raw.length > 2000 ? "-" : raw);

export const openUnblock = (t: Task): void => open(<Unblock t={t} />);

function Unblock({ t }: { t: Task }) {
  const spec = specOfShape(t.error?.ask_shape);
  const approves = spec?.fields?.some((f) => f.name === "approved" && f.spec.kind === "boolean");
  const v = useValue(spec, approves ? '{\n  "approved": true\n}' : "");
  const ask = t.error?.ask;
  return (
    <VerbDialog
      task={t}
      title={ask ? "Answer the question" : "Unblock the task"}
      verb={ask ? "Send the answer" : "Unblock"}
      wide={!!spec}
      ready={v.fine}
      request={(reason, headers) => post(taskPath(t.id, "/unblock"), bodyText({ ask, reason }, { input: v.raw }), { headers })}
      refused={(p) => v.refused(p, "input")}
      command={cli("task", "unblock", t.id, ...(ask ? ["--ask=" + ask] : []), ...(v.raw === undefined ? [] : ["--input", shellJSON(v.raw)]))}
      done="The task continues."
      keeps={
        <>
          {t.error?.message && (
            <p class="question">
              <Text>{t.error.message}</Text>
            </p>
          )}
          <p>The task starts again with the answer. Completed steps are kept and not repeated.</p>
        </>
      }
    >
      <ValueForm spec={spec} text={v.text} set={v.set} errors={v.errors} label="Answer" optional />
    </VerbDialog>
  );
}

export const openSignal = (t: Task, preset: Preset = {}): void => open(<SignalDialog t={t} preset={preset} />);

function SignalDialog({ t, preset }: { t: Task; preset: Preset }) {
  const [name, setName] = useState(preset.name ?? "");
  const [key, setKey] = useState("");
  const v = useValue(null, "");
  const h = useLoad("signal " + t.id, (s) => get<History>(taskPath(t.id, "/history"), {}, s));
  const awaited = [...new Set((h.data?.steps ?? []).filter((s) => s.state === "waiting" && s.signal).map((s) => s.signal as string))];
  useEffect(() => {
    if (!name && awaited.length === 1) setName(awaited[0] ?? "");
  }, [h.data]);
  return (
    <VerbDialog
      task={t}
      title="Send a signal"
      verb="Send"
      unmatched
      ready={name.trim() !== "" && v.fine}
      request={(reason) => post(taskPath(t.id, "/signal"), bodyText({ name: name.trim(), key: key.trim(), reason }, { payload: v.raw ?? "null" }))}
      refused={(p) => v.refused(p, "payload")}
      command={cli("task", "signal", t.id, name || "NAME", shellJSON(v.raw ?? "null"), ...(key ? ["--key=" + key] : []))}
      done="The signal was sent."
      keeps={<p>{awaited.length ? <>The task waits for <Text>{awaited.join(", ")}</Text>.</> : "The task waits for no signal now: the signal is kept until it does."} Nothing is repeated.</p>}
    >
      <Field label="Name">{(a) => <input {...a} type="text" required autoComplete="off" value={name} onInput={(ev) => setName(ev.currentTarget.value)} />}</Field>
      <ValueForm spec={null} text={v.text} set={v.set} errors={v.errors} label="Payload, as JSON" optional />
      <Field label="Key" help="Sent again under the same key, the signal has no other effect. Left empty: a new one.">
        {(a) => <input {...a} type="text" autoComplete="off" value={key} onInput={(ev) => setKey(ev.currentTarget.value)} />}
      </Field>
    </VerbDialog>
  );
}

/** The schema and the present input of a task, for a dialog that edits the input. */
function useInput(t: Task) {
  return useLoad("input " + t.id, async (s) => {
    const [type, text] = await Promise.all([
      get<{ input_schema?: unknown }>("v1/types/" + segment(t.task_type), {}, s).catch(() => null),
      may("payloads") ? valueText(taskPath(t.id, "/payloads/input"), s).catch((err: unknown) => err as Error) : Promise.resolve(new Error("You may not read the values of tasks: enter the whole input.")),
    ]);
    return { spec: type?.input_schema ? specOfSchema(type.input_schema) : null, text: typeof text === "string" ? text : "", problem: typeof text === "string" ? null : text };
  });
}

const masked = "[redacted]";

function Masked({ text }: { text: string }) {
  return text.includes(masked) ? <p class="note">Parts of the input are hidden from you ({masked}). Enter their values, or the task gets this text instead.</p> : null;
}

export const openRepair = (t: Task): void => open(<Edit t={t} of={Repair} />);

/** Shows a dialog once the input has been read. */
function Edit({ t, of: Inner, preset = {} }: { t: Task; of: typeof Rerun; preset?: Preset }) {
  const input = useInput(t);
  if (!input.data) return <VerbDialog task={t} title="Read the input" verb="Wait" ready={false} request={() => Promise.resolve()} done="" keeps={<Loading />} />;
  return <Inner t={t} preset={preset} spec={input.data.spec} first={input.data.text} problem={input.data.problem} />;
}

interface EditProps {
  t: Task;
  preset: Preset;
  spec: Spec | null;
  first: string;
  problem: Error | null;
}

function Repair({ t, spec, first, problem }: EditProps) {
  const v = useValue(spec, first);
  return (
    <VerbDialog
      task={t}
      title="Repair the input"
      verb="Repair and continue"
      wide
      ready={v.fine && v.raw !== undefined && v.text !== first}
      request={(reason, headers) => post(taskPath(t.id, "/repair"), bodyText({ reason }, { input: v.raw }), { headers })}
      refused={(p) => v.refused(p, "input")}
      command={cli("task", "repair", "--input=" + shellJSON(v.raw), t.id)}
      done="The task continues with the new input."
      keeps={
        <>
          {t.error && (
            <p class="question">
              <Text>{t.error.message}</Text>
            </p>
          )}
          <p>The input of this task is replaced and the task starts again. Completed steps are kept. The audit keeps the hashes of both inputs.</p>
        </>
      }
    >
      {problem && <ProblemBox problem={problem} />}
      <Masked text={v.text} />
      <ValueForm spec={spec} text={v.text} set={v.set} errors={v.errors} label="Input" />
      <Diff from={first} to={v.text} />
    </VerbDialog>
  );
}

export const openRerun = (t: Task, preset: Preset = {}): void => open(<Edit t={t} of={Rerun} preset={preset} />);

function Rerun({ t, preset, spec, first, problem }: EditProps) {
  const mayEdit = may("submit");
  const [edit, setEdit] = useState(false);
  const [from, setFrom] = useState(preset.from ?? "");
  const [keep, setKeep] = useState(preset.keep_steps ?? false);
  const v = useValue(spec, first);
  const h = useLoad("rerun " + t.id, (s) => get<History>(taskPath(t.id, "/history"), {}, s));
  const steps = [...new Set((h.data?.steps ?? []).filter((s) => s.kind !== "undo" && s.kind !== "cleanup").sort((a, b) => a.index - b.index).map((s) => s.name))];
  const cleaned = h.data?.steps.some((s) => s.kind === "cleanup");
  const before = from ? steps.slice(0, steps.indexOf(from)) : [];
  const changed = edit && v.raw !== undefined;
  return (
    <VerbDialog
      task={t}
      title="Rerun as a new task"
      verb={changed ? "Rerun with this input" : "Rerun"}
      wide={edit}
      ready={!edit || (v.fine && v.raw !== undefined)}
      request={(reason, headers) => post(taskPath(t.id, "/rerun"), bodyText({ from, keep_steps: !!from && keep, reason }, { input: changed ? v.raw : undefined }), { headers })}
      refused={(p) => v.refused(p, "input")}
      command={cli("task", "rerun", t.id, ...(from ? ["--from=" + from] : []), ...(from && keep ? ["--keep-steps"] : []), ...(changed ? ["--input", shellJSON(v.raw)] : []))}
      done={(answer) => toast("The new task was enqueued.", taskHref((answer as { id: string }).id))}
      keeps={
        <ul>
          <li>This task stays as it is. A new task with its type and options is due at once{t.job_id ? ", outside the job" : ""}.</li>
          <li>{from ? (before.length ? <>Taken over, not repeated: <Text>{before.join(", ")}</Text>. All from <Text>{from}</Text> on runs again.</> : <>No step is before <Text>{from}</Text>: all run again.</>) : "All its steps run again."}</li>
        </ul>
      }
    >
      {steps.length > 0 && (
        <Field label="Begin with the step">
          {(a) => (
            <select {...a} value={from} onChange={(ev) => setFrom(ev.currentTarget.value)}>
              <option value="">The first: repeat everything</option>
              {steps.map((s) => (
                <option key={s} value={s}>
                  {s}
                </option>
              ))}
            </select>
          )}
        </Field>
      )}
      {from && cleaned && (
        <Check checked={keep} set={setKeep}>
          A cleanup ran: take over the steps before it all the same, because their effects still hold
        </Check>
      )}
      {mayEdit && (
        <Check checked={edit} set={setEdit}>
          With another input
        </Check>
      )}
      {edit && (
        <>
          {problem && <ProblemBox problem={problem} />}
          <Masked text={v.text} />
          <ValueForm spec={spec} text={v.text} set={v.set} errors={v.errors} label="Input" />
          <Diff from={first} to={v.text} />
        </>
      )}
    </VerbDialog>
  );
}

/** What an edit changes, line by line, with two lines around each change. */
function Diff({ from, to }: { from: string; to: string }) {
  const after = read(to);
  if (after.problem) return null;
  const lines = diff(from, after.value ? write(after.value) : "");
  if (lines.every((l) => l.sign === " ")) return <p class="muted">The input is unchanged.</p>;
  const near = lines.map((_, i) => lines.slice(Math.max(0, i - 2), i + 3).some((l) => l.sign !== " "));
  return (
    <div>
      <h3>Changes</h3>
      <pre class="diff" tabIndex={0} aria-label="Changes of the input">
        {lines.map((l, i) =>
          near[i] ? (
            <span key={i} class={l.sign === "+" ? "added" : l.sign === "-" ? "removed" : undefined}>
              {l.sign} {visible(l.text) + "\n"}
            </span>
          ) : near[i - 1] ? (
            <span key={i} class="muted">{"…\n"}</span>
          ) : null,
        )}
      </pre>
    </div>
  );
}
