import "fake-indexeddb/auto";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { ChatError, IndexedDBOutboxStore, MemoryOutboxStore, type OutboxEntry, type OutboxStore } from "../src/index.js";
import { Outbox } from "../src/outbox.js";
import type { Message } from "../src/types.js";

const refuse = (code: string, retryable: boolean, retryAfterMs?: number) =>
  new ChatError({ code, message: code, retryable, retryAfterMs });

function setup(store: OutboxStore = new MemoryOutboxStore()) {
  const tries: OutboxEntry[] = [];
  const answers: ((e: OutboxEntry) => Promise<void>)[] = [];
  const sent: string[] = [];
  const problems: unknown[] = [];
  let seq = 0;
  const outbox = new Outbox({
    store,
    random: () => 1,
    send: async (e) => {
      tries.push(e);
      await answers.shift()?.(e);
      return { clientMsgId: e.id, conversationId: e.conversationId, senderId: e.userId, seq: ++seq } as Message;
    },
    sent: (_, e) => sent.push(e.text),
    changed: () => {},
    storeFailed: (e) => problems.push(e),
  });
  return { outbox, tries, answers, sent, problems, store };
}

describe("Outbox", () => {
  beforeEach(() => void vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout", "Date"] }));
  afterEach(() => void vi.useRealTimers());

  it("stores before it sends and empties when the gateway has it", async () => {
    const { outbox, tries, sent, store } = setup();
    await outbox.load("u");
    const entry = await outbox.add({ conversationId: "c", text: "one" });
    expect((await store.load("u")).map((e) => e.text)).toEqual(["one"]);
    expect(tries).toEqual([]);
    outbox.open();
    await vi.waitFor(() => expect(outbox.size).toBe(0));
    expect(sent).toEqual(["one"]);
    expect(tries[0]!.id).toBe(entry.id);
    expect(await store.load("u")).toEqual([]);
  });

  it("keeps the order within a conversation when a try fails, and the id on every try", async () => {
    const { outbox, tries, answers, sent } = setup();
    await outbox.load("u");
    outbox.open();
    answers.push(async () => { throw refuse("timeout", true); });
    await outbox.add({ conversationId: "c", text: "1" });
    await outbox.add({ conversationId: "c", text: "2" });
    await outbox.add({ conversationId: "other", text: "x" });
    await vi.advanceTimersByTimeAsync(499);
    expect([sent, tries.map((e) => e.text)]).toEqual([["x"], ["1", "x"]]);
    await vi.advanceTimersByTimeAsync(1);
    expect(sent).toEqual(["x", "1", "2"]);
    expect(tries[0]!.id).toBe(tries[2]!.id);
  });

  it("backs off exponentially up to 30 s and honours retryAfterMs", async () => {
    const { outbox, tries, answers } = setup();
    await outbox.load("u");
    outbox.open();
    for (let i = 0; i < 9; i++) answers.push(async () => { throw refuse("unavailable", true, i === 8 ? 60_000 : undefined); });
    await outbox.add({ conversationId: "c", text: "1" });
    const times: number[] = [];
    for (let start = Date.now(); tries.length < 10; ) {
      const n = tries.length;
      await vi.advanceTimersToNextTimerAsync();
      if (tries.length > n) times.push(Date.now() - start), (start = Date.now());
    }
    expect(times).toEqual([500, 1000, 2000, 4000, 8000, 16_000, 30_000, 30_000, 60_000]);
  });

  it("sends what waits at once after a reconnect", async () => {
    const { outbox, answers, sent } = setup();
    await outbox.load("u");
    outbox.open();
    answers.push(async () => { throw refuse("offline", true); });
    await outbox.add({ conversationId: "c", text: "1" });
    await vi.waitFor(() => expect(outbox.in("c")[0]!.attempts).toBe(1));
    outbox.close();
    await vi.advanceTimersByTimeAsync(60_000);
    expect(sent).toEqual([]);
    outbox.open();
    await vi.waitFor(() => expect(sent).toEqual(["1"]));
  });

  it("ends as failed with the reason when a retry does not help; others go on", async () => {
    const { outbox, answers, sent } = setup();
    await outbox.load("u");
    outbox.open();
    answers.push(async () => { throw refuse("text_too_long", false); });
    const entry = await outbox.add({ conversationId: "c", text: "long" });
    await outbox.add({ conversationId: "c", text: "next" });
    await vi.waitFor(() => expect(sent).toEqual(["next"]));
    expect(outbox.in("c")[0]).toMatchObject({ state: "failed", error: { code: "text_too_long" } });
    expect([outbox.size, outbox.waiting]).toEqual([1, 0]);
    await outbox.retry(entry.id);
    await vi.waitFor(() => expect(sent).toEqual(["next", "long"]));
  });

  it("does not send what has arrived another way, nor what was discarded", async () => {
    const { outbox, tries } = setup();
    await outbox.load("u");
    const a = await outbox.add({ conversationId: "c", text: "a" });
    const b = await outbox.add({ conversationId: "c", text: "b" });
    outbox.arrived({ clientMsgId: a.id, conversationId: "c", senderId: "somebody else" } as Message);
    expect(outbox.size).toBe(2);
    outbox.arrived({ clientMsgId: a.id, conversationId: "c", senderId: "u" } as Message);
    expect(await outbox.discard(b.id)).toBe(true);
    outbox.open();
    expect([outbox.size, tries.length]).toEqual([0, 0]);
  });

  it("goes on without storage and says so", async () => {
    const broken: OutboxStore = {
      load: () => Promise.reject(new Error("no disk")),
      put: () => Promise.reject(new Error("no disk")),
      remove: () => Promise.reject(new Error("no disk")),
    };
    const { outbox, sent, problems } = setup(broken);
    await outbox.load("u");
    outbox.open();
    await outbox.add({ conversationId: "c", text: "1" });
    await vi.waitFor(() => expect(sent).toEqual(["1"]));
    await vi.waitFor(() => expect(problems.length).toBe(3));
  });
});

describe.each([
  ["memory", () => new MemoryOutboxStore()],
  ["IndexedDB", () => new IndexedDBOutboxStore(`t${Math.random()}`)],
])("OutboxStore in %s", (_, make) => {
  it("keeps users apart and the order", async () => {
    const store = make();
    const entry = (id: string, userId: string, order: number): OutboxEntry =>
      ({ id, userId, order, conversationId: "c", text: id, createdAt: "", state: "waiting", attempts: 0 });
    await store.put(entry("b", "u", 2));
    await store.put(entry("a", "u", 1));
    await store.put(entry("x", "v", 1));
    await store.put({ ...entry("b", "u", 2), state: "failed" });
    expect((await store.load("u")).map((e) => [e.id, e.state])).toEqual([["a", "waiting"], ["b", "failed"]]);
    await store.remove("a");
    await store.remove("never there");
    expect((await store.load("u")).map((e) => e.id)).toEqual(["b"]);
  });
});

describe("a reload", () => {
  it("takes up what the last page left, with the same ids, in order", async () => {
    const name = `t${Math.random()}`;
    const first = setup(new IndexedDBOutboxStore(name));
    await first.outbox.load("u");
    const ids = [];
    for (const text of ["1", "2", "3"]) ids.push((await first.outbox.add({ conversationId: "c", text })).id);
    const second = setup(new IndexedDBOutboxStore(name));
    second.outbox.open();
    await second.outbox.load("u");
    await vi.waitFor(() => expect(second.sent).toEqual(["1", "2", "3"]));
    expect(second.tries.map((e) => e.id)).toEqual(ids);
  });
});
