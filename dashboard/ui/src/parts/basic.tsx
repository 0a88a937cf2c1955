// Small components that every page uses.
import type { ComponentChildren, JSX } from "preact";
import { useEffect, useId, useRef, useState } from "preact/hooks";
import { Problem } from "../lib/api";
import { copyText } from "../lib/clipboard";
import { firstLine, visible } from "../lib/format";
import { duration, exact, now, relative, timeText } from "../lib/time";
import { timeForm } from "../lib/prefs";
import { Icon, type IconName } from "./icons";

export type Children = ComponentChildren;

/** The heading of a page, with its buttons. The router moves the focus to it. */
export function PageHead({ title, sub, children }: { title: Children; sub?: Children; children?: Children }) {
  return (
    <header class="page-head">
      <div class="page-title">
        <h1 tabIndex={-1}>{title}</h1>
        {sub && <p class="sub">{sub}</p>}
      </div>
      {children && <div class="actions">{children}</div>}
    </header>
  );
}

/** A part of a page with a heading. */
export function Section({ title, aside, children, class: cls, id }: { title: Children; aside?: Children; children?: Children; class?: string; id?: string }) {
  const labelled = useId();
  return (
    <section class={"panel" + (cls ? " " + cls : "")} aria-labelledby={labelled} id={id}>
      <div class="panel-head">
        <h2 id={labelled}>{title}</h2>
        {aside && <div class="aside">{aside}</div>}
      </div>
      {children}
    </section>
  );
}

type ButtonProps = {
  children?: Children;
  icon?: IconName | undefined;
  kind?: "primary" | "danger" | "plain" | undefined;
  small?: boolean | undefined;
  label?: string | undefined; // for a button with an icon alone
  onClick?: ((ev: MouseEvent) => void) | undefined;
} & Omit<JSX.IntrinsicElements["button"], "icon" | "label" | "onClick">;

export function Button({ children, icon, kind, small, label, type = "button", class: cls, ...rest }: ButtonProps) {
  return (
    <button type={type} class={["button", kind, small && "small", !children && "only-icon", cls].filter(Boolean).join(" ")} aria-label={label} title={label} {...rest}>
      {icon && <Icon name={icon} />}
      {children && <span>{children}</span>}
    </button>
  );
}

/** A time in the user's form. Its title has the other forms. */
export function Time({ at }: { at: string | number | undefined | null }) {
  if (at === undefined || at === null || at === "") return <>–</>;
  const ms = typeof at === "number" ? at : Date.parse(at);
  if (Number.isNaN(ms)) return <>–</>;
  const other = timeForm.value === "exact" ? relative(ms, now.value) : exact(ms, "local");
  return (
    <time dateTime={new Date(ms).toISOString()} title={`${other}\n${exact(ms, "utc", true)}`}>
      {timeText(ms)}
    </time>
  );
}

/** The time that has passed since then, by the server's clock. Its title has the exact time. */
export function Age({ at }: { at: string | undefined }) {
  const ms = Date.parse(at ?? "");
  if (Number.isNaN(ms)) return <>–</>;
  return (
    <time dateTime={new Date(ms).toISOString()} title={exact(ms, "local") + "\n" + exact(ms, "utc")}>
      {duration(Math.max(0, Math.round((now.value - ms) / 1000) * 1000))}
    </time>
  );
}

const copied = "Copied";

/** A button that copies a text. */
export function Copy({ text, label = "Copy", children, small = true }: { text: string | (() => string); label?: string; children?: Children; small?: boolean }) {
  const [done, setDone] = useState("");
  const timer = useRef<ReturnType<typeof setTimeout>>();
  useEffect(() => () => clearTimeout(timer.current), []);
  const copy = async () => {
    const ok = await copyText(typeof text === "string" ? text : text());
    setDone(ok ? copied : "Copying is not allowed here");
    clearTimeout(timer.current);
    timer.current = setTimeout(() => setDone(""), 1500);
  };
  return (
    <Button small={small} kind="plain" icon={done === copied ? "check" : "copy"} label={done || label} onClick={() => void copy()}>
      {children}
    </Button>
  );
}

/** An id, shortened to its random end unless whole is set, with a button that copies it. */
export function ID({ id, to, whole }: { id: string; to?: string | undefined; whole?: boolean | undefined }) {
  const shown = whole || id.length < 20 ? id : id.slice(0, 4) + "…" + id.slice(-8);
  return (
    <span class="id">
      {to ? (
        <a href={to} title={id} class="mono">
          {shown}
        </a>
      ) : (
        <span class="mono" title={id}>
          {shown}
        </span>
      )}
      <Copy text={id} label={`Copy ${id}`} />
    </span>
  );
}

/** Text of users, whatever it contains. A name breaks after its punctuation. */
export function Text({ children, most }: { children: string | undefined; most?: number | undefined }) {
  const s = visible(most ? firstLine(children ?? "", most) : (children ?? ""));
  const parts = s.length > 12 && s.length < 200 && !/\s/.test(s) ? s.split(/(?<=[._/@:-])(?=\w)/) : [s];
  return <bdi class="user-text">{parts.length > 1 ? parts.flatMap((p, i) => (i ? [<wbr key={i} />, p] : [p])) : s}</bdi>;
}

