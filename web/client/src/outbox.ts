/**
 * Messages on their way out. Each is stored before it is sent, keeps its
 * clientMsgId over every retry, reload and restart, and leaves the outbox only when
 * the gateway has it or the user discards it. Within a conversation one message is
 * in flight at a time, so that the order of typing is the order of seqs even when a
 * try fails; conversations don't wait for each other.
 */
import { ChatError } from "./errors.js";
import type { OutboxEntry, OutboxStore } from "./outbox-store.js";
import type { Message } from "./types.js";

export interface OutboxOptions {
  store: OutboxStore;
  /** Sends once. */
  send: (entry: OutboxEntry) => Promise<Message>;
  /** The gateway has it. */
  sent: (message: Message, entry: OutboxEntry) => void;
  changed: (conversationId: string) => void;
  /** Storing failed: the entry lives as long as this page. */
  storeFailed: (error: unknown) => void;
  random?: () => number;
  now?: () => number;
}

const firstBackoffMs = 500;
const maxBackoffMs = 30_000;

export interface NewEntry {
  conversationId: string;
  text: string;
  replyToSeq?: number;
}

export class Outbox {
  #entries: OutboxEntry[] = [];
  #lists = new Map<string, readonly OutboxEntry[]>();
  #inFlight = new Map<string, string>(); // conversation -> entry
  #timers = new Map<string, ReturnType<typeof setTimeout>>(); // conversation -> its next try
  #failures = new Map<string, number>(); // conversation -> tries that failed in a row
  #open = false;
  #userId: string | undefined;
  #lastOrder = 0;
  readonly #options: OutboxOptions;

  constructor(options: OutboxOptions) {
    this.#options = options;
  }

