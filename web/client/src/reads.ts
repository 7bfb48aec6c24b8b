import type { Book } from "./book.js";
import { ChatError } from "./errors.js";
import type { Wire } from "./wire.js";

/** Reads that come together go out as one. */
const gatherMs = 80;
const retryMs = 2000;

/**
 * Tells the gateway how far its user has read: forward only, several reads as one,
 * again after a reconnect if the answer was lost. The page shows it at once.
 */
export class ReadReporter {
  #wanted = new Map<string, number>();
  #timers = new Map<string, ReturnType<typeof setTimeout>>();

  constructor(
    private readonly wire: Wire,
    private readonly book: Book,
    private readonly failed: (e: ChatError) => void,
  ) {}

  read(conversationId: string, seq: number): void {
    const entry = this.book.get(conversationId);
    // What is not held can't have been read.
    const upTo = Math.min(seq, entry?.timeline.heldSeq ?? 0);
    if (!entry || upTo <= entry.conversation.lastReadSeq) return;
    this.book.read(entry, upTo);
    this.#wanted.set(conversationId, upTo);
    this.#later(conversationId, gatherMs);
  }

  /** What was read was of another history. */
  forget(conversationId: string): void {
    this.#wanted.delete(conversationId);
  }

  /** The connection is back. */
  resume(): void {
    for (const id of this.#wanted.keys()) this.#later(id, 0);
  }

  stop(): void {
    for (const timer of this.#timers.values()) clearTimeout(timer);
    this.#timers.clear();
    this.#wanted.clear();
  }

  #later(id: string, ms: number): void {
    if (this.#timers.has(id)) return;
    this.#timers.set(id, setTimeout(() => {
      this.#timers.delete(id);
      void this.#tell(id);
    }, ms));
  }

  async #tell(conversationId: string): Promise<void> {
    const seq = this.#wanted.get(conversationId);
    if (seq === undefined) return;
    try {
      const entry = this.book.get(conversationId);
      const { lastReadSeq } = await this.wire.request("message:read", { conversationId, seq });
      if (this.#wanted.get(conversationId) === seq) this.#wanted.delete(conversationId);
      if (entry && entry === this.book.get(conversationId)) this.book.read(entry, lastReadSeq);
    } catch (thrown) {
      const error = ChatError.from(thrown);
      if (error.code === "offline") return; // resume sends it
      if (error.retryable) return this.#later(conversationId, error.retryAfterMs ?? retryMs);
      this.#wanted.delete(conversationId);
      this.failed(error);
    }
  }
}
