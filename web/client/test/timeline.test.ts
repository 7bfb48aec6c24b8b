import { describe, expect, it } from "vitest";
import { Timeline } from "../src/timeline.js";
import type { Message } from "../src/types.js";

const m = (seq: number, version = seq): Message => ({
  id: String(seq), conversationId: "c", seq, version, senderId: "u", clientMsgId: `x${seq}`, text: `${seq}`,
  createdAt: "2026-01-01T00:00:00.000Z",
});
const range = (from: number, to: number) => Array.from({ length: to - from + 1 }, (_, i) => m(from + i));
const seqs = (t: Timeline) => t.messages.map((x) => x.seq);

describe("Timeline", () => {
  it("takes live messages in order and knows repeats", () => {
    const t = new Timeline(2);
    expect(t.live(m(3))).toBe("added");
    expect(t.live(m(3))).toBe("known");
    expect(t.live(m(1))).toBe("known"); // before what it holds: history brings it
    expect(seqs(t)).toEqual([3]);
  });

  it("claims nothing beyond a gap and joins what waited when it closes", () => {
    const t = new Timeline(2);
    expect(t.live(m(5))).toBe("beyond a gap");
    expect(t.live(m(6))).toBe("beyond a gap");
    expect([t.heldSeq, t.hasGap]).toEqual([2, true]);
    t.after([m(3), m(4)], false);
    expect(seqs(t)).toEqual([3, 4, 5, 6]);
    expect([t.heldSeq, t.hasGap]).toEqual([6, false]);
  });

  it("accepts holes when the gateway has no more", () => {
    const t = new Timeline(0);
    t.live(m(7));
    t.after([m(2), m(4)], true);
    expect(seqs(t)).toEqual([2, 4, 7]);
    expect(t.heldSeq).toBe(7);
  });

  it("misses 120 messages with pages of 50 while 121 comes live, and ends with 1 to 121", () => {
    const t = new Timeline(0);
    expect(t.live(m(121))).toBe("beyond a gap");
    t.after(range(1, 50), false);
    t.after(range(51, 100), false);
    t.after(range(101, 121), true);
    expect(seqs(t)).toEqual(range(1, 121).map((x) => x.seq));
  });

  it("grows backwards without doubles, to the beginning", () => {
    const t = new Timeline(100);
    t.live(m(101));
    t.before(range(51, 100).reverse(), true);
    t.before(range(40, 60).reverse(), true); // overlapping, as after a race
    expect(seqs(t)).toEqual(range(40, 101).map((x) => x.seq));
    t.before(range(3, 39).reverse(), false);
    expect([t.lowSeq, seqs(t)[0]]).toEqual([1, 3]);
  });

  it("bounds what waits beyond a gap", () => {
    const t = new Timeline(0);
    for (let seq = 10; seq < 2000; seq++) t.live(m(seq));
    t.after([], true);
    expect(seqs(t).length).toBe(200);
    expect(seqs(t).at(-1)).toBe(1999);
  });

  it("replaces a message by a newer version only", () => {
    const t = new Timeline(0);
    t.live(m(1));
    expect(t.changed({ ...m(1, 5), text: "edited" })).toBe(true);
    expect(t.changed({ ...m(1, 4), text: "older" })).toBe(false);
    expect(t.messages[0]!.text).toBe("edited");
  });

  it("finds messages by seq, those beyond a gap too", () => {
    const t = new Timeline(10);
    t.live(m(11));
    t.live(m(20));
    expect([t.at(11)?.seq, t.at(20)?.seq, t.at(12)]).toEqual([11, 20, undefined]);
  });
});