  /** Takes up what the user's last pages left. */
  async load(userId: string): Promise<void> {
    if (this.#userId === userId) return;
    this.#userId = userId;
    let left: OutboxEntry[] = [];
    try {
      left = await this.#options.store.load(userId);
    } catch (e) {
      this.#options.storeFailed(e);
    }
    const known = new Set(this.#entries.map((e) => e.id));
    this.#entries = [...left.filter((e) => !known.has(e.id)), ...this.#entries].sort((a, b) => a.order - b.order);
    for (const id of new Set(this.#entries.map((e) => e.conversationId))) this.#update(id);
    this.#pumpAll();
  }

  /** What waits or has failed in a conversation, in order. The same array until it changes. */
  in(conversationId: string): readonly OutboxEntry[] {
    return this.#lists.get(conversationId) ?? none;
  }

  get size(): number {
    return this.#entries.length;
  }

  get waiting(): number {
    return this.#entries.filter((e) => e.state === "waiting").length;
  }

  isSending(id: string): boolean {
    for (const entry of this.#inFlight.values()) if (entry === id) return true;
    return false;
  }

  async add(e: NewEntry): Promise<OutboxEntry> {
    if (!this.#userId) throw new ChatError({ code: "unauthenticated", message: "nobody is signed in", retryable: false });
    const now = this.#options.now?.() ?? Date.now();
    this.#lastOrder = Math.max(this.#lastOrder + 1, now, ...this.#entries.map((other) => other.order + 1));
    const entry: OutboxEntry = {
      ...e, id: newId(), userId: this.#userId, createdAt: new Date(now).toISOString(),
      order: this.#lastOrder, state: "waiting", attempts: 0,
    };
    this.#entries.push(entry);
    this.#update(entry.conversationId);
    await this.#store(entry);
    this.#pump(entry.conversationId);
    return entry;
  }

  /** Sends a failed one again, with the same id. */
  async retry(id: string): Promise<void> {
    const entry = this.#find(id);
    if (entry?.state !== "failed") return;
    await this.#replace(entry, { state: "waiting", error: undefined });
    this.#clearBackoff(entry.conversationId);
    this.#pump(entry.conversationId);
  }

  /** Gives it up. One that is being sent may arrive all the same, so it stays. */
  async discard(id: string): Promise<boolean> {
    const entry = this.#find(id);
    if (!entry || this.isSending(id)) return false;
    await this.#remove(entry);
    this.#pump(entry.conversationId);
    return true;
  }

  /** The connection is there and synced: what waits goes out at once. */
  open(): void {
    this.#open = true;
    for (const conversation of [...this.#timers.keys()]) this.#clearBackoff(conversation);
    this.#pumpAll();
  }

  close(): void {
    this.#open = false;
  }

  /** A message of the user's own came another way (sync, another tab): it needs no sending. */
  arrived(m: Message): void {
    const entry = this.#find(m.clientMsgId);
    if (entry && entry.conversationId === m.conversationId && entry.userId === m.senderId) void this.#remove(entry);
  }

  /** The conversation has another id now: what waits or has failed in it goes there. */
  async move(from: string, to: string): Promise<void> {
    for (const entry of this.in(from)) {
      if (this.isSending(entry.id)) continue; // it fails, and can be discarded
      this.#clearBackoff(from);
      await this.#replace(entry, { conversationId: to, state: "waiting", error: undefined, replyToSeq: undefined });
      this.#update(to);
    }
    this.#pump(to);
  }

  stop(): void {
    this.close();
    for (const timer of this.#timers.values()) clearTimeout(timer);
    this.#timers.clear();
  }

  #pumpAll(): void {
    for (const conversation of this.#lists.keys()) this.#pump(conversation);
  }

  #pump(conversation: string): void {
    if (!this.#open || this.#inFlight.has(conversation) || this.#timers.has(conversation)) return;
    const entry = this.in(conversation).find((e) => e.state === "waiting");
    if (!entry) return;
    this.#inFlight.set(conversation, entry.id);
    this.#options.changed(conversation);
    void this.#try(entry);
  }

  async #try(entry: OutboxEntry): Promise<void> {
    const conversation = entry.conversationId;
    try {
      const message = await this.#options.send(entry);
      this.#failures.delete(conversation);
      this.#inFlight.delete(conversation);
      // The message is shown before the entry goes, so that the page never shows neither.
      this.#options.sent(message, entry);
      await this.#remove(entry);
    } catch (thrown) {
      const error = ChatError.from(thrown);
      // First of all: whoever adds a message meanwhile must not start the next try.
      if (error.retryable) this.#backOff(conversation, error.retryAfterMs);
      this.#inFlight.delete(conversation);
      await this.#failed(entry, error);
    }
    this.#pump(conversation);
  }

  async #failed(entry: OutboxEntry, error: ChatError): Promise<void> {
    if (!this.#find(entry.id)) return;
    await this.#replace(entry, {
      state: error.retryable ? "waiting" : "failed",
      attempts: entry.attempts + 1,
      error: { code: error.code, message: error.message },
    });
  }

  #backOff(conversation: string, retryAfterMs: number | undefined): void {
    const failures = (this.#failures.get(conversation) ?? 0) + 1;
    this.#failures.set(conversation, failures);
    const ceiling = Math.min(maxBackoffMs, firstBackoffMs * 2 ** (failures - 1));
    const wait = Math.max(retryAfterMs ?? 0, ceiling * (0.5 + 0.5 * (this.#options.random ?? Math.random)()));
    this.#timers.set(
      conversation,
      setTimeout(() => {
        this.#timers.delete(conversation);
        this.#pump(conversation);
      }, wait),
    );
  }

  #clearBackoff(conversation: string): void {
    clearTimeout(this.#timers.get(conversation));
    this.#timers.delete(conversation);
    this.#failures.delete(conversation);
  }

  #find(id: string): OutboxEntry | undefined {
    return this.#entries.find((e) => e.id === id);
  }

  async #replace(entry: OutboxEntry, change: Partial<OutboxEntry>): Promise<void> {
    const next = { ...entry, ...change };
    this.#entries = this.#entries.map((e) => (e.id === entry.id ? next : e));
    this.#update(entry.conversationId);
    await this.#store(next);
  }

  async #remove(entry: OutboxEntry): Promise<void> {
    this.#entries = this.#entries.filter((e) => e.id !== entry.id);
    this.#update(entry.conversationId);
    try {
      await this.#options.store.remove(entry.id);
    } catch (e) {
      // It will be sent once more after a reload, and be recognised as a repeat.
      this.#options.storeFailed(e);
    }
  }

  async #store(entry: OutboxEntry): Promise<void> {
    try {
      await this.#options.store.put(entry);
    } catch (e) {
      this.#options.storeFailed(e);
    }
  }

  #update(conversation: string): void {
    const list = this.#entries.filter((e) => e.conversationId === conversation);
    if (list.length > 0) this.#lists.set(conversation, list);
    else this.#lists.delete(conversation);
    this.#options.changed(conversation);
  }
}

const none: readonly OutboxEntry[] = [];

/** A random UUID. crypto.randomUUID exists in secure contexts only; a gateway in a local network has none. */
export function newId(): string {
  if (typeof crypto.randomUUID === "function") return crypto.randomUUID();
  const b = crypto.getRandomValues(new Uint8Array(16));
  b[6] = (b[6]! & 0x0f) | 0x40;
  b[8] = (b[8]! & 0x3f) | 0x80;
  const hex = [...b].map((x) => x.toString(16).padStart(2, "0")).join("");
  return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-${hex.slice(12, 16)}-${hex.slice(16, 20)}-${hex.slice(20)}`;
}
