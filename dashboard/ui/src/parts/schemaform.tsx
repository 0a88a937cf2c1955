// A form for a JSON value, made from a JSON Schema or the shape of a question, with the JSON beside it.
import { useState } from "preact/hooks";
import type { Problem } from "../lib/api";
import { field, parse, pointerPart, withField, write, type Json } from "../lib/json";
import { Field } from "./dialog";

/** What a form knows of a value. "any" is edited as JSON. */
export interface Spec {
  kind: "object" | "array" | "string" | "number" | "integer" | "boolean" | "enum" | "any";
  help?: string | undefined;
  fields?: { name: string; spec: Spec; required: boolean }[];
  item?: Spec;
  values?: Json[]; // of an enum
  long?: boolean; // text of several lines
}

const simple = new Set(["string", "number", "integer", "boolean", "enum"]);
const maxDepth = 6;

type Raw = Record<string, unknown>;

/** The spec of a JSON Schema, of which the form knows the common part. */
export function specOfSchema(schema: unknown, root: unknown = schema, depth = 0): Spec {
  if (typeof schema !== "object" || schema === null || depth > maxDepth) return { kind: "any" };
  let s = schema as Raw;
  const ref = s["$ref"];
  if (typeof ref === "string") {
    let at: unknown = ref.startsWith("#") ? root : undefined;
    for (const part of ref.slice(2).split("/").filter(Boolean)) at = (at as Raw | undefined)?.[decodeURIComponent(part).replaceAll("~1", "/").replaceAll("~0", "~")];
    if (typeof at !== "object" || at === null) return { kind: "any" };
    s = { ...(at as Raw), ...s, $ref: undefined };
  }
  const text = [s["title"], s["description"]].filter((t) => typeof t === "string").join(". ");
  const limits = [
    s["minimum"] !== undefined && Math.abs(Number(s["minimum"])) < 2 ** 31 ? `at least ${String(s["minimum"])}` : "",
    s["maximum"] !== undefined && Math.abs(Number(s["maximum"])) < 2 ** 31 ? `at most ${String(s["maximum"])}` : "",
    typeof s["format"] === "string" ? String(s["format"]) : "",
    typeof s["pattern"] === "string" ? `matches ${String(s["pattern"])}` : "",
  ].filter(Boolean);
  const help = [text, limits.join(", ")].filter(Boolean).join("; ") || undefined;
  if (Array.isArray(s["enum"])) return { kind: "enum", help, values: s["enum"].map((v) => parse(JSON.stringify(v))) };
  const types = (Array.isArray(s["type"]) ? s["type"] : [s["type"]]).filter((t) => t !== "null");
  const type = types.length === 1 ? (types[0] as string) : "";
  if (type === "object" && s["properties"]) {
    const required = new Set(Array.isArray(s["required"]) ? s["required"] : []);
    const fields = Object.entries(s["properties"] as Raw).map(([name, of]) => ({ name, spec: specOfSchema(of, root, depth + 1), required: required.has(name) }));
    return { kind: "object", help, fields: [...fields.filter((f) => f.required), ...fields.filter((f) => !f.required)] };
  }
  if (type === "array" && s["items"]) {
    const item = specOfSchema(s["items"], root, depth + 1);
    return simple.has(item.kind) ? { kind: "array", help, item } : { kind: "any", help };
  }
  if (simple.has(type)) return { kind: type as Spec["kind"], help, long: type === "string" && Number(s["maxLength"] ?? 0) > 200 };
  return { kind: "any", help };
}

/** The spec of the shape of a question's answer: "string", ["string"], {"FIELD": …}, {"": ELEMENT}. */
export function specOfShape(shape: string | undefined): Spec | null {
  const of = (s: unknown): Spec => {
    if (s === "bool") return { kind: "boolean" };
    if (s === "string") return { kind: "string" };
    if (typeof s === "string") return { kind: /^u?int/.test(s) ? "integer" : s.startsWith("float") ? "number" : "any" };
    if (Array.isArray(s)) {
      const item = of(s[0]);
      return simple.has(item.kind) ? { kind: "array", item } : { kind: "any" };
    }
    if (typeof s === "object" && s !== null && !("" in s)) return { kind: "object", fields: Object.entries(s).map(([name, f]) => ({ name, spec: of(f), required: false })) };
    return { kind: "any" };
  };
  if (!shape) return null;
  try {
    return of(JSON.parse(shape));
  } catch {
    return null;
  }
}

/** Errors of values by JSON pointer: "/order/id". */
export type Errors = Record<string, string>;