const stateIcons: Record<string, IconName> = {
  pending: "hourglass",
  ready: "dot",
  running: "play",
  succeeded: "check",
  failed: "cross",
  cancelled: "stop",
  blocked: "hand",
  undoing: "undo",
};

/** A state as icon and word. */
export function State({ state, reason }: { state: string; reason?: string | undefined }) {
  return (
    <span class={"state " + state}>
      <Icon name={stateIcons[state] ?? "dot"} />
      <span>{state}</span>
      {reason && <span class="reason"> · {reason.replaceAll("_", " ")}</span>}
    </span>
  );
}

/** What to do when there is nothing to show. */
export function Empty({ title, children }: { title: string; children?: Children }) {
  return (
    <div class="empty">
      <p class="empty-title">{title}</p>
      {children && <div class="empty-help">{children}</div>}
    </div>
  );
}

/** An error of a request, with its details and a way on. */
export function ProblemBox({ problem, retry }: { problem: Error; retry?: (() => void) | undefined }) {
  const p = problem instanceof Problem ? problem : null;
  const title = p?.title ?? "The page has a defect.";
  return (
    <div class="problem" role="alert">
      <Icon name="warning" />
      <div>
        <p class="problem-title">
          {title}
          {p && p.status > 0 ? <span class="muted"> ({p.status})</span> : null}
        </p>
        {problem.message && problem.message !== title && (
          <p>
            <Text>{problem.message}</Text>
          </p>
        )}
        {p && p.errors.length > 0 && (
          <ul>
            {p.errors.map((e, i) => (
              <li key={i}>
                {(e.pointer || e.parameter) && <code>{e.pointer ?? e.parameter}</code>} <Text>{e.detail}</Text>
                {e.meant && (
                  <>
                    {" "}
                    Did you mean <code>{e.meant}</code>?
                  </>
                )}
              </li>
            ))}
          </ul>
        )}
        {retry && (
          <Button small icon="retry" onClick={retry}>
            Try again
          </Button>
        )}
      </div>
    </div>
  );
}

/** Rows of grey bars in the place of content that is on its way. */
export function Loading({ rows = 3 }: { rows?: number }) {
  return (
    <div class="loading" role="status">
      <span class="visually-hidden">Loading…</span>
      {Array.from({ length: rows }, (_, i) => (
        <div class="skeleton" key={i} aria-hidden="true" />
      ))}
    </div>
  );
}

export interface Tab {
  id: string;
  title: Children;
}

/** Tabs with the roles and keys of the ARIA pattern. The chosen one is a parameter of the URL. */
export function Tabs({ tabs, chosen, choose, label, children }: { tabs: Tab[]; chosen: string; choose: (id: string) => void; label: string; children: Children }) {
  const base = useId();
  const list = useRef<HTMLDivElement>(null);
  const key = (ev: KeyboardEvent) => {
    const at = tabs.findIndex((t) => t.id === chosen);
    const to = ev.key === "ArrowRight" ? at + 1 : ev.key === "ArrowLeft" ? at - 1 : ev.key === "Home" ? 0 : ev.key === "End" ? tabs.length - 1 : -2;
    if (to === -2) return;
    ev.preventDefault();
    const next = tabs[(to + tabs.length) % tabs.length];
    if (!next) return;
    choose(next.id);
    list.current?.querySelector<HTMLElement>(`[data-tab="${next.id}"]`)?.focus();
  };
  return (
    <>
      <div class="tabs" role="tablist" aria-label={label} ref={list} onKeyDown={key}>
        {tabs.map((t) => (
          <button type="button" role="tab" key={t.id} data-tab={t.id} id={`${base}-${t.id}`} aria-selected={t.id === chosen} aria-controls={`${base}-panel`} tabIndex={t.id === chosen ? 0 : -1} onClick={() => choose(t.id)}>
            {t.title}
          </button>
        ))}
      </div>
      <div role="tabpanel" id={`${base}-panel`} aria-labelledby={`${base}-${chosen}`} class="tab-panel" tabIndex={0}>
        {children}
      </div>
    </>
  );
}

/** Labels as chips; each links to the tasks that have it. */
export function Labels({ labels, to }: { labels: Record<string, string> | undefined; to?: (key: string, value: string) => string }) {
  const list = Object.entries(labels ?? {});
  if (list.length === 0) return null;
  return (
    <span class="labels">
      {list.slice(0, 50).map(([k, v]) => {
        const text = (
          <>
            <span class="muted">{visible(k)}</span> {firstLine(visible(v), 60)}
          </>
        );
        return to ? (
          <a class="chip" key={k} href={to(k, v)}>
            {text}
          </a>
        ) : (
          <span class="chip" key={k}>
            {text}
          </span>
        );
      })}
      {list.length > 50 && <span class="muted">and {list.length - 50} more</span>}
    </span>
  );
}

/** A list of names and values. Empty values are left out. */
export function Facts({ facts }: { facts: [string, Children][] }) {
  return (
    <dl class="facts">
      {facts
        .filter(([, v]) => v !== undefined && v !== null && v !== "" && v !== false)
        .map(([k, v]) => (
          <div key={k}>
            <dt>{k}</dt>
            <dd>{v}</dd>
          </div>
        ))}
    </dl>
  );
}
