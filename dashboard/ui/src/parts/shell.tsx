// What surrounds every page: navigation, banners, the login, settings.
import type { ComponentType } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import { announce } from "../lib/announce";
import { post, Problem, signedOut } from "../lib/api";
import { config } from "../lib/config";
import { useKeys, listed } from "../lib/keys";
import { connection, reconnect, retryNow, useTopic } from "../lib/live";
import { shortcuts, theme, timeForm, timeZone } from "../lib/prefs";
import { href, segments } from "../lib/router";
import { features, linkRefused, login, me, namespace, startProblem } from "../lib/session";
import { duration, now, clockOffset } from "../lib/time";
import { Button, ProblemBox, type Children } from "./basic";
import { Dialog, Field, open, closeOpened } from "./dialog";
import { Icon, type IconName } from "./icons";
import { openPalette } from "./palette";

export interface Page {
  name: string; // the first segment of the path
  title: string;
  icon: IconName;
  key?: string; // after g
  list: ComponentType;
  one?: ComponentType<{ id: string }>; // of an object below it
  feature?: string; // of /v1/features
  group: "work" | "system";
}

export function useNavKeys(pages: Page[], go: (url: string) => void): void {
  useKeys([
    ...pages.filter((p) => p.key).map((p) => ({ keys: "g " + p.key, text: "Go to " + p.title.toLowerCase(), group: "go", run: () => go(href(p.name)) })),
    { keys: "?", text: "List the shortcuts", group: "everywhere", run: () => open(<Shortcuts />) },
    { keys: "/", text: "Search", group: "everywhere", run: () => (document.querySelector<HTMLInputElement>("main input[type=search]") ? document.querySelector<HTMLInputElement>("main input[type=search]")?.focus() : openPalette()) },
  ]);
}

export function Nav({ pages, close }: { pages: Page[]; close?: (() => void) | undefined }) {
  const inbox = useTopic("inbox");
  const here = segments.value[0] ?? "";
  const item = (p: Page) => (
    <li key={p.name}>
      <a href={href(p.name)} aria-current={here === p.name ? "page" : undefined} onClick={close}>
        <Icon name={p.icon} />
        <span>{p.title}</span>
        {p.name === "inbox" && inbox.rows.length > 0 && (
          <span class="badge" aria-label={`${inbox.rows.length} wait for a person`}>
            {inbox.rows.length}
            {inbox.next || inbox.leftOut ? "+" : ""}
          </span>
        )}
      </a>
    </li>
  );
  return (
    <nav aria-label="Pages">
      <ul>{pages.filter((p) => p.group === "work").map(item)}</ul>
      <ul>{pages.filter((p) => p.group === "system").map(item)}</ul>
    </nav>
  );
}

export function Brand() {
  return (
    <a class="brand" href={href("")}>
      <svg width="22" height="22" viewBox="0 0 32 32" aria-hidden="true">
        <rect width="32" height="32" rx="7" class="brand-back" />
        <path d="M6 9l5 14 5-11 5 11 5-14" fill="none" stroke="#fff" stroke-width="3" stroke-linecap="round" stroke-linejoin="round" />
      </svg>
      <span>
        <strong>{config.title || "Weaver"}</strong>
        {namespace.value && namespace.value !== "default" && <small>{namespace.value}</small>}
      </span>
    </a>
  );
}

/** The user, the settings, and how the data arrives. */
export function Foot() {
  const c = connection.value;
  const words: Record<string, string> = { connecting: "Connecting", live: "Live", polling: "Every 3 s", lost: "No connection", refused: "Refused" };
  return (
    <div class="foot">
      <p class={"link-state " + c.mode}>
        <span class="lamp" aria-hidden="true" />
        {words[c.mode]}
      </p>
      <div class="foot-row">
        <Button kind="plain" small onClick={() => open(<Settings />)} icon="sun">
          {me.value?.name ?? "Settings"}
        </Button>
      </div>
    </div>
  );
}

export function Settings() {
  const choice = (label: string, value: string, set: (v: string) => void, options: [string, string][]) => (
    <Field label={label}>
      {(a) => (
        <select {...a} value={value} onChange={(ev) => set(ev.currentTarget.value)}>
          {options.map(([v, text]) => (
            <option value={v} key={v}>
              {text}
            </option>
          ))}
        </select>
      )}
    </Field>
  );
  const logout = async () => {
    await post("logout", {}).catch(() => undefined);
    closeOpened();
    signedOut.value = true;
    reconnect(); // the stream had the credentials of the login
  };
  return (
    <Dialog title="Settings of this browser" close={closeOpened}>
      <div class="dialog-body">
        {choice("Colours", theme.value, (v) => (theme.value = v as "system"), [["system", "As the system"], ["light", "Light"], ["dark", "Dark"]])}
        {choice("Times", timeForm.value, (v) => (timeForm.value = v as "exact"), [["relative", "Relative: 3 min ago"], ["exact", "Exact: 2026-11-28 03:02:41"]])}
        {choice("Time zone", timeZone.value, (v) => (timeZone.value = v as "utc"), [["local", "Of this machine"], ["utc", "UTC"]])}
        {choice("Shortcuts of a single key", shortcuts.value, (v) => (shortcuts.value = v as "off"), [["on", "On"], ["off", "Off"]])}
        <p class="muted">
          {me.value ? `Signed in as ${me.value.name}: ${me.value.access.join(", ") || "no access"}.` : ""} {config.read_only && "This dashboard is read-only."}
        </p>
      </div>
      <footer>
        <Button onClick={() => open(<Shortcuts />)}>Shortcuts</Button>
        {features.value["login"] && <Button onClick={() => void logout()}>Sign out</Button>}
        <Button kind="primary" onClick={closeOpened}>
          Done
        </Button>
      </footer>
    </Dialog>
  );
}

