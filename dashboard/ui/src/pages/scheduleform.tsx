// A form that stores a schedule for the tasks of a type.
import { useState } from "preact/hooks";
import { get, Problem, put, segment } from "../lib/api";
import { useLoad } from "../lib/load";
import { href } from "../lib/router";
import type { List } from "../lib/types";
import { Loading } from "../parts/basic";
import { because, TextField } from "../parts/data";
import { closeOpened, Field, FormDialog, ReasonField, toast } from "../parts/dialog";
import { errorsBelow, read, specOfSchema, startOf, ValueForm } from "../parts/schemaform";

interface Announced {
  task_type: string;
  input_schema?: unknown;
}

const zones = Intl.supportedValuesOf?.("timeZone") ?? [];
const overlaps: [string, string][] = [["skip", "skip the time"], ["queue", "wait for its end"], ["cancel_running", "cancel it"], ["allow", "start beside it"]];

export function NewSchedule({ after }: { after: () => void }) {
  const types = useLoad("types", (s) => get<List<Announced>>("v1/types", {}, s));
  const [v, setV] = useState<Record<string, string>>({ timezone: "UTC", rule: "cron", overlap: "skip" });
  const [input, setInput] = useState<string>();
  const [reason, setReason] = useState("");
  const [replace, setReplace] = useState(false);
  const [problem, setProblem] = useState<Problem | null>(null);
  const of = (name: string) => v[name]?.trim() ?? "";
  // A wrong rule has no pointer; its text begins with the field.
  const error = (at: string) => problem?.errors.find((e) => e.pointer === "#/" + at)?.detail ?? (problem?.status === 422 && new RegExp(`: ${at} `).test(problem.detail) ? problem.detail.slice(problem.detail.indexOf(`: ${at} `) + 2) : undefined);
  const set = (name: string) => (s: string) => {
    if (name === "type") setInput(undefined);
    setProblem(null);
    setV((v) => ({ ...v, [name]: s }));
  };
  const known = types.data?.items.some((t) => t.task_type === of("type"));
  const announced = useLoad(known ? of("type") : "", (s) => (known ? get<Announced>("v1/types/" + segment(of("type")), {}, s) : Promise.resolve(null)));
  const type = announced.data;
  const spec = type?.input_schema ? specOfSchema(type.input_schema) : null;
  const value = input ?? startOf(spec);
  const cron = v["rule"] === "cron";
  const submit = async () => {
    setProblem(null);
    const name = of("name");
    const task = JSON.stringify({ task_type: of("type"), ...(of("queue") ? { queue: of("queue") } : {}) }).slice(0, -1) + `,"input":${value}}`;
    const rule = cron ? { cron: of("cron"), timezone: of("timezone") } : { every: of("every") };
    try {
      await put("v1/schedules/" + segment(name), JSON.stringify({ ...rule, overlap: v["overlap"], ...because(reason.trim()) }).slice(0, -1) + `,"task":${task}}`, { headers: replace ? {} : { "If-None-Match": "*" } });
    } catch (err) {
      if (!(err instanceof Problem)) throw err;
      setProblem(err);
      throw err.status === 412 ? new Problem(412, "There is a schedule of this name.", "Choose another name, or let this one replace it.") : err;
    }
    toast("The schedule is stored.", href("schedules/" + encodeURIComponent(name)));
    after();
  };
  const text = (name: string, label: string, more: { help?: string; placeholder?: string; list?: string; at?: string; required?: boolean } = {}) => {
    const { at, ...rest } = more;
    return <TextField label={label} value={v[name] ?? ""} set={set(name)} error={error(at ?? name)} {...rest} />;
  };
  const select = (name: string, label: string, options: [string, string][]) => (
    <Field label={label} error={error(name)}>
      {(a) => (
        <select {...a} value={v[name]} onChange={(ev) => set(name)(ev.currentTarget.value)}>
          {options.map(([key, word]) => (
            <option key={key} value={key}>
              {word}
            </option>
          ))}
        </select>
      )}
    </Field>
  );
  return (
    <FormDialog title="New schedule" verb="Store" wide close={closeOpened} submit={submit} ready={of("name") !== "" && of("type") !== "" && read(value).value !== undefined}>
      <div class="field-row">
        {text("name", "Name", { placeholder: "nightly-report", required: true })}
        {text("type", "Type", { list: "schedule-types", at: "task/task_type", required: true, help: types.data && of("type") && !known ? "No worker has announced it yet: its input is not checked." : "" })}
        {text("queue", "Queue", { placeholder: "that of the type", at: "task/queue" })}
      </div>
      <div class="field-row">
        {select("rule", "Times", [["cron", "by the clock"], ["every", "at a distance"]])}
        {cron ? text("cron", "Cron", { placeholder: "0 3 * * *", help: "Minute, hour, day, month, weekday, or @daily.", required: true }) : text("every", "Every", { placeholder: "15m", help: "As 90s or 1h30m.", required: true })}
        {cron && text("timezone", "Time zone", { list: "schedule-zones" })}
        {select("overlap", "While the last run goes on", overlaps)}
      </div>
      <datalist id="schedule-types">
        {types.data?.items.map((t) => (
          <option key={t.task_type} value={t.task_type} />
        ))}
      </datalist>
      <datalist id="schedule-zones">
        {zones.map((z) => (
          <option key={z} value={z} />
        ))}
      </datalist>
      {announced.data === undefined && !announced.problem ? <Loading rows={2} /> : <ValueForm key={type?.task_type ?? ""} spec={spec} text={value} set={(s) => (setProblem(null), setInput(s))} errors={problem ? errorsBelow(problem, "task/input") : {}} label="Input" />}
      <ReasonField value={reason} set={setReason} />
      <label class="check">
        <input type="checkbox" checked={replace} onChange={(ev) => setReplace(ev.currentTarget.checked)} /> Replace the schedule of this name, with its input and options. Its pause and its past times stay.
      </label>
    </FormDialog>
  );
}
