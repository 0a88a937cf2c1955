// Data of one request, for what no topic has.
import { useCallback, useEffect, useRef, useState } from "preact/hooks";
import { Problem } from "./api";

export interface Loaded<T> {
  data: T | undefined; // also while it is loaded again
  problem: Error | null;
  loading: boolean;
  reload: () => void;
}

/** Loads data when the page appears and whenever key changes. A newer request discards the older one's answer. */
export function useLoad<T>(key: string, load: (signal: AbortSignal) => Promise<T>, every = 0): Loaded<T> {
  const [state, set] = useState<{ key: string; data: T | undefined; problem: Error | null; loading: boolean }>({ key, data: undefined, problem: null, loading: true });
  const [turn, setTurn] = useState(0);
  const fn = useRef(load);
  fn.current = load;
  useEffect(() => {
    const abort = new AbortController();
    set((s) => ({ ...s, key, data: s.key === key ? s.data : undefined, loading: true }));
    fn.current(abort.signal).then(
      (data) => {
        if (!abort.signal.aborted) set({ key, data, problem: null, loading: false });
      },
      (err: unknown) => {
        if (abort.signal.aborted) return;
        if (!(err instanceof Problem)) console.error(err);
        set((s) => ({ ...s, key, problem: err as Error, loading: false }));
      },
    );
    return () => abort.abort();
  }, [key, turn]);
  const reload = useCallback(() => setTurn((n) => n + 1), []);
  useEffect(() => {
    if (every <= 0) return;
    const timer = setInterval(() => {
      if (!document.hidden) reload();
    }, every);
    return () => clearInterval(timer);
  }, [every, reload]);
  const stale = state.key !== key;
  return { data: stale ? undefined : state.data, problem: stale ? null : state.problem, loading: stale || state.loading, reload };
}

/** Loads again when version changes, at most once a second. */
export function useReload(reload: () => void, version: string): void {
  const last = useRef({ version, at: 0 });
  useEffect(() => {
    if (last.current.version === version) return;
    const timer = setTimeout(
      () => {
        last.current = { version, at: Date.now() };
        reload();
      },
      Math.max(0, last.current.at + 1000 - Date.now()),
    );
    return () => clearTimeout(timer);
  }, [version, reload]);
}
