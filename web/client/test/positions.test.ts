import { describe, expect, it } from "vitest";
import { Book } from "../src/book.js";
import { mergeConversation, tickOf, withUnread } from "../src/positions.js";
import type { PositionEvent } from "../src/types.js";
import { alice, bob, FakeGateway, room } from "./fake.js";

function book() {
  const g = new FakeGateway();
  for (let i = 0; i < 9; i++) g.add("x");
  const b = new Book(() => alice.id, () => {});
  return { g, b, entry: b.put(g.view()) };
}
const at = (userId: string, seq: number): PositionEvent => ({ conversationId: room, userId, seq, at: "" });

describe("receipts", () => {
  it("end at read in any order of events", () => {
    const orders = [["delivered", "read"], ["read", "delivered"], ["read", "delivered", "delivered", "read"]] as const;
    for (const order of orders) {
      const { b, entry } = book();
      const seen = order.map((kind) => {
        b.position(kind, at(bob.id, 5));
        return tickOf(5, entry.conversation);
      });
      expect(seen.at(-1)).toBe("read");
      expect(seen.indexOf("delivered")).not.toBeGreaterThan(seen.indexOf("read"));
    }
  });

  it("never move back", () => {
    const { b, entry } = book();
    b.position("read", at(bob.id, 7));
    b.position("read", at(bob.id, 3));
    b.position("delivered", at(bob.id, 2));
    expect(entry.conversation).toMatchObject({ othersReadSeq: 7, othersDeliveredSeq: 7 });
  });

  it("of the user's own other devices move its own unread", () => {
    const { b, entry } = book();
    expect(entry.conversation.unread).toBe(9);
    b.position("read", at(alice.id, 6));
    expect(entry.conversation).toMatchObject({ unread: 3, othersReadSeq: 0 });
  });

  it("of one member of a group need all the others", () => {
    const { g, b } = book();
    const carol = { id: "c", name: "Carol" };
    const entry = b.put({ ...g.view(), id: "g", kind: "group", memberCount: 3 });
    const e = { ...at(bob.id, 5), conversationId: "g" };
    expect(b.position("read", e)).toEqual({ needsMembers: true });
    b.setMembers(entry, [alice, bob, carol].map((user) => ({ user, role: "member", lastDeliveredSeq: 0, lastReadSeq: 0 })));
    b.position("read", e);
    expect(tickOf(5, entry.conversation)).toBe("sent");
    b.position("delivered", { ...e, userId: "c" });
    expect(tickOf(5, entry.conversation)).toBe("delivered");
    b.position("read", { ...e, userId: "c" });
    expect(tickOf(5, entry.conversation)).toBe("read");
  });
});

describe("views of a conversation", () => {
  it("may come late without taking anything back", () => {
    const { g } = book();
    const old = g.view();
    g.add("newer");
    g.positions = { read: 10, delivered: 10, othersRead: 4, othersDelivered: 6 };
    const merged = mergeConversation(withUnread(g.view()), old);
    expect(merged).toMatchObject({ lastSeq: 10, unread: 0, othersReadSeq: 4, othersDeliveredSeq: 6, lastReadSeq: 10 });
    expect(merged.lastMessage?.text).toBe("newer");
  });

  it("take the lower positions when somebody joined", () => {
    const { g } = book();
    g.positions.othersRead = 9;
    const merged = mergeConversation({ ...g.view(), memberCount: 2 }, { ...g.view(), memberCount: 3, othersReadSeq: 0 });
    expect(merged.othersReadSeq).toBe(0);
  });
});

describe("own sends", () => {
  it("read along when nothing unread lies before, and not otherwise", () => {
    const { g, b, entry } = book();
    const mine = g.add("mine", alice.id);
    b.sent(entry, mine);
    expect(entry.conversation.lastReadSeq).toBe(0);
    b.read(entry, 10);
    b.sent(entry, g.add("again", alice.id));
    expect(entry.conversation).toMatchObject({ lastReadSeq: 11, unread: 0 });
  });
});
