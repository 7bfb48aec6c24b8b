/** Where messages wait until the gateway has them: IndexedDB, or memory where there is none. */
import { openDatabase, transact } from "./indexeddb.js";

export interface OutboxEntry {
  /** The clientMsgId: the same on every try, so that no try can double the message. */
  id: string;
  userId: string;
  conversationId: string;
  text: string;
  replyToSeq?: number;
  /** By this machine's clock, for show; the gateway gives the order. */
  createdAt: string;
  /** Rising; entries of a conversation are sent in this order. */
  order: number;
  state: "waiting" | "failed";
  attempts: number;
  /** Why it failed, or why the last try did. */
  error?: { code: string; message: string };
}

export interface OutboxStore {
  /** The user's entries, in order. */
  load(userId: string): Promise<OutboxEntry[]>;
  put(entry: OutboxEntry): Promise<void>;
  remove(id: string): Promise<void>;
}

export class MemoryOutboxStore implements OutboxStore {
  #entries = new Map<string, OutboxEntry>();

  async load(userId: string): Promise<OutboxEntry[]> {
    return [...this.#entries.values()].filter((e) => e.userId === userId).sort((a, b) => a.order - b.order);
  }

  async put(entry: OutboxEntry): Promise<void> {
    this.#entries.set(entry.id, { ...entry });
  }

  async remove(id: string): Promise<void> {
    this.#entries.delete(id);
  }
}

/** One database per origin; users are told apart by an index. Opened at the first use. */
export class IndexedDBOutboxStore implements OutboxStore {
  readonly #db: () => Promise<IDBDatabase>;

  constructor(name = "xabar-outbox") {
    this.#db = openDatabase(name, (db) => db.createObjectStore("entries", { keyPath: "id" }).createIndex("userId", "userId"));
  }

  async load(userId: string): Promise<OutboxEntry[]> {
    const entries = await transact<OutboxEntry[]>(this.#db, "entries", "readonly", (s) => s.index("userId").getAll(userId));
    return entries.sort((a, b) => a.order - b.order);
  }

  async put(entry: OutboxEntry): Promise<void> {
    await transact(this.#db, "entries", "readwrite", (s) => s.put(entry), "strict");
  }

  async remove(id: string): Promise<void> {
    await transact(this.#db, "entries", "readwrite", (s) => s.delete(id));
  }
}

/** IndexedDB where the page has it. */
export function defaultOutboxStore(): OutboxStore {
  return typeof indexedDB === "undefined" ? new MemoryOutboxStore() : new IndexedDBOutboxStore();
}
