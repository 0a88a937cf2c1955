// JSON whose numbers keep their own text: JavaScript's parser would change 9007199254740993 and 1.0.

export type Json =
  | { kind: "object"; entries: [string, Json][] }
  | { kind: "array"; items: Json[] }
  | { kind: "string"; value: string }
  | { kind: "number"; text: string }
  | { kind: "literal"; text: "true" | "false" | "null" };

export class JsonError extends Error {
  constructor(
    readonly at: number, // in characters
    text: string,
    what: string,
  ) {
    const before = text.slice(0, at).split("\n");
    super(`Line ${before.length}, column ${(before.at(-1)?.length ?? 0) + 1}: ${what}`);
  }
}

const numberForm = /-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?/y;
const stringForm = /"(?:[^"\\\u0000-\u001f]|\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4}))*"/y;
const maxDepth = 1000;

/** Reads a text. It throws a JsonError. */
export function parse(text: string): Json {
  let at = 0;
  const fail = (what: string): never => {
    throw new JsonError(at, text, what);
  };
  const space = () => {
    while (at < text.length && " \n\r\t".includes(text[at] ?? "")) at++;
  };
  const match = (form: RegExp): string | undefined => {
    form.lastIndex = at;
    const m = form.exec(text)?.[0];
    if (m !== undefined) at += m.length;
    return m;
  };
  const string = (): string => {
    const m = match(stringForm);
    return m === undefined ? fail(text[at] === '"' ? "the string does not end, or has a character that must be escaped" : "want a string in double quotes") : (JSON.parse(m) as string);
  };
  const value = (depth: number): Json => {
    if (depth > maxDepth) fail("too deep");
    space();
    const c = text[at];
    if (c === "{") {
      const entries: [string, Json][] = [];
      at++;
      space();
      if (text[at] === "}") at++;
      else
        for (;;) {
          space();
          const key = string();
          space();
          if (text[at] !== ":") fail("want a colon after the name");
          at++;
          entries.push([key, value(depth + 1)]);
          space();
          if (text[at++] === "}") break;
          if (text[at - 1] !== ",") (at--, fail("want a comma or }"));
        }
      return { kind: "object", entries };
    }
    if (c === "[") {
      const items: Json[] = [];
      at++;
      space();
      if (text[at] === "]") at++;
      else
        for (;;) {
          items.push(value(depth + 1));
          space();
          if (text[at++] === "]") break;
          if (text[at - 1] !== ",") (at--, fail("want a comma or ]"));
        }
      return { kind: "array", items };
    }
    if (c === '"') return { kind: "string", value: string() };
    for (const word of ["true", "false", "null"] as const) {
      if (text.startsWith(word, at)) {
        at += word.length;
        return { kind: "literal", text: word };
      }
    }
    const n = match(numberForm);
    return n !== undefined ? { kind: "number", text: n } : fail(c === undefined ? "a value is missing" : `${c} begins no value`);
  };
  const v = value(0);
  space();
  if (at < text.length) fail("text after the end of the value");
  return v;
}

/** Writes a value, with an indentation unless it is 0. */
export function write(v: Json, indent = 2, margin = ""): string {
  const inner = margin + " ".repeat(indent);
  const list = (open: string, parts: string[], close: string): string => {
    if (parts.length === 0) return open + close;
    return indent ? `${open}\n${parts.map((p) => inner + p).join(",\n")}\n${margin}${close}` : open + parts.join(",") + close;
  };
  switch (v.kind) {
    case "object":
      return list("{", v.entries.map(([k, e]) => JSON.stringify(k) + (indent ? ": " : ":") + write(e, indent, inner)), "}");
    case "array":
      return list("[", v.items.map((e) => write(e, indent, inner)), "]");
    case "string":
      return JSON.stringify(v.value);
    default:
      return v.text;
  }
}

/** The value of a field, or undefined. */
export const field = (v: Json | undefined, name: string): Json | undefined => (v?.kind === "object" ? v.entries.find(([k]) => k === name)?.[1] : undefined);

/** The value with a field set, or removed if it is undefined. */
export function withField(v: Json | undefined, name: string, to: Json | undefined): Json {
  const entries = v?.kind === "object" ? v.entries : [];
  const has = entries.some(([k]) => k === name);
  if (to === undefined) return { kind: "object", entries: entries.filter(([k]) => k !== name) };
  return { kind: "object", entries: has ? entries.map(([k, e]) => [k, k === name ? to : e]) : [...entries, [name, to]] };
}

/** A name or number as a part of a JSON pointer. */
export const pointerPart = (s: string | number): string => "/" + String(s).replaceAll("~", "~0").replaceAll("/", "~1");

export interface DiffLine {
  sign: " " | "-" | "+";
  text: string;
}

/** The lines of two texts: the longest common ones once, the others as removed and added. */
export function diff(from: string, to: string): DiffLine[] {
  const a = from.split("\n");
  const b = to.split("\n");
  let head = 0;
  while (head < a.length && head < b.length && a[head] === b[head]) head++;
  let tail = 0;
  while (tail < a.length - head && tail < b.length - head && a[a.length - 1 - tail] === b[b.length - 1 - tail]) tail++;
  const x = a.slice(head, a.length - tail);
  const y = b.slice(head, b.length - tail);
  const out: DiffLine[] = a.slice(0, head).map((text) => ({ sign: " ", text }));
  if (x.length * y.length > 4_000_000) {
    out.push(...x.map((text): DiffLine => ({ sign: "-", text })), ...y.map((text): DiffLine => ({ sign: "+", text })));
  } else {
    // common[i][j] is the number of common lines of x from i and y from j.
    const width = y.length + 1;
    const common = new Uint32Array((x.length + 1) * width);
    for (let i = x.length - 1; i >= 0; i--) {
      for (let j = y.length - 1; j >= 0; j--) {
        common[i * width + j] = x[i] === y[j] ? (common[(i + 1) * width + j + 1] ?? 0) + 1 : Math.max(common[(i + 1) * width + j] ?? 0, common[i * width + j + 1] ?? 0);
      }
    }
    for (let i = 0, j = 0; i < x.length || j < y.length; ) {
      if (i < x.length && j < y.length && x[i] === y[j]) {
        out.push({ sign: " ", text: x[i++] ?? "" });
        j++;
      } else if (j >= y.length || (i < x.length && (common[(i + 1) * width + j] ?? 0) >= (common[i * width + j + 1] ?? 0))) out.push({ sign: "-", text: x[i++] ?? "" });
      else out.push({ sign: "+", text: y[j++] ?? "" });
    }
  }
  out.push(...a.slice(a.length - tail).map((text): DiffLine => ({ sign: " ", text })));
  return out;
}
