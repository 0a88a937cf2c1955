// A button that opens a list of actions.
import { useEffect, useId, useRef, useState } from "preact/hooks";
import { copyText } from "../lib/clipboard";
import { Button } from "./basic";
import { toast } from "./dialog";
import { Icon, type IconName } from "./icons";

export interface MenuItem {
  text: string;
  icon?: IconName | undefined;
  danger?: boolean | undefined;
  href?: string | undefined; // a link to another place
  run?: (() => void) | undefined;
}

/** A menu that copies the page as a link, a command or a request. */
export function CopyMenu({ command, request, more = [] }: { command: string; request: string; more?: MenuItem[] }) {
  const copy = (text: string) => () => void copyText(text).then((ok) => toast(ok ? "Copied." : "The browser refuses to copy: select the text by hand."));
  return (
    <Menu
      label="Copy and open"
      icon="link"
      items={[{ text: "Copy as link", icon: "link", run: copy(location.href) }, { text: "Copy as command", icon: "copy", run: copy(command) }, { text: "Copy as curl", icon: "copy", run: copy(request) }, ...more]}
    />
  );
}

export function Menu({ label, icon = "more", text, items }: { label: string; icon?: IconName; text?: string; items: MenuItem[] }) {
  const [open, setOpen] = useState(false);
  const id = useId();
  const box = useRef<HTMLDivElement>(null);
  const list = () => [...(box.current?.querySelectorAll<HTMLElement>("[role=menuitem]") ?? [])];
  useEffect(() => {
    if (!open) return;
    list()[0]?.focus();
    const away = (ev: Event) => {
      if (!box.current?.contains(ev.target as Node)) setOpen(false);
    };
    document.addEventListener("pointerdown", away);
    return () => document.removeEventListener("pointerdown", away);
  }, [open]);
  const close = () => {
    setOpen(false);
    box.current?.querySelector<HTMLElement>("button")?.focus();
  };
  const key = (ev: KeyboardEvent) => {
    if (!open) return;
    const all = list();
    const at = all.indexOf(document.activeElement as HTMLElement);
    const to = ev.key === "ArrowDown" ? at + 1 : ev.key === "ArrowUp" ? at - 1 : ev.key === "Home" ? 0 : ev.key === "End" ? all.length - 1 : NaN;
    if (ev.key === "Escape") close();
    else if (ev.key === "Tab") return setOpen(false);
    else if (Number.isNaN(to)) return;
    else all[(to + all.length) % all.length]?.focus();
    ev.preventDefault();
    ev.stopPropagation();
  };
  if (items.length === 0) return null;
  return (
    <div class="menu-box" ref={box} onKeyDown={key}>
      <Button icon={icon} label={label} aria-haspopup="menu" aria-expanded={open} aria-controls={open ? id : undefined} onClick={() => setOpen(!open)}>
        {text}
      </Button>
      {open && (
        <ul role="menu" id={id} class="menu-list" aria-label={label}>
          {items.map((m) => (
            <li role="none" key={m.text}>
              {m.href ? (
                <a role="menuitem" tabIndex={-1} href={m.href} rel="noreferrer" target={m.run ? undefined : "_blank"}>
                  {m.icon && <Icon name={m.icon} />}
                  {m.text}
                </a>
              ) : (
                <button
                  type="button"
                  role="menuitem"
                  tabIndex={-1}
                  class={m.danger ? "danger" : undefined}
                  onClick={() => {
                    close();
                    m.run?.();
                  }}
                >
                  {m.icon && <Icon name={m.icon} />}
                  {m.text}
                </button>
              )}
            </li>
          ))}
        </ul>
      )}
    </div>
  );
}
