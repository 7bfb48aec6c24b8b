import type { Message } from "./types.js";

/** How a message went into a timeline. */
export type Ingested = "added" | "known" | "beyond a gap" | "of another history";

/** How many messages that came beyond a gap are kept. The oldest are dropped: closing the gap brings them again. */
const maxBeyond = 200;

/**
 * The messages of one conversation that this page holds: one unbroken stretch of
 * seqs that grows at both ends, and, for a while, what came live beyond a gap.
 * `heldSeq` is what the page may claim to have; it never passes a gap.
 */
export class Timeline {
  #messages: readonly Message[] = [];
  #seqs = new Set<number>();
  #beyond = new Map<number, Message>();
  #low: number; // everything from here to #held that exists is in #messages
  #held: number;

  /**
   * Begins after a seq: what lies before is fetched when somebody scrolls there. Or
   * with what an earlier page held, from lowSeq to heldSeq without a gap.
   */
  constructor(heldSeq: number, lowSeq = heldSeq + 1, messages: readonly Message[] = []) {
    this.#held = heldSeq;
    this.#low = lowSeq;
    this.#messages = messages;
    for (const m of messages) this.#seqs.add(m.seq);
  }

  /** Rising in seq. A new array after each change, so that it can be compared. */
  get messages(): readonly Message[] {
    return this.#messages;
  }

  /** The page holds everything from lowSeq up to here. */
  get heldSeq(): number {
    return this.#held;
  }

  /** The id of the message at heldSeq, if this page holds it: it tells the gateway of which history that is. */
  get heldId(): string | undefined {
    const last = this.#messages[this.#messages.length - 1];
    return last?.seq === this.#held ? last.id : undefined;
  }

  get lowSeq(): number {
    return this.#low;
  }

  get hasGap(): boolean {
    return this.#beyond.size > 0;
  }

  at(seq: number): Message | undefined {
    if (!this.#seqs.has(seq)) return this.#beyond.get(seq);
    return this.#messages[this.#indexOf(seq)];
  }

  /** A message that came live, or as the answer to a send. */
  live(m: Message): Ingested {
    const known = this.at(m.seq);
    // The gateway never gives a seq twice: an older backup of its database was restored.
    if (known && known.id !== m.id) return "of another history";
    if (m.seq <= this.#held) return this.#insertHole(m);
    if (m.seq > this.#held + 1) {
      this.#beyond.set(m.seq, m);
      if (this.#beyond.size > maxBeyond) this.#beyond.delete(Math.min(...this.#beyond.keys()));
      return "beyond a gap";
    }
    this.#append([m]);
    return "added";
  }

  /**
   * A page of what comes after heldSeq, oldest first. Seqs that it leaves out are
   * holes. With `complete` there is no more: what waited beyond the gap joins.
   */
  after(page: readonly Message[], complete: boolean): void {
    this.#append(page.filter((m) => m.seq > this.#held));
    if (!complete) return;
    const rest = [...this.#beyond.values()].filter((m) => m.seq > this.#held).sort((a, b) => a.seq - b.seq);
    this.#beyond.clear();
    this.#append(rest);
  }

  /** A page of what comes before lowSeq, in any order. Without more, the beginning is reached. */
  before(page: readonly Message[], hasMore: boolean): void {
    const older = page.filter((m) => m.seq < this.#low && !this.#seqs.has(m.seq)).sort((a, b) => a.seq - b.seq);
    for (const m of older) this.#seqs.add(m.seq);
    if (older.length > 0) this.#messages = [...older, ...this.#messages];
    this.#low = hasMore && older.length > 0 ? older[0]!.seq : 1;
  }

  /** A message as it is now, if this page shows it and it is newer. */
  changed(m: Message): boolean {
    const beyond = this.#beyond.get(m.seq);
    if (beyond && beyond.version < m.version) this.#beyond.set(m.seq, m);
    if (!this.#seqs.has(m.seq)) return false;
    const i = this.#indexOf(m.seq);
    if (this.#messages[i]!.version >= m.version) return false;
    this.#messages = [...this.#messages.slice(0, i), m, ...this.#messages.slice(i + 1)];
    return true;
  }

  #append(rising: readonly Message[]): void {
    if (rising.length === 0) return;
    this.#messages = [...this.#messages, ...rising];
    for (const m of rising) this.#seqs.add(m.seq);
    this.#held = rising[rising.length - 1]!.seq;
    for (const seq of this.#beyond.keys()) if (seq <= this.#held) this.#beyond.delete(seq);
    const next = this.#beyond.get(this.#held + 1);
    if (next) this.#append([next]);
  }

  /** A seq that was taken for a hole, or one that is known already. */
  #insertHole(m: Message): Ingested {
    if (m.seq < this.#low || this.#seqs.has(m.seq)) return "known";
    const i = this.#messages.findIndex((other) => other.seq > m.seq);
    const at = i < 0 ? this.#messages.length : i;
    this.#messages = [...this.#messages.slice(0, at), m, ...this.#messages.slice(at)];
    this.#seqs.add(m.seq);
    return "added";
  }

  #indexOf(seq: number): number {
    let lo = 0;
    let hi = this.#messages.length;
    while (lo < hi) {
      const mid = (lo + hi) >> 1;
      if (this.#messages[mid]!.seq < seq) lo = mid + 1;
      else hi = mid;
    }
    return lo;
  }
}
