// The search field of tasks: the query as text, with completions, and its terms as chips.
import { useEffect, useId, useRef, useState } from "preact/hooks";
import type { Problem } from "../lib/api";
import { qualifiers, quoted, states, statesOf, terms, without, withStates } from "../lib/query";
import { Button, State } from "./basic";
import { Icon } from "./icons";
import { knownQueues, knownTypes, loadNames } from "./palette";

interface Suggestion {
  text: string; // replaces the last term
  help: string;
}

function suggest(text: string, labels: string[]): Suggestion[] {
  const last = /\s$/.test(text) || text === "" ? "" : (terms(text).at(-1) ?? "");
  const values = (prefix: string, list: string[], help: string): Suggestion[] => {
    const begun = last.slice(prefix.length);
    const at = begun.lastIndexOf(",") + 1;
    const want = begun.slice(at).replaceAll('"', "").toLowerCase();
    return list.filter((v) => v.toLowerCase().includes(want) && v.toLowerCase() !== want).slice(0, 8).map((v) => ({ text: prefix + begun.slice(0, at) + quoted(v) + " ", help }));
  };
  if (last.startsWith("state:")) return values("state:", states, "state");
  if (last.startsWith("type:")) return values("type:", knownTypes.value, "type");
  if (last.startsWith("queue:")) return values("queue:", knownQueues.value, "queue");
  if (last.startsWith("label.")) return labels.filter((l) => ("label." + l).startsWith(last) && "label." + l !== last).slice(0, 8).map((l) => ({ text: "label." + l + " ", help: "label" }));
  if (last === "") return [];
  return qualifiers.filter(([w]) => w.startsWith(last.toLowerCase()) && w !== last).map(([w, help]) => ({ text: w, help }));
}

export function QueryBox({ q, set, problem, labels }: { q: string; set: (q: string) => void; problem: Problem | null; labels: string[] }) {
  const [text, setText] = useState(q);
  const [open, setOpen] = useState(false);
  const [at, setAt] = useState(-1);
  const id = useId();
  const input = useRef<HTMLInputElement>(null);
  useEffect(() => {
    setText(q);
  }, [q]);
  const list = open ? suggest(text, labels) : [];
  const chosen = Math.min(at, list.length - 1);
  const take = (s: Suggestion) => {
    const before = /\s$/.test(text) ? terms(text) : terms(text).slice(0, -1);
    const next = [...before, s.text.trim()].join(" ");
    const whole = s.text.endsWith(" ");
    setText(whole ? next + " " : next);
    setAt(-1);
    if (whole) set(next);
    input.current?.focus();
  };
  const key = (ev: KeyboardEvent) => {
    if ((ev.key === "ArrowDown" || ev.key === "ArrowUp") && list.length > 0) {
      ev.preventDefault();
      setAt((chosen + (ev.key === "ArrowDown" ? 1 : -1) + list.length) % list.length);
    } else if (ev.key === "Enter") {
      ev.preventDefault();
      const s = list[chosen];
      if (s && chosen >= 0) take(s);
      else {
        set(text.trim());
        setOpen(false);
      }
    } else if (ev.key === "Escape") {
      if (list.length > 0) setOpen(false);
      else if (text !== q) setText(q);
      else input.current?.blur();
      ev.stopPropagation();
    }
  };
  const picked = statesOf(q);
  const mistake = problem?.errors.find((e) => e.column !== undefined) ?? problem?.errors[0];
  return (
    <search class="querybox">
      <div class="query-line">
        <Icon name="search" />
        <input
          ref={input}
          type="search"
          role="combobox"
          aria-label="Query"
          aria-expanded={list.length > 0}
          aria-controls={id}
          aria-autocomplete="list"
          aria-activedescendant={chosen >= 0 ? `${id}-${chosen}` : undefined}
          aria-invalid={!!problem}
          aria-describedby={problem ? id + "-problem" : undefined}
          placeholder='state:failed type:acme.billing.* label.team=pay "no such card"'
          value={text}
          spellcheck={false}
          autoComplete="off"
          onFocus={() => {
            setOpen(true);
            void loadNames();
          }}
          onBlur={() => setTimeout(() => setOpen(false), 150)}
          onInput={(ev) => {
            setText(ev.currentTarget.value);
            setOpen(true);
            setAt(-1);
            if (ev.currentTarget.value === "") set("");
          }}
          onKeyDown={key}
        />
        <Button onClick={() => set(text.trim())}>Search</Button>
        {list.length > 0 && (
          <ul role="listbox" id={id} class="suggestions" aria-label="Completions">
            {list.map((s, i) => (
              <li role="option" id={`${id}-${i}`} key={s.text} aria-selected={i === chosen} onMouseDown={(ev) => (ev.preventDefault(), take(s))}>
                <code>{s.text.trim()}</code> <span class="muted">{s.help}</span>
              </li>
            ))}
          </ul>
        )}
      </div>
      {problem && (
        <p class="field-error" id={id + "-problem"} role="alert">
          {mistake?.detail ?? problem.message}
          {mistake?.column !== undefined && ` (column ${mistake.parameter === "topic" ? mistake.column - 6 : mistake.column})`}
          {mistake?.meant && (
            <>
              ; did you mean <code>{mistake.meant}</code>?
            </>
          )}
        </p>
      )}
      <div class="chips">
        <div class="state-filter" role="group" aria-label="States">
          {states.map((s) => (
            <button type="button" key={s} class="chip" aria-pressed={picked.includes(s)} onClick={() => set(withStates(q, picked.includes(s) ? picked.filter((x) => x !== s) : [...picked, s]))}>
              <State state={s} />
            </button>
          ))}
        </div>
        {terms(q).map((t, i) =>
          t.startsWith("state:") ? null : (
            <button type="button" class="chip term" key={t} onClick={() => set(without(q, i))} aria-label={`Remove ${t}`} title="Remove this term">
              <span>{t}</span>
              <Icon name="close" />
            </button>
          ),
        )}
        {q !== "" && (
          <Button small kind="plain" onClick={() => set("")}>
            Clear
          </Button>
        )}
      </div>
    </search>
  );
}
