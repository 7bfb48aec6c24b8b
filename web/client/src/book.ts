/**
 * What this page knows of its user's conversations: each with its timeline and
 * members. Pure state: it asks nobody anything, so its rules can be read and tested
 * by themselves. Objects are replaced when they change, never altered, so that a
 * framework may compare them.
 */
import { forward, mergeConversation, othersOf, withUnread } from "./positions.js";
import { maxKeptConversations, maxKeptMessages, type KeptConversation } from "./snapshot.js";
import { Timeline, type Ingested } from "./timeline.js";
import type { Conversation, Member, Message, PositionEvent } from "./types.js";

export interface BookEntry {
  conversation: Conversation;
  readonly timeline: Timeline;
  /** By user id; undefined until fetched. */
  members?: ReadonlyMap<string, Member>;
  /** What it holds was of another history: only its name is shown, until it is put anew. */
  stale?: boolean;
}

export class Book {
  #entries = new Map<string, BookEntry>();
  #sorted: readonly Conversation[] | undefined;

  constructor(
    private readonly self: () => string | undefined,
    private readonly changed: (conversationId: string) => void,
  ) {}

  /** What counts: nothing of a conversation that waits to be told anew. */
  get(id: string): BookEntry | undefined {
    const entry = this.#entries.get(id);
    return entry?.stale ? undefined : entry;
  }

  /** As get, and of a conversation that waits to be told anew what is left of it. */
  view(id: string): Conversation | undefined {
    return this.#entries.get(id)?.conversation;
  }

  /** Newest activity first. The same array until something changes. */
  get list(): readonly Conversation[] {
    this.#sorted ??= [...this.#entries.values()]
      .map((e) => e.conversation)
      .sort((a, b) => compare(b.updatedAt, a.updatedAt) || compare(b.id, a.id));
    return this.#sorted;
  }

