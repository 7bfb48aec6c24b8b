/** What a conversation's list shows, in order: days, the line before new messages, messages, what is on its way. */
import type { Message, OutboxEntry } from "../../client/src/index.js";

export type Item =
  | { kind: "day"; key: string; at: Date }
  | { kind: "divider"; key: string }
  | { kind: "message"; key: string; message: Message; first: boolean }
  | { kind: "entry"; key: string; entry: OutboxEntry; first: boolean };

/** Bubbles of one sender stand together unless so much time lies between. */
const groupMs = 5 * 60_000;

export function itemsOf(messages: readonly Message[], outbox: readonly OutboxEntry[], divider: number | undefined, self: string | undefined): Item[] {
  const items: Item[] = [];
  let day = "";
  let before: { sender: string; at: number } | undefined;
  let divided = divider === undefined;
  const next = (at: Date, sender: string): boolean => {
    if (at.toDateString() !== day) {
      day = at.toDateString();
      items.push({ kind: "day", key: `day ${day}`, at });
      before = undefined;
    }
    const first = !before || before.sender !== sender || at.getTime() - before.at > groupMs;
    before = { sender, at: at.getTime() };
    return first;
  };
  for (const message of messages) {
    let first = next(new Date(message.createdAt), message.senderId);
    if (!divided && message.seq >= divider!) {
      divided = true;
      // Not before one's own: whoever writes has seen what was there.
      if (message.senderId !== self) {
        items.push({ kind: "divider", key: "divider" });
        first = true;
      }
    }
    // A message of one's own keeps the key that it had in the outbox, so that its element stays.
    const key = message.senderId === self ? `own ${message.clientMsgId}` : `seq ${message.seq}`;
    items.push({ kind: "message", key, message, first });
  }
  const sent = new Set(items.map((i) => i.key));
  for (const entry of outbox) {
    const key = `own ${entry.id}`;
    if (sent.has(key)) continue;
    const last = messages.at(-1);
    const at = new Date(entry.createdAt);
    // This machine's clock may be behind the gateway's; the order on screen is the order of sending.
    const shown = last && at < new Date(last.createdAt) ? new Date(last.createdAt) : at;
    items.push({ kind: "entry", key, entry, first: next(shown, entry.userId) });
  }
  return items;
}
