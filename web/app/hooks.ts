import { useEffect, useReducer, useRef, useState } from "preact/hooks";
import type { ChatClient } from "../client/src/index.js";
import type { Stored } from "./stored.js";

/** Renders again whenever the client's state has changed. */
export function useClient(client: ChatClient): void {
  const [, again] = useReducer((n: number, _: void) => n + 1, 0);
  useEffect(() => client.events.on("change", () => again()), [client]);
}

export function useStored<T>(setting: Stored<T>): T {
  const [value, set] = useState(setting.get());
  useEffect(() => setting.subscribe(() => set(setting.get())), [setting]);
  return value;
}

/** The time, renewed each minute: for "5 min ago" and for midnight. */
export function useNow(): Date {
  const [now, set] = useState(() => new Date());
  useEffect(() => {
    const timer = setInterval(() => set(new Date()), 60_000);
    return () => clearInterval(timer);
  }, []);
  return now;
}

/** A function that stays the same and always does the latest. */
export function useStable<A extends unknown[], R>(f: (...args: A) => R): (...args: A) => R {
  const latest = useRef(f);
  latest.current = f;
  return useRef((...args: A) => latest.current(...args)).current;
}
