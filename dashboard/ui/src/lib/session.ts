// Who the user is, and what the server can do.
import { computed, signal } from "@preact/signals";
import { get, post, Problem, signedOut } from "./api";
import { config } from "./config";

export type Access = "submit" | "read" | "payloads" | "operate";

export interface Me {
  name: string;
  access: Access[];
}

export const me = signal<Me | null>(null);
export const features = signal<Record<string, boolean>>({});
export const namespace = signal("");
export const startProblem = signal<Problem | null>(null);
export const loaded = signal(false);
export const linkRefused = signal(false); // the token of the page's address

/** Reads the user and the features. After it either `loaded`, `signedOut` or `startProblem` is set. */
export async function loadSession(): Promise<void> {
  try {
    const [who, f] = await Promise.all([get<Me>("v1/me"), get<{ namespace: string; features: Record<string, boolean> }>("v1/features")]);
    me.value = who;
    features.value = f.features;
    namespace.value = f.namespace;
    startProblem.value = null;
    signedOut.value = false;
    loaded.value = true;
  } catch (err) {
    if (err instanceof Problem) {
      if (err.status !== 401) startProblem.value = err;
      return;
    }
    throw err;
  }
}

/** Exchanges a token for the browser's cookie. */
export async function login(token: string): Promise<void> {
  await post<Me>("login", { token });
  signedOut.value = false;
  await loadSession();
}

/** Signs in with a token of the URL's fragment (#token=…), and removes it from the URL and the history. */
export async function loginFromURL(): Promise<void> {
  const token = new URLSearchParams(location.hash.slice(1)).get("token");
  if (!token) return;
  history.replaceState(history.state, "", location.pathname + location.search);
  await login(token).catch((err: unknown) => {
    if (!(err instanceof Problem)) throw err;
    linkRefused.value = err.status === 401;
  });
}

/** Whether the user may do what needs the accesses. Buttons for anything else are left out. */
export function may(...access: Access[]): boolean {
  if (config.read_only && access.some((a) => a === "submit" || a === "operate")) return false;
  return access.every((a) => me.value?.access.includes(a) ?? false);
}

export const mayOperate = computed(() => may("read", "operate"));
export const mayReadValues = computed(() => may("read", "payloads"));
