/**
 * Brings what was missed. After each connect: the list of conversations (all of it
 * the first time, its newest page later), then sync from the last seq of each, page by
 * page; what doesn't fit comes by history. A gap that shows up in between is closed
 * the same way. What has arrived is confirmed with message:delivered, up to the
 * first gap and never beyond.
 *
 * Each position names its message's id, and all of them the epoch that they are of: after a
 * restored backup the gateway says what is of another history. That is dropped and told anew.
 */
import type { Book, BookEntry } from "./book.js";
import { ChatError } from "./errors.js";
import type { Message, SyncedConversation, SyncPosition } from "./types.js";
import type { Wire } from "./wire.js";

export interface SyncerOptions {
  wire: Wire;
  book: Book;
  /** Messages that sync or history brought behind what was held, oldest first. */
  arrived: (entry: BookEntry, messages: readonly Message[]) => void;
  /** The connection is up to date, with this epoch. */
  synced: (epoch: string | undefined) => void;
  /** The epoch that what is held is of, if that is known. */
  epoch: () => string | undefined;
  /** What is held of these conversations is of another history: it is dropped. */
  reset: (conversationIds: readonly string[]) => void;
  /** A conversation is not the user's, or no longer. */
  gone: (conversationId: string) => void;
  failed: (error: ChatError) => void;
}

const retryMs = 2000;

export class Syncer {
  #round = 0; // a later connect makes earlier rounds stop
  #listed = false;
  #syncing = false;
  #closing = new Set<BookEntry>();
  #confirmed = new Map<string, number>();
  #timers = new Set<ReturnType<typeof setTimeout>>();
  readonly #o: SyncerOptions;

  constructor(options: SyncerOptions) {
    this.#o = options;
  }