/** The errors of a problem whose pointers are below a field of the body: "#/input/a" is "/a". */
export function errorsBelow(p: Problem, name: string): Errors {
  const out: Errors = {};
  for (const e of p.errors) {
    const at = (e.pointer ?? "").replace(/^#/, "");
    if (at === "/" + name || at.startsWith(`/${name}/`)) out[at.slice(name.length + 1)] = e.detail + (e.meant ? `; did you mean ${e.meant}?` : "");
  }
  return out;
}

/** An object with the required fields of a form. */
function firstValue(spec: Spec): Json {
  switch (spec.kind) {
    case "object":
      return { kind: "object", entries: (spec.fields ?? []).filter((f) => f.required).map((f) => [f.name, firstValue(f.spec)]) };
    case "array":
      return { kind: "array", items: [] };
    case "enum":
      return spec.values?.[0] ?? { kind: "literal", text: "null" };
    case "string":
      return { kind: "string", value: "" };
    case "boolean":
      return { kind: "literal", text: "false" };
    case "any":
      return { kind: "literal", text: "null" };
    default:
      return { kind: "number", text: "0" };
  }
}

/** The text that a form begins with. */
export const startOf = (spec: Spec | null): string => (spec?.kind === "object" ? write(firstValue(spec)) : "null");

/** What the spec refuses in a value. */
export function check(v: Json | undefined, spec: Spec, at = "", required = false): Errors {
  const null_ = v?.kind === "literal" && v.text === "null";
  if (v === undefined || null_) return required && v === undefined ? { [at]: "A value is required." } : {};
  const want: Partial<Record<Spec["kind"], [boolean, string]>> = {
    object: [v.kind === "object", "Want an object."],
    array: [v.kind === "array", "Want a list."],
    string: [v.kind === "string", "Want a text."],
    boolean: [v.kind === "literal", "Want true or false."],
    number: [v.kind === "number", "Want a number."],
    integer: [v.kind === "number" && /^-?\d+(\.0+)?$/.test(v.text), "Want a whole number."],
    enum: [!!spec.values?.some((x) => write(x, 0) === write(v, 0)), "Want one of the listed values."],
  };
  const w = want[spec.kind];
  if (w && !w[0]) return { [at]: w[1] };
  const out: Errors = {};
  for (const f of spec.fields ?? []) Object.assign(out, check(field(v, f.name), f.spec, at + pointerPart(f.name), f.required));
  if (v.kind === "array" && spec.item) v.items.forEach((e, i) => Object.assign(out, check(e, spec.item as Spec, at + pointerPart(i))));
  return out;
}

/** The JSON of a form's text, or what is wrong with it. An empty text is undefined. */
export function read(text: string): { value?: Json; problem?: string } {
  if (text.trim() === "") return {};
  try {
    return { value: parse(text) };
  } catch (err) {
    return { problem: (err as Error).message };
  }
}

/** A value as a form and as JSON; a change of one changes the other. The text of the JSON is the state. */
export function ValueForm({ spec, text, set, label, errors = {}, optional }: { spec: Spec | null; text: string; set: (s: string) => void; label: string; errors?: Errors; optional?: boolean }) {
  const form = spec && spec.kind !== "any" ? spec : null;
  const { value, problem } = read(text);
  const rest = form ? Object.entries(errors).filter(([at]) => !covered(form, at, "")) : Object.entries(errors);
  return (
    <div class={"value-form" + (form ? " both" : "")}>
      {form && (
        <fieldset disabled={!!problem}>
          <legend>{label}</legend>
          {problem && <p class="muted">The form comes back when the JSON can be read.</p>}
          <Part spec={form} value={value} set={(v) => set(v === undefined ? "" : write(v))} at="" name="" errors={errors} required={false} />
        </fieldset>
      )}
      <Field label={form ? "As JSON" : label} help={optional ? "Left empty, no value is sent." : undefined} error={problem ?? (rest.length ? rest.map(([at, e]) => (at ? `${at}: ${e}` : e)).join(" ") : undefined)}>
        {(a) => <textarea {...a} class="json-text" spellcheck={false} rows={Math.min(24, Math.max(5, text.split("\n").length + 1))} value={text} onInput={(ev) => set(ev.currentTarget.value)} />}
      </Field>
    </div>
  );
}

/** Whether the form has a control at the pointer. */
function covered(spec: Spec, at: string, here: string): boolean {
  if (at === here) return spec.kind !== "object" && spec.kind !== "any";
  if (spec.kind === "array") return at.startsWith(here + "/");
  return (spec.fields ?? []).some((f) => at === here + pointerPart(f.name) || covered(f.spec, at, here + pointerPart(f.name)));
}

type PartProps = { spec: Spec; value: Json | undefined; set: (v: Json | undefined) => void; at: string; name: string; errors: Errors; required: boolean };

function Part({ spec, value, set, at, name, errors, required }: PartProps) {
  if (spec.kind === "object") {
    const fields = (spec.fields ?? []).map((f) => <Part key={f.name} spec={f.spec} name={f.name} at={at + pointerPart(f.name)} errors={errors} required={f.required} value={field(value, f.name)} set={(v) => set(withField(value, f.name, v))} />);
    if (!name) return <>{fields}</>;
    return (
      <fieldset class="nested">
        <legend>{name}</legend>
        {spec.help && <p class="field-help">{spec.help}</p>}
        {fields}
      </fieldset>
    );
  }
  const nestedErrors = Object.entries(errors).filter(([p]) => p === at || (spec.kind === "array" && p.startsWith(at + "/")) || (spec.kind === "any" && p.startsWith(at + "/")));
  const error = nestedErrors.map(([p, e]) => (p === at ? e : `${p.slice(at.length + 1)}: ${e}`)).join(" ") || undefined;
  return (
    <Field label={(name || "Value") + (required ? " *" : "")} help={spec.help} error={error}>
      {(a) => <Control spec={spec} value={value} set={set} required={required} attrs={a} />}
    </Field>
  );
}

function Control({ spec, value, set, required, attrs }: { spec: Spec; value: Json | undefined; set: (v: Json | undefined) => void; required: boolean; attrs: { id: string } }) {
  const nil = value === undefined || (value.kind === "literal" && value.text === "null");
  const [typed, setTyped] = useState<string | null>(null); // an incomplete value
  switch (spec.kind) {
    case "boolean":
    case "enum": {
      const values: Json[] = spec.kind === "enum" ? (spec.values ?? []) : [{ kind: "literal", text: "true" }, { kind: "literal", text: "false" }];
      const chosen = value === undefined ? "" : write(value, 0);
      return (
        <select {...attrs} value={chosen} onChange={(ev) => set(values.find((v) => write(v, 0) === ev.currentTarget.value))}>
          {(!required || nil) && <option value="">not set</option>}
          {chosen && !values.some((v) => write(v, 0) === chosen) && <option value={chosen}>{chosen.slice(0, 60)}</option>}
          {values.map((v) => (
            <option key={write(v, 0)} value={write(v, 0)}>
              {v.kind === "string" ? v.value : spec.kind === "boolean" ? (write(v) === "true" ? "yes" : "no") : write(v, 0)}
            </option>
          ))}
        </select>
      );
    }
    case "string": {
      const shown = value?.kind === "string" ? value.value : nil ? "" : write(value, 0);
      const input = (s: string) => set(s === "" && !required ? undefined : { kind: "string", value: s });
      return spec.long || shown.includes("\n") ? <textarea {...attrs} rows={4} value={shown} onInput={(ev) => input(ev.currentTarget.value)} /> : <input {...attrs} type="text" autoComplete="off" value={shown} onInput={(ev) => input(ev.currentTarget.value)} />;
    }
    case "array": {
      const item = spec.item?.kind;
      const lines = value?.kind === "array" ? value.items.map((v) => (v.kind === "string" ? v.value : write(v, 0))).join("\n") : "";
      const input = (s: string) => {
        setTyped(s);
        const parts = s.split("\n").filter((l, i, all) => l !== "" || i < all.length - 1);
        set(parts.length === 0 && !required ? undefined : { kind: "array", items: parts.map((l) => (item === "string" ? { kind: "string", value: l } : (read(l).value ?? { kind: "string", value: l }))) });
      };
      const shown = typed !== null && typed.replace(/\n$/, "") === lines ? typed : lines;
      return <textarea {...attrs} rows={3} placeholder="One entry a line" spellcheck={false} value={shown} onInput={(ev) => input(ev.currentTarget.value)} />;
    }
    case "any": {
      const own = value === undefined ? "" : write(value);
      const kept = typed !== null && (typed === "" ? value === undefined : ((p) => p.problem !== undefined || (p.value && write(p.value)) === own)(read(typed)));
      return (
        <textarea
          {...attrs}
          class="json-text"
          rows={2}
          spellcheck={false}
          placeholder="JSON"
          value={kept && typed !== null ? typed : own}
          onInput={(ev) => {
            setTyped(ev.currentTarget.value);
            const r = read(ev.currentTarget.value);
            if (!r.problem) set(r.value);
          }}
        />
      );
    }
    default: {
      const shown = value?.kind === "number" ? value.text : nil ? "" : write(value, 0);
      const input = (s: string) => {
        const r = read(s);
        // An incomplete number, as "-", stays a text, which the check reports.
        set(s === "" ? undefined : r.value?.kind === "number" ? r.value : { kind: "string", value: s });
      };
      return <input {...attrs} type="text" inputMode={spec.kind === "integer" ? "numeric" : "decimal"} autoComplete="off" value={value?.kind === "string" ? value.value : shown} onInput={(ev) => input(ev.currentTarget.value)} />;
    }
  }
}