  ids(): string[] {
    return [...this.#entries.keys()];
  }

  /** Drops what is held of a conversation, of whose history it is not; its place in the list stays. */
  reset(id: string): void {
    const entry = this.#entries.get(id);
    if (!entry) return;
    this.#entries.set(id, { conversation: entry.conversation, timeline: new Timeline(0), stale: true });
    this.#touch(id);
  }

  /**
   * A view of a conversation. A new one begins where the user's devices end: what
   * was delivered to them is fetched when somebody scrolls there, what was not comes
   * by sync.
   */
  put(view: Conversation): BookEntry {
    const entry = this.get(view.id);
    if (!entry) {
      const made: BookEntry = { conversation: withUnread(view), timeline: new Timeline(view.lastDeliveredSeq) };
      this.#entries.set(view.id, made);
      this.#touch(view.id);
      return made;
    }
    if (entry.conversation.memberCount !== view.memberCount) entry.members = undefined;
    entry.conversation = mergeConversation(entry.conversation, view);
    this.#touch(view.id);
    return entry;
  }

  /** What an earlier page kept, unless it is known better already. */
  restore(kept: KeptConversation): void {
    const { conversation, messages, lowSeq, heldSeq } = kept;
    if (this.#entries.has(conversation.id)) return;
    this.#entries.set(conversation.id, { conversation, timeline: new Timeline(heldSeq, lowSeq, messages) });
    this.#touch(conversation.id);
  }

  /** What the next page should find. */
  keep(): KeptConversation[] {
    const fresh = this.list.filter(({ id }) => this.get(id));
    return fresh.slice(0, maxKeptConversations).map(({ id }) => {
      const { conversation, timeline } = this.get(id)!;
      const messages = timeline.messages.slice(-maxKeptMessages);
      const cut = messages.length < timeline.messages.length;
      return { conversation, messages, heldSeq: timeline.heldSeq, lowSeq: cut ? messages[0]!.seq : timeline.lowSeq };
    });
  }

  remove(id: string): void {
    if (this.#entries.delete(id)) this.#touch(id);
  }

  clear(): void {
    for (const id of this.ids()) this.remove(id);
  }

  /** A message that came live or as an answer. */
  live(entry: BookEntry, m: Message): Ingested {
    const how = entry.timeline.live(m);
    if (how === "added" || how === "beyond a gap") this.#advance(entry, m);
    return how;
  }

  after(entry: BookEntry, page: readonly Message[], complete: boolean): void {
    entry.timeline.after(page, complete);
    const last = entry.timeline.messages[entry.timeline.messages.length - 1];
    if (last) this.#advance(entry, last);
    else this.#touch(entry.conversation.id);
  }

  before(entry: BookEntry, page: readonly Message[], hasMore: boolean): void {
    entry.timeline.before(page, hasMore);
    this.#touch(entry.conversation.id);
  }

  messageChanged(entry: BookEntry, m: Message): void {
    const c = entry.conversation;
    const shown = entry.timeline.changed(m);
    const last = c.lastMessage?.seq === m.seq && c.lastMessage.version < m.version;
    if (last) entry.conversation = { ...c, lastMessage: m };
    if (shown || last) this.#touch(c.id);
  }

  /**
   * The answer to a send. The gateway moves the sender's own read position along
   * with it when nothing unread lies before.
   */
  sent(entry: BookEntry, m: Message): Ingested {
    const how = this.live(entry, m);
    if (how === "of another history") return how;
    if (entry.conversation.lastReadSeq >= m.seq - 1) this.read(entry, m.seq);
    return how;
  }

  /** The user itself has read up to seq. */
  read(entry: BookEntry, seq: number): void {
    const c = entry.conversation;
    if (seq <= c.lastReadSeq) return;
    entry.conversation = withUnread({ ...c, lastReadSeq: seq, lastDeliveredSeq: Math.max(c.lastDeliveredSeq, seq) });
    this.#touch(c.id);
  }

  delivered(entry: BookEntry, seq: number): void {
    const c = entry.conversation;
    if (seq <= c.lastDeliveredSeq) return;
    entry.conversation = { ...c, lastDeliveredSeq: seq };
    this.#touch(c.id);
  }

  /**
   * A receipt, of the user's own other device or of another member. It says whether
   * the members are needed to tell what it means for the ticks.
   */
  position(kind: "delivered" | "read", e: PositionEvent): { needsMembers: boolean } {
    const entry = this.get(e.conversationId);
    if (!entry) return { needsMembers: false };
    if (e.userId === this.self()) {
      if (kind === "read") this.read(entry, e.seq);
      else this.delivered(entry, e.seq);
      return { needsMembers: false };
    }
    if (entry.conversation.kind === "group" && !entry.members) return { needsMembers: true };
    if (entry.members) this.#moveMember(entry, kind, e);
    else this.#moveOthers(entry, kind === "read" ? e.seq : undefined, e.seq);
    return { needsMembers: false };
  }

  setMembers(entry: BookEntry, members: readonly Member[]): void {
    const known = entry.members;
    entry.members = new Map(members.map((m) => {
      const old = known?.get(m.user.id);
      return [m.user.id, old ? forwardMember(old, m) : m];
    }));
    this.#fromMembers(entry);
    this.#touch(entry.conversation.id);
  }

  #moveMember(entry: BookEntry, kind: "delivered" | "read", e: PositionEvent): void {
    const member = entry.members!.get(e.userId);
    if (!member) return;
    const moved = forwardMember(member, {
      ...member,
      lastDeliveredSeq: e.seq,
      lastReadSeq: kind === "read" ? e.seq : member.lastReadSeq,
    });
    entry.members = new Map(entry.members!).set(e.userId, moved);
    this.#fromMembers(entry);
    this.#touch(entry.conversation.id);
  }

  #fromMembers(entry: BookEntry): void {
    const others = entry.members && othersOf(entry.members.values(), this.self() ?? "");
    // Large groups have no ticks: their members' positions are not announced.
    if (others && entry.conversation.othersReadSeq !== undefined) this.#moveOthers(entry, others.read, others.delivered);
  }

  #moveOthers(entry: BookEntry, read: number | undefined, delivered: number): void {
    const c = entry.conversation;
    const othersReadSeq = forward(c.othersReadSeq, read);
    const othersDeliveredSeq = forward(forward(c.othersDeliveredSeq, delivered), othersReadSeq);
    if (othersReadSeq === c.othersReadSeq && othersDeliveredSeq === c.othersDeliveredSeq) return;
    entry.conversation = { ...c, othersReadSeq, othersDeliveredSeq };
    this.#touch(c.id);
  }

  #advance(entry: BookEntry, m: Message): void {
    const c = entry.conversation;
    if (m.seq >= (c.lastMessage?.seq ?? 0)) {
      entry.conversation = withUnread({
        ...c,
        lastMessage: m,
        lastSeq: Math.max(c.lastSeq, m.seq),
        // A version that leaves one out would hide a change from sync.
        version: m.version === c.version + 1 ? m.version : c.version,
        updatedAt: compare(m.createdAt, c.updatedAt) > 0 ? m.createdAt : c.updatedAt,
      });
    }
    this.#touch(c.id);
  }

  #touch(id: string): void {
    this.#sorted = undefined;
    this.changed(id);
  }
}

function forwardMember(old: Member, m: Member): Member {
  return {
    ...m,
    lastDeliveredSeq: Math.max(old.lastDeliveredSeq, m.lastDeliveredSeq),
    lastReadSeq: Math.max(old.lastReadSeq, m.lastReadSeq),
  };
}

function compare(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0;
}
