/**
 * The rule for receipts: events may come in any order and any number, so a state
 * only moves forward. A page that hears sent, read, delivered shows sent, read, read.
 */
import type { Conversation, Member } from "./types.js";

export type Tick = "sent" | "delivered" | "read";

/** How far the others have a message of ours. Reading includes having. */
export function tickOf(seq: number, c: Pick<Conversation, "othersDeliveredSeq" | "othersReadSeq">): Tick {
  if (seq <= (c.othersReadSeq ?? 0)) return "read";
  if (seq <= (c.othersDeliveredSeq ?? 0)) return "delivered";
  return "sent";
}

/** The greater of two positions, either of which may be unknown. */
export function forward(a: number | undefined, b: number | undefined): number | undefined {
  if (a === undefined) return b;
  return b === undefined ? a : Math.max(a, b);
}

/**
 * What is known of a conversation when another view of it arrives. Views travel
 * beside events, so an older one may come later: no position moves back and no
 * older last message takes the place of a newer one.
 */
export function mergeConversation(old: Conversation | undefined, view: Conversation): Conversation {
  if (!old) return withUnread(view);
  const newer = view.lastSeq >= old.lastSeq ? view : old;
  return withUnread({
    ...view,
    lastMessage: newer.lastMessage ?? old.lastMessage ?? view.lastMessage,
    updatedAt: newer.updatedAt,
    lastSeq: Math.max(old.lastSeq, view.lastSeq),
    version: Math.max(old.version, view.version),
    firstSeq: Math.max(old.firstSeq, view.firstSeq),
    lastReadSeq: Math.max(old.lastReadSeq, view.lastReadSeq),
    lastDeliveredSeq: Math.max(old.lastDeliveredSeq, view.lastDeliveredSeq),
    ...othersForward(old, view),
  });
}

/**
 * The others' positions are the lowest of theirs: when the members change (a new
 * one has read nothing) the lowest may rightly be lower than before.
 */
function othersForward(old: Conversation, view: Conversation): Partial<Conversation> {
  if (old.memberCount !== view.memberCount) return {};
  return {
    othersDeliveredSeq: forward(old.othersDeliveredSeq, view.othersDeliveredSeq),
    othersReadSeq: forward(old.othersReadSeq, view.othersReadSeq),
  };
}

/** unread is a subtraction and nothing else. */
export function withUnread(c: Conversation): Conversation {
  return { ...c, unread: Math.max(0, c.lastSeq - c.lastReadSeq) };
}

/** The others' lowest positions, from the list of members. */
export function othersOf(members: Iterable<Member>, self: string): { delivered: number; read: number } | undefined {
  let delivered = Infinity;
  let read = Infinity;
  for (const m of members) {
    if (m.user.id === self) continue;
    delivered = Math.min(delivered, m.lastDeliveredSeq);
    read = Math.min(read, m.lastReadSeq);
  }
  return delivered === Infinity ? undefined : { delivered, read };
}
