/** The gateway's database was restored from an older backup: nothing of two histories is mixed. */
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { ChatClient, MemoryOutboxStore, MemorySnapshotStore, type ClientOptions } from "../src/index.js";
import { alice, bob, FakeGateway, FakeSocket, room } from "./fake.js";

let client: ChatClient;
let g: FakeGateway;
let resets: (readonly string[])[];
let heard: string[];

function make(options: Partial<ClientOptions> = {}) {
  resets = [];
  heard = [];
  client = new ChatClient({
    token: () => "t", outbox: new MemoryOutboxStore(), snapshots: new MemorySnapshotStore(), answerTimeoutMs: 5000,
    socket: (auth) => new FakeSocket(g, auth), ...options,
  });
  client.events.on("reset", (e) => resets.push(e.conversationIds));
  client.events.on("message", ({ message }) => heard.push(message.text));
  return client;
}
const online = () => vi.waitFor(() => expect(client.connection.status).toBe("online"));
const texts = () => client.messages(room).map((m) => m.text);
const fill = (text: string, n: number) => Array.from({ length: n }, (_, i) => g.add(`${text} ${i + 1}`));
const names = (text: string, from: number, to: number) => Array.from({ length: to - from + 1 }, (_, i) => `${text} ${from + i}`);

/** A page that holds first 1 to 10 and is cut off; the gateway goes back to the first six of them. */
async function ahead(epochs: [string | undefined, string | undefined], options: Partial<ClientOptions> = {}) {
  g.epoch = epochs[0];
  fill("first", 10);
  await make(options).start();
  await online();
  await vi.waitFor(() => expect(g.positions.delivered).toBe(10));
  client.markRead(room, 10);
  await vi.advanceTimersByTimeAsync(1500); // reported, and kept
  g.socket!.drop("transport close");
  g.restore(6, epochs[1]);
}

beforeEach(() => {
  vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout", "Date"] });
  g = new FakeGateway();
});
afterEach(() => {
  client.stop();
  expect(vi.getTimerCount()).toBe(0);
  vi.useRealTimers();
});