  /** Runs after each connect; repeats by itself while the connection stands. */
  async run(): Promise<void> {
    const round = ++this.#round;
    this.#syncing = true;
    try {
      await this.#list(round);
      const epoch = await this.#sync(round);
      if (round !== this.#round) return;
      this.#syncing = false;
      this.#o.synced(epoch);
      for (const id of this.#o.book.ids()) this.#closeIfGap(id);
    } catch (thrown) {
      if (round !== this.#round) return;
      this.#syncing = false;
      const error = ChatError.from(thrown);
      if (error.code === "offline") return; // the next connect begins anew
      this.#o.failed(error);
      this.#again(error.retryAfterMs ?? retryMs, () => {
        if (round === this.#round && this.#o.wire.connected) void this.run();
      });
    }
  }

  /** Begins from nothing: what was held is of another history. */
  restart(): void {
    this.#round++;
    this.#listed = false;
    this.#syncing = false;
    this.#confirmed.clear();
    this.stop();
    if (this.#o.wire.connected) void this.run();
  }

  /** What was told of a conversation is void. */
  forget(id: string): void {
    this.#confirmed.delete(id);
  }

  stop(): void {
    for (const timer of this.#timers) clearTimeout(timer);
    this.#timers.clear();
  }

  /** A live message came beyond what is held. While a sync runs, its pages may close the gap. */
  gap(entry: BookEntry): void {
    if (!this.#syncing) void this.#close(entry);
  }

  /** Tells the gateway what has arrived by another way than a live message. */
  confirm(entry: BookEntry): void {
    const { id } = entry.conversation;
    const seq = entry.timeline.heldSeq;
    if (seq < 1 || seq <= (this.#confirmed.get(id) ?? 0)) return;
    this.#o.wire.request("message:delivered", { conversationId: id, seq }).then(
      () => {
        if (this.#o.book.get(id) !== entry) return; // of another history
        this.#confirmed.set(id, Math.max(seq, this.#confirmed.get(id) ?? 0));
        this.#o.book.delivered(entry, seq);
      },
      (e: ChatError) => {
        // The next sync names the position, which confirms it too.
        if (!e.retryable) this.#o.failed(e);
      },
    );
  }

  async #list(round: number): Promise<void> {
    const gone = new Set(this.#o.book.ids());
    let cursor: string | undefined;
    do {
      const page = await this.#o.wire.request("conversations", cursor ? { cursor } : {});
      if (round !== this.#round) return;
      for (const c of page.conversations) {
        this.#o.book.put(c);
        gone.delete(c.id);
      }
      cursor = page.nextCursor ?? undefined;
    } while (cursor && !this.#listed);
    // What an earlier page kept and the whole list lacks is no longer the user's.
    if (!this.#listed) for (const id of gone) this.#o.gone(id);
    this.#listed = true;
  }

  /** Gives the epoch that what is held is of from now on. */
  async #sync(round: number): Promise<string | undefined> {
    const positions: Record<string, SyncPosition> = {};
    for (const id of this.#o.book.ids()) {
      const entry = this.#o.book.get(id);
      if (entry) positions[id] = { seq: entry.timeline.heldSeq, version: entry.conversation.version, id: entry.timeline.heldId };
    }
    const epoch = this.#o.epoch();
    for (let cursor: string | undefined; ; ) {
      const page = await this.#o.wire.request("sync", { positions, epoch, cursor });
      if (round !== this.#round) return undefined;
      for (const id of page.gone ?? []) this.#o.gone(id);
      const reset = page.conversations.filter((s) => s.reset).map((s) => s.conversation.id);
      if (page.reset) reset.push(...Object.keys(positions).filter((id) => !cursor && !reset.includes(id)));
      if (reset.length > 0) this.#o.reset(reset);
      for (const s of page.conversations) this.#synced(s);
      cursor = page.nextCursor ?? undefined;
      if (!cursor) return page.epoch;
    }
  }

  #synced(s: SyncedConversation): void {
    const { id } = s.conversation;
    const known = this.#o.book.get(id);
    // One that was reset begins where the user's devices end, as any that is opened for the first time.
    const entry = known ?? (s.reset ? this.#o.book.put(s.conversation) : this.#joined(s.conversation, s.messages));
    if (known) this.#o.book.put(s.conversation);
    for (const m of s.changes) this.#o.book.messageChanged(entry, m);
    this.#take(entry, s.messages, !s.hasMore);
    if (s.hasMore) void this.#close(entry);
  }

  /** A conversation that sync names first: its messages come from the user's joining on. */
  #joined(view: Parameters<Book["put"]>[0], messages: readonly Message[]): BookEntry {
    const first = messages[0]?.seq;
    return this.#o.book.put(first === undefined ? view : { ...view, lastDeliveredSeq: Math.min(view.lastDeliveredSeq, first - 1) });
  }

  #take(entry: BookEntry, messages: readonly Message[], complete: boolean): void {
    const before = entry.timeline.heldSeq;
    this.#o.book.after(entry, messages, complete);
    if (entry.timeline.heldSeq > before) {
      this.#o.arrived(entry, entry.timeline.messages.filter((m) => m.seq > before));
      this.confirm(entry);
    }
  }

  #closeIfGap(id: string): void {
    const entry = this.#o.book.get(id);
    if (entry?.timeline.hasGap) void this.#close(entry);
  }

  async #close(entry: BookEntry): Promise<void> {
    const { id } = entry.conversation;
    if (this.#closing.has(entry)) return;
    this.#closing.add(entry);
    try {
      for (let more = true; more; ) {
        const page = await this.#o.wire.request("history", { conversationId: id, afterSeq: entry.timeline.heldSeq });
        if (this.#o.book.get(id) !== entry) return; // it was dropped meanwhile
        more = page.hasMore && page.messages.length > 0;
        this.#take(entry, page.messages, !more);
      }
    } catch (thrown) {
      const error = ChatError.from(thrown);
      if (error.code !== "offline" && this.#o.book.get(id) === entry) {
        this.#o.failed(error);
        // Without a connection the next sync takes over.
        if (error.retryable) this.#again(error.retryAfterMs ?? retryMs, () => void this.#close(entry));
      }
    } finally {
      this.#closing.delete(entry);
    }
  }

  #again(ms: number, run: () => void): void {
    const timer = setTimeout(() => {
      this.#timers.delete(timer);
      run();
    }, ms);
    this.#timers.add(timer);
  }
}
