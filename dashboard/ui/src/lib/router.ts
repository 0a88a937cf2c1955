// Paths below the dashboard's root. The URL is the state: filters, tabs and selections are its parameters.
import { computed, signal } from "@preact/signals";
import { root } from "./config";

const read = () => ({ path: decodeURI(location.pathname).startsWith(decodeURI(root.pathname)) ? location.pathname.slice(root.pathname.length) : "", search: location.search, hash: location.hash });

const current = signal(read());

/** The path without the root and without a slash before it: "tasks/01H…". */
export const path = computed(() => current.value.path);
export const segments = computed(() => current.value.path.split("/").filter(Boolean).map(decodeURIComponent));
export const params = computed(() => new URLSearchParams(current.value.search));

/** The URL of a page: href("tasks", {state: "failed"}). */
export function href(page: string, query: Record<string, string | undefined> = {}): string {
  const url = new URL(page, root);
  for (const [name, value] of Object.entries(query)) if (value) url.searchParams.set(name, value);
  return url.pathname + url.search;
}

export const taskHref = (id: string, query: Record<string, string | undefined> = {}): string => href("tasks/" + encodeURIComponent(id), query);
export const jobHref = (id: string, query: Record<string, string | undefined> = {}): string => href("jobs/" + encodeURIComponent(id), query);

/** Goes to a URL of the dashboard. The focus moves to the new page's heading, unless the page stays. */
export function go(url: string, opts: { replace?: boolean } = {}): void {
  const before = path.peek();
  if (opts.replace) history.replaceState(null, "", url);
  else history.pushState(null, "", url);
  current.value = read();
  if (path.peek() !== before) arrive();
}

/** Changes parameters of the present page. A value "" removes the parameter. */
export function setParams(changes: Record<string, string | undefined>, opts: { replace?: boolean } = { replace: true }): void {
  const next = new URLSearchParams(location.search);
  for (const [name, value] of Object.entries(changes)) {
    if (value) next.set(name, value);
    else next.delete(name);
  }
  const search = next.toString();
  go(location.pathname + (search ? "?" + search : ""), opts);
}

/** Moves the focus to the heading of the new page, as soon as there is one. */
function arrive(): void {
  const before = document.querySelector("main h1");
  let frames = 0;
  const look = () => {
    const title = document.querySelector<HTMLElement>("main h1");
    if ((!title || title === before) && ++frames < 10) {
      requestAnimationFrame(look);
      return;
    }
    window.scrollTo(0, 0);
    title?.focus({ preventScroll: true });
  };
  requestAnimationFrame(look);
}

/** Makes links and the browser's buttons change the page without a reload. */
export function startRouter(): void {
  window.addEventListener("popstate", () => {
    current.value = read();
  });
  document.addEventListener("click", (ev) => {
    if (ev.defaultPrevented || ev.button !== 0 || ev.metaKey || ev.ctrlKey || ev.shiftKey || ev.altKey) return;
    const a = (ev.target as Element | null)?.closest("a");
    if (!a?.href || a.target || a.hasAttribute("download")) return;
    const url = new URL(a.href);
    if (url.origin !== root.origin || !url.pathname.startsWith(root.pathname)) return;
    const below = url.pathname.slice(root.pathname.length);
    if (below.startsWith("v1/") || below.startsWith("assets/") || /^[^/]*\./.test(below)) return;
    if (url.pathname === location.pathname && url.search === location.search && url.hash) return;
    ev.preventDefault();
    go(url.pathname + url.search + url.hash);
  });
}