describe("after a restore the page drops what is of another history", () => {
  for (const [name, epochs, grown] of [
    ["told by the epoch, and ends where the backup ends", ["A", "B"], 0],
    ["told by the epoch, and the seqs are given anew", ["A", "B"], 9],
    ["told by a position beyond the end", ["A", "A"], 2],
    ["told by the id at its position", ["A", "A"], 9],
    ["told by a gateway that has no epochs", [undefined, undefined], 9],
  ] as [string, [string | undefined, string | undefined], number][]) {
    it(name, async () => {
      await ahead(epochs);
      for (let i = 0; i < grown; i++) g.add(`second ${7 + i}`);
      const known = heard.length;
      g.socket!.connect();
      await online();
      await client.loadOlder(room);
      const want = [...names("first", 1, 6), ...names("second", 7, 6 + grown)];
      await vi.waitFor(() => expect(texts()).toEqual(want));
      expect(resets).toEqual([[room]]);
      expect(client.conversation(room)).toMatchObject({ lastSeq: 6 + grown, unread: grown, lastReadSeq: 6 });
      // Only what the user's devices have not had is news.
      expect(heard.slice(known)).toEqual(names("second", 7, 6 + grown));
      await vi.waitFor(() => expect(g.positions.delivered).toBe(6 + grown));
      expect(g.positions.read).toBe(6);
    });
  }

  it("reads and delivers in the new history, by its own seqs", async () => {
    await ahead(["A", "B"]);
    g.add("second 7");
    g.socket!.connect();
    await online();
    await vi.waitFor(() => expect(client.conversation(room)?.unread).toBe(1));
    client.markRead(room, 7);
    await vi.advanceTimersByTimeAsync(100);
    expect(g.positions.read).toBe(7);
    g.emit("message", g.add("second 8"));
    expect(texts().at(-1)).toBe("second 8");
  });

  it("does not report a read that was of the other history", async () => {
    g.epoch = "A";
    fill("first", 10);
    await make().start();
    await online();
    await vi.waitFor(() => expect(texts().length).toBe(10));
    client.markRead(room, 9);
    g.socket!.drop("transport close"); // before it was told
    g.restore(3, "B");
    for (let i = 4; i <= 12; i++) g.add(`second ${i}`);
    g.socket!.connect();
    await online();
    await vi.advanceTimersByTimeAsync(1000);
    expect(g.callsOf("message:read")).toEqual([]);
    expect(client.conversation(room)).toMatchObject({ unread: 12, lastReadSeq: 0 });
  });

  it("already when a live message comes whose seq it holds as another one", async () => {
    await ahead(["A", "A"]);
    g.once("sync", (p) => {
      // Before the answer, as on a busy server.
      g.emit("message", g.add("second 7"));
      return { ok: true, conversations: [{ conversation: g.view(), messages: g.messages, changes: [], hasMore: false, reset: true }], epoch: "A", seen: p };
    });
    g.socket!.connect();
    await online();
    await client.loadOlder(room);
    await vi.waitFor(() => expect(texts()).toEqual([...names("first", 1, 6), "second 7"]));
    expect(g.acked).toContain(7);
  });

  it("and begins where the user's devices end, in a long conversation too", async () => {
    g.epoch = "A";
    fill("first", 130);
    g.positions.delivered = 130;
    await make().start();
    await online();
    g.socket!.drop("transport close");
    g.restore(120, "B");
    for (let i = 121; i <= 190; i++) g.add(`second ${i}`);
    g.socket!.connect();
    await online();
    await vi.waitFor(() => expect(texts()).toEqual(names("second", 121, 190)));
    expect(heard).toEqual(names("second", 121, 190));
    await client.loadOlder(room);
    expect(texts()[0]).toBe("first 71");
  });

  it("and what it had kept for the next start", async () => {
    const snapshots = new MemorySnapshotStore();
    await ahead(["A", "B"], { userId: alice.id, snapshots });
    client.stop();
    fill("second", 8);
    await make({ userId: alice.id, snapshots }).start();
    await online();
    await client.loadOlder(room);
    await vi.waitFor(() => expect(texts()).toEqual([...names("first", 1, 6), ...names("second", 1, 8)]));
    await vi.advanceTimersByTimeAsync(1500);
    expect((await snapshots.load(alice.id))?.epoch).toBe("B");
  });
});

describe("what waits in the outbox", () => {
  it("is sent in the new history", async () => {
    await ahead(["A", "B"]);
    await client.send({ conversationId: room, text: "written offline" });
    g.socket!.connect();
    await online();
    await vi.waitFor(() => expect(client.outboxSize).toBe(0));
    expect(g.messages.map((m) => m.text)).toEqual([...names("first", 1, 6), "written offline"]);
  });

  it("goes to the conversation with the same person when the backup lacks the old one", async () => {
    await ahead(["A", "B"]);
    await client.send({ conversationId: room, text: "written offline", replyToSeq: 9 });
    g.hidden = true;
    g.openedId = "01900000-0000-7000-8000-000000000002";
    g.socket!.connect();
    await online();
    await vi.waitFor(() => expect(g.callsOf("message:send").at(-1)).toMatchObject({ conversationId: g.openedId, text: "written offline" }));
    expect(g.callsOf("message:send").at(-1).replyToSeq).toBeUndefined();
    expect(g.callsOf("conversation:open")).toEqual([{ userId: bob.id }]);
  });
});

it("keeps everything while the epoch is the same, and takes one for the first time", async () => {
  g.epoch = "A";
  fill("first", 3);
  await make().start();
  await online();
  await vi.waitFor(() => expect(texts()).toEqual(names("first", 1, 3)));
  g.socket!.drop("transport close");
  g.add("first 4");
  g.socket!.connect();
  await online();
  await vi.waitFor(() => expect(texts()).toEqual(names("first", 1, 4)));
  expect(resets).toEqual([]);
  expect(g.callsOf("sync").map((p) => p.epoch)).toEqual([undefined, "A"]);
});
