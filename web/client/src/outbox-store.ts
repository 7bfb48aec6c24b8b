/** Where messages wait until the gateway has them: IndexedDB, or memory where there is none. */

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
  #db: Promise<IDBDatabase> | undefined;

  constructor(private readonly name = "xabar-outbox") {}

  async load(userId: string): Promise<OutboxEntry[]> {
    const entries = await this.#run<OutboxEntry[]>("readonly", (s) => s.index("userId").getAll(userId));
    return entries.sort((a, b) => a.order - b.order);
  }

  async put(entry: OutboxEntry): Promise<void> {
    await this.#run("readwrite", (s) => s.put(entry));
  }

  async remove(id: string): Promise<void> {
    await this.#run("readwrite", (s) => s.delete(id));
  }

  /** Resolves when the transaction is committed, not when the request is done: only then it outlives the page. */
  async #run<T>(mode: IDBTransactionMode, ask: (s: IDBObjectStore) => IDBRequest): Promise<T> {
    const db = await (this.#db ??= this.#open());
    return new Promise((resolve, reject) => {
      const tx = db.transaction("entries", mode, { durability: "strict" });
      const request = ask(tx.objectStore("entries"));
      tx.oncomplete = () => resolve(request.result as T);
      tx.onabort = tx.onerror = () => reject(tx.error ?? request.error);
    });
  }

  #open(): Promise<IDBDatabase> {
    const opened = new Promise<IDBDatabase>((resolve, reject) => {
      const request = indexedDB.open(this.name, 1);
      request.onupgradeneeded = () => {
        request.result.createObjectStore("entries", { keyPath: "id" }).createIndex("userId", "userId");
      };
      request.onerror = () => reject(request.error);
      request.onsuccess = () => {
        // Another tab with a newer version of the page must be able to upgrade.
        request.result.onversionchange = () => {
          request.result.close();
          this.#db = undefined;
        };
        resolve(request.result);
      };
    });
    opened.catch(() => (this.#db = undefined));
    return opened;
  }
}

/** IndexedDB where the page has it. */
export function defaultOutboxStore(): OutboxStore {
  return typeof indexedDB === "undefined" ? new MemoryOutboxStore() : new IndexedDBOutboxStore();
}