export function Shortcuts() {
  const seen = new Set<string>();
  const list = listed.value.filter((s) => !seen.has(s.keys) && seen.add(s.keys));
  return (
    <Dialog title="Shortcuts" close={closeOpened}>
      <div class="dialog-body">
        {shortcuts.value === "off" && <p>Shortcuts of a single key are switched off in the settings.</p>}
        <dl class="keys">
          {[{ keys: "Ctrl K", text: "Open the palette" }, ...list].map((s) => (
            <div key={s.keys}>
              <dt>
                {s.keys.split(" ").map((k) => (
                  <kbd key={k}>{k}</kbd>
                ))}
              </dt>
              <dd>{s.text}</dd>
            </div>
          ))}
        </dl>
      </div>
    </Dialog>
  );
}

/** Bars above the page: a lost connection, another clock, a newer version. */
export function Banners({ newer }: { newer: boolean }) {
  const c = connection.value;
  const was = useRef(false);
  const here = now.value - clockOffset.value; // this machine's clock
  const lost = c.mode === "lost" || c.mode === "refused";
  useEffect(() => {
    if (lost) announce("The connection is lost.");
    else if (c.mode === "live" && was.current) announce("The connection is back.");
    was.current = lost;
  }, [lost]);
  return (
    <div class="banners">
      {lost && c.status !== 401 && (
        <p class="banner bad">
          <Icon name="warning" />
          <span>
            {c.mode === "lost" ? (c.status ? `The server answers ${c.status}` : "The connection is lost") : `The server refuses live data (${c.status})`}
            {c.at > 0 && `; the data is ${duration(Math.max(0, Math.round((here - c.at) / 1000) * 1000))} old`}.{c.detail && ` ${c.detail}`}
          </span>
          <Button small onClick={retryNow}>
            Try now
          </Button>
        </p>
      )}
      {newer && (
        <p class="banner">
          <Icon name="about" />
          <span>The server has a newer version of this page.</span>
          <Button small onClick={() => location.reload()}>
            Reload
          </Button>
        </p>
      )}
      {Math.abs(clockOffset.value) > 60_000 && (
        <p class="banner">
          <Icon name="schedules" />
          <span>
            The clock of this machine is {duration(Math.abs(clockOffset.value))} {clockOffset.value > 0 ? "behind" : "ahead of"} the server's. Ages are by the server's clock.
          </span>
        </p>
      )}
    </div>
  );
}

/** The page of a user without credentials. */
export function Login() {
  const [token, setToken] = useState("");
  const [busy, setBusy] = useState(false);
  const [problem, setProblem] = useState<Error | null>(null);
  const input = useRef<HTMLInputElement>(null);
  useEffect(() => input.current?.focus(), []);
  const help = (
    <>
      <code>weaver token new NAME --access read</code> makes one. <code>weaver dev</code> prints a link with one.
    </>
  );
  const send = async (ev: Event) => {
    ev.preventDefault();
    setBusy(true);
    setProblem(null);
    try {
      await login(token.trim());
      reconnect();
    } catch (err) {
      setProblem(err instanceof Problem && (err.status === 404 || err.status === 405) ? new Error("This server has no login with tokens: sign in where your service has you sign in, then reload the page.") : (err as Error));
    } finally {
      setBusy(false);
    }
  };
  return (
    <main class="login" id="main">
      <form onSubmit={(ev) => void send(ev)}>
        <Brand />
        <h1 tabIndex={-1}>Sign in</h1>
        <Field label="Token" help={help}>
          {(a) => <input {...a} ref={input} type="password" name="token" autoComplete="current-password" required value={token} onInput={(ev) => setToken(ev.currentTarget.value)} />}
        </Field>
        {linkRefused.value && !problem && <ProblemBox problem={new Problem(401, "The link has an old token.", "weaver dev makes a new token each time it starts: open the link that it printed last.")} />}
        {problem && <ProblemBox problem={problem} />}
        <Button type="submit" kind="primary" disabled={busy || token.trim() === ""}>
          Sign in
        </Button>
      </form>
    </main>
  );
}

/** The page while the server cannot say who the user is. */
export function NotStarted({ retry }: { retry: () => void }) {
  const p = startProblem.value;
  return (
    <main class="login" id="main">
      <div>
        <Brand />
        <h1 tabIndex={-1}>{p ? "The server cannot be used now" : "Connecting"}</h1>
        {p && <ProblemBox problem={p} retry={retry} />}
      </div>
    </main>
  );
}

/** The navigation of narrow screens. */
export function MenuDialog({ children }: { children: Children }) {
  return (
    <Dialog title="Menu" close={closeOpened} class="menu">
      {children}
    </Dialog>
  );
}
