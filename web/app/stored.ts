/** A setting that lives in localStorage, for all tabs of this browser. */
export interface Stored<T> {
  get(): T;
  set(value: T): void;
  subscribe(listener: () => void): () => void;
}

export function stored<T extends string>(key: string, read: (value: string | null) => T): Stored<T> {
  const listeners = new Set<() => void>();
  const tell = () => listeners.forEach((l) => l());
  let value = read(safely(() => localStorage.getItem(key)));
  addEventListener("storage", (e) => {
    if (e.key !== key) return;
    value = read(e.newValue);
    tell();
  });
  return {
    get: () => value,
    set(next) {
      value = next;
      safely(() => localStorage.setItem(key, next));
      tell();
    },
    subscribe(listener) {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
  };
}

/** Storage can be full or forbidden; the page works without it, but for remembering. */
export function safely<T>(use: () => T): T | null {
  try {
    return use();
  } catch {
    return null;
  }
}
