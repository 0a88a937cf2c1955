// Modal dialogs, and messages that go away by themselves.
import { signal } from "@preact/signals";
import { useEffect, useId, useRef, useState } from "preact/hooks";
import { Problem } from "../lib/api";
import { Button, ProblemBox, type Children } from "./basic";

/** A modal dialog. The browser keeps the focus in it and gives it back. */
export function Dialog({ title, close, children, wide, class: cls }: { title: Children; close: () => void; children: Children; wide?: boolean; class?: string }) {
  const ref = useRef<HTMLDialogElement>(null);
  const beside = useRef(false);
  const labelled = useId();
  useEffect(() => {
    const d = ref.current;
    const opener = document.activeElement as HTMLElement | null;
    d?.showModal();
    // A form begins at its first field, not at the button that closes it.
    d?.querySelector<HTMLElement>(".dialog-body :is(input, select, textarea):not(:disabled)")?.focus();
    return () => {
      if (d?.open) d.close();
      if (opener?.isConnected) opener.focus();
    };
  }, []);
  return (
    <dialog
      ref={ref}
      class={[wide && "wide", cls].filter(Boolean).join(" ")}
      aria-labelledby={labelled}
      onCancel={(ev) => {
        ev.preventDefault();
        close();
      }}
      // Beside the box; a selection of text that ends there does not count.
      onPointerDown={(ev) => {
        beside.current = ev.target === ref.current;
      }}
      onClick={(ev) => {
        if (beside.current && ev.target === ref.current) close();
      }}
    >
      <div class="dialog-box">
        <header>
          <h2 id={labelled}>{title}</h2>
          <Button kind="plain" icon="close" label="Close" onClick={close} />
        </header>
        {children}
      </div>
    </dialog>
  );
}

/** A dialog with a form that sends one request. The error of the request is shown in it. */
export function FormDialog({ title, submit, close, verb, danger, children, wide, ready = true }: { title: Children; submit: () => Promise<unknown>; close: () => void; verb: string; danger?: boolean; children?: Children; wide?: boolean; ready?: boolean }) {
  const [busy, setBusy] = useState(false);
  const [problem, setProblem] = useState<Error | null>(null);
  const send = async (ev: Event) => {
    ev.preventDefault();
    if (busy || !ready) return;
    setBusy(true);
    setProblem(null);
    try {
      await submit();
      close();
    } catch (err) {
      if (!(err instanceof Problem)) console.error(err);
      setProblem(err as Error);
    } finally {
      setBusy(false);
    }
  };
  return (
    <Dialog title={title} close={close} wide={wide ?? false}>
      <form onSubmit={(ev) => void send(ev)}>
        <div class="dialog-body">
          {children}
          {problem && <ProblemBox problem={problem} />}
        </div>
        <footer>
          <Button onClick={close}>Close</Button>
          <Button type="submit" kind={danger ? "danger" : "primary"} disabled={busy || !ready} aria-busy={busy}>
            {verb}
          </Button>
        </footer>
      </form>
    </Dialog>
  );
}

/** A labelled control of a form. */
export function Field({ label, help, error, children }: { label: string; help?: Children; error?: string | undefined; children: (attrs: { id: string; "aria-describedby"?: string; "aria-invalid"?: boolean }) => Children }) {
  const id = useId();
  const described = help || error ? id + "-help" : undefined;
  const attrs: { id: string; "aria-describedby"?: string; "aria-invalid"?: boolean } = { id };
  if (described) attrs["aria-describedby"] = described;
  if (error) attrs["aria-invalid"] = true;
  return (
    <div class={"field" + (error ? " invalid" : "")}>
      <label for={id}>{label}</label>
      {children(attrs)}
      {described && (
        <p class="field-help" id={described}>
          {error ? <span class="field-error">{error}</span> : help}
        </p>
      )}
    </div>
  );
}

export function ReasonField({ value, set, required }: { value: string; set: (s: string) => void; required?: boolean }) {
  return (
    <Field label="Reason" help="It is kept in the audit with your name.">
      {(a) => <input {...a} type="text" value={value} maxLength={1000} required={required ?? false} autoComplete="off" onInput={(ev) => set(ev.currentTarget.value)} />}
    </Field>
  );
}

interface Toast {
  id: number;
  text: string;
  href?: string | undefined;
}

const toasts = signal<Toast[]>([]);
let lastToast = 0;

/** Tells that something was done, for a few seconds. */
export function toast(text: string, href?: string): void {
  const t: Toast = { id: ++lastToast, text, href };
  toasts.value = [...toasts.value, t];
  setTimeout(() => (toasts.value = toasts.value.filter((x) => x !== t)), 6000);
}

export function Toasts() {
  return (
    <div class="toasts" role="status" aria-live="polite">
      {toasts.value.map((t) => (
        <p key={t.id} class="toast">
          {t.text} {t.href && <a href={t.href}>Show</a>}
        </p>
      ))}
    </div>
  );
}

/** The open dialog of the page, if it was not opened by a component of its own. */
export const opened = signal<Children>(null);

export function open(dialog: Children): void {
  opened.value = dialog;
}

export function closeOpened(): void {
  opened.value = null;
}
