import { useEffect, useLayoutEffect, useMemo, useReducer, useRef, useState } from "preact/hooks";
import type { WireRecord } from "../../client/src/index.js";
import { useSpeech } from "../i18n.js";
import { memo } from "../ui/memo.js";

/** So many events are kept. */
const maxRows = 400;

interface Row {
  key: number;
  pane: number;
  who: string;
  record: WireRecord;
}

export interface Log {
  rows: readonly Row[];
  paused: boolean;
  add(pane: number, who: string, record: WireRecord): void;
  clear(): void;
  pause(on: boolean): void;
  subscribe(listener: () => void): () => void;
}

/** Events of both panes in the order in which they went by. */
export function useLog(): Log {
  return useMemo(() => {
    const listeners = new Set<() => void>();
    const tell = () => listeners.forEach((l) => l());
    let key = 0;
    const log: Log = {
      rows: [],
      paused: false,
      add(pane, who, record) {
        if (log.paused) return;
        log.rows = [...log.rows.slice(-maxRows + 1), { key: ++key, pane, who, record }];
        tell();
      },
      clear() {
        log.rows = [];
        tell();
      },
      pause(on) {
        log.paused = on;
        tell();
      },
      subscribe(listener) {
        listeners.add(listener);
        return () => listeners.delete(listener);
      },
    };
    return log;
  }, []);
}

const noisy = new Set(["typing", "presence", "unread"]);

export function EventLog({ log }: { log: Log }) {
  const { t } = useSpeech();
  const [, again] = useReducer((n: number, _: void) => n + 1, 0);
  const [filter, setFilter] = useState("");
  const [quiet, setQuiet] = useState(false);
  const end = useRef<HTMLOListElement>(null);
  const sticks = useRef(true);
  useEffect(() => log.subscribe(() => again()), [log]);

  const rows = log.rows.filter(({ who, record: r }) =>
    !(quiet && noisy.has(r.event)) && `${who} ${r.event} ${r.kind}`.toLowerCase().includes(filter.trim().toLowerCase()));
  // With the rows, before the next ones come: else it would seem to be scrolled away.
  useLayoutEffect(() => {
    if (sticks.current && end.current) end.current.scrollTop = end.current.scrollHeight;
  }, [rows.length, log.rows]);

  return (
    <section class="log" aria-label={t.dev.log}>
      <header class="log-bar">
        <h2>{t.dev.log}</h2>
        <input type="search" aria-label={t.dev.filter} placeholder={t.dev.filter} value={filter} onInput={(e) => setFilter(e.currentTarget.value)} />
        <label class="check"><input type="checkbox" checked={quiet} onChange={(e) => setQuiet(e.currentTarget.checked)} /> {t.dev.hideTyping}</label>
        <span class="grow" />
        <button type="button" class="chip" aria-pressed={log.paused} onClick={() => log.pause(!log.paused)}>{log.paused ? t.dev.resume : t.dev.pause}</button>
        <button type="button" class="chip" onClick={() => log.clear()}>{t.dev.clear}</button>
      </header>
      <ol
        class="log-rows"
        ref={end}
        tabIndex={0}
        aria-label={t.dev.log}
        onScroll={(e) => {
          const el = e.currentTarget;
          sticks.current = el.scrollHeight - el.scrollTop - el.clientHeight < 40;
        }}
      >
        {rows.length === 0 && <li class="nothing">{t.dev.empty}</li>}
        {rows.map((row) => <LogRow key={row.key} row={row} />)}
      </ol>
    </section>
  );
}

const arrows = { out: "→", in: "←", none: "·" } as const;

const LogRow = memo(({ row }: { row: Row }) => {
  const { t } = useSpeech();
  const { record: r } = row;
  const [open, setOpen] = useState(false);
  const where = { out: t.dev.toServer, in: t.dev.toClient, none: t.dev.local }[r.direction];
  const error = failed(r.payload);
  return (
    <li class={`log-row from-${row.pane} ${r.direction} ${r.kind}${error ? " bad" : ""}`} data-event={r.event} data-kind={r.kind}>
      <button type="button" aria-expanded={open} onClick={() => setOpen(!open)}>
        <time>{clock(r.at)}</time>
        <span class={`who who-${row.pane}`}><bdi>{row.who}</bdi></span>
        <span class="arrow" aria-hidden="true">{arrows[r.direction]}</span>
        <span class="only-read">{where}</span>
        <span class="event">{r.event}</span>
        {r.kind !== "event" && <span class="kind">{t.dev[r.kind]}</span>}
        <span class="summary">{summary(r.payload)}</span>
        {r.ms !== undefined && <span class="ms">{t.dev.ms(r.ms)}</span>}
      </button>
      {open && <pre>{JSON.stringify(r.payload ?? null, null, 2)}</pre>}
    </li>
  );
});

function clock(at: number): string {
  return new Date(at).toISOString().slice(11, 23);
}

function failed(payload: unknown): boolean {
  return typeof payload === "object" && payload !== null && (payload as { ok?: boolean }).ok === false;
}

/** The few fields that tell what it is about. */
function summary(payload: unknown): string {
  if (payload === undefined || payload === null) return "";
  if (typeof payload !== "object") return String(payload);
  const p = payload as Record<string, unknown>;
  const message = (p["message"] ?? p) as Record<string, unknown>;
  const error = p["error"] as { code?: string } | undefined;
  const parts: string[] = [];
  if (error?.code) parts.push(error.code);
  if (p["duplicate"] === true) parts.push("duplicate");
  for (const name of ["seq", "text", "lastReadSeq", "lastDeliveredSeq", "total", "online", "code"]) {
    const value = message[name];
    if (value !== undefined && typeof value !== "object") parts.push(name === "text" ? JSON.stringify(String(value).slice(0, 60)) : `${name} ${value}`);
  }
  for (const name of ["messages", "conversations", "members", "contacts", "presence", "receipts"]) {
    if (Array.isArray(p[name])) parts.push(`${(p[name] as unknown[]).length} ${name}`);
  }
  return parts.join(", ");
}
