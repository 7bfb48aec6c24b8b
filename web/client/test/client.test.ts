import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { ChatClient, MemoryOutboxStore, MemorySnapshotStore, type ClientOptions } from "../src/index.js";
import { alice, bob, FakeGateway, FakeSocket, room } from "./fake.js";

let client: ChatClient;
let g: FakeGateway;
let errors: Error[];

function make(options: Partial<ClientOptions> = {}) {
  errors = [];
  client = new ChatClient({
    token: () => "t", outbox: new MemoryOutboxStore(), snapshots: new MemorySnapshotStore(), answerTimeoutMs: 5000,
    socket: (auth) => new FakeSocket(g, auth), ...options,
  });
  client.events.on("error", (e) => errors.push(e));
  return client;
}
const online = () => vi.waitFor(() => expect(client.connection.status).toBe("online"));
const seqs = () => client.messages(room).map((m) => m.seq);
const range = (from: number, to: number) => Array.from({ length: to - from + 1 }, (_, i) => from + i);

beforeEach(() => {
  vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout", "Date"] });
  g = new FakeGateway();
});
afterEach(() => {
  client.stop();
  expect(vi.getTimerCount()).toBe(0);
  vi.useRealTimers();
});

describe("catching up", () => {
  it("begins after what the user's devices have and confirms what came", async () => {
    for (let i = 0; i < 10; i++) g.add("x");
    g.positions.delivered = 4;
    await make().start();
    await online();
    expect(g.callsOf("sync")[0].positions[room].seq).toBe(4);
    expect(seqs()).toEqual(range(5, 10));
    await vi.waitFor(() => expect(g.callsOf("message:delivered")).toEqual([{ conversationId: room, seq: 10 }]));
    expect(client.conversation(room)).toMatchObject({ unread: 10, lastDeliveredSeq: 10 });
  });

  it("goes on with history when sync has more, while a live message comes", async () => {
    make();
    await client.start();
    await online();
    g.socket!.drop("transport close");
    for (let i = 0; i < 120; i++) g.add("x");
    g.once("sync", (p) => {
      g.emit("message", g.add("121"));
      return { ok: true, conversations: [{ conversation: g.view(), messages: g.messages.filter((m) => m.seq > p.positions[room].seq).slice(0, 50), changes: [], hasMore: true }] };
    });
    g.socket!.connect();
    await vi.waitFor(() => expect(seqs()).toEqual(range(1, 121)));
    await vi.waitFor(() => expect(g.positions.delivered).toBe(121));
    expect(new Set(g.acked)).toEqual(new Set([121]));
  });

  it("closes a gap that a live message shows and claims nothing before", async () => {
    g.add("1");
    await make().start();
    await online();
    g.add("2");
    const third = g.add("3");
    g.emit("message", third);
    expect(client.messages(room).length).toBe(1);
    await vi.waitFor(() => expect(seqs()).toEqual([1, 2, 3]));
    await vi.waitFor(() => expect(g.callsOf("message:delivered").at(-1)).toEqual({ conversationId: room, seq: 3 }));
  });

  it("tries again when sync fails, and closes gaps when history did", async () => {
    const no = () => ({ ok: false, error: { code: "unavailable", message: "later", retryable: true } });
    g.add("1");
    g.once("sync", no);
    await make().start();
    await vi.waitFor(() => expect(errors.length).toBe(1));
    expect(client.connection.status).toBe("syncing");
    await vi.advanceTimersByTimeAsync(2000);
    await online();
    g.add("2");
    g.once("history", no);
    g.emit("message", g.add("3"));
    await vi.waitFor(() => expect(errors.length).toBe(2));
    await vi.advanceTimersByTimeAsync(2000);
    await vi.waitFor(() => expect(seqs()).toEqual([1, 2, 3]));
  });

  it("shows a conversation that begins while the page is open", async () => {
    g.hidden = true;
    await make().start();
    await online();
    expect(client.conversations).toEqual([]);
    g.hidden = false;
    g.emit("message", g.add("hello"));
    await vi.waitFor(() => expect(client.conversation(room)?.unread).toBe(1));
    expect([seqs(), g.acked]).toEqual([[1], [1]]);
    expect(client.user(bob.id)?.name).toBe("Bob");
  });

  it("drops a group that the user was taken out of", async () => {
    await make().start();
    await online();
    expect(client.conversations.map((c) => c.id)).toContain(room);
    g.emit("conversation:left", { conversationId: room });
    await vi.waitFor(() => expect(client.conversations.map((c) => c.id)).not.toContain(room));
  });

  it("loads older pages once, to the beginning", async () => {
    for (let i = 0; i < 70; i++) g.add("x");
    g.positions.delivered = 70;
    await make().start();
    await online();
    expect(client.hasOlder(room)).toBe(true);
    await Promise.all([client.loadOlder(room), client.loadOlder(room)]);
    expect(seqs()).toEqual(range(21, 70));
    await client.loadOlder(room);
    expect(seqs()).toEqual(range(1, 70));
    expect(client.hasOlder(room)).toBe(false);
    expect(await client.loadOlder(room)).toBe(false);
  });
});

describe("what is kept", () => {
  it("is there at the next start without a connection, and is synced from", async () => {
    const snapshots = new MemorySnapshotStore();
    for (let i = 0; i < 60; i++) g.add("x");
    await make({ userId: alice.id, snapshots }).start();
    await online();
    await vi.waitFor(() => expect(seqs()).toEqual(range(1, 60)));
    client.markRead(room, 58);
    await vi.advanceTimersByTimeAsync(1500);
    client.stop();

    g.calls = [];
    const silent = new FakeGateway();
    await make({ userId: alice.id, snapshots, socket: (auth) => new FakeSocket(silent, auth) }).start();
    silent.once("conversations", () => undefined as never);
    expect(seqs()).toEqual(range(11, 60));
    expect(client.conversation(room)).toMatchObject({ unread: 2 });
    expect([client.hasOlder(room), client.user(bob.id)?.name]).toEqual([true, "Bob"]);
    client.stop();

    g.add("while away");
    await make({ userId: alice.id, snapshots }).start();
    await online();
    expect(g.callsOf("sync")[0].positions[room].seq).toBe(60);
    expect(seqs()).toEqual(range(11, 61));
  });

  it("is forgotten where the user is no longer a member, and with signing out", async () => {
    const snapshots = new MemorySnapshotStore();
    g.add("x");
    await make({ userId: alice.id, snapshots }).start();
    await online();
    await vi.advanceTimersByTimeAsync(1500);
    client.stop();
    g.hidden = true;
    g.messages = [];
    await make({ userId: alice.id, snapshots }).start();
    expect(client.conversations.length).toBe(1);
    await online();
    expect(client.conversations).toEqual([]);
    await client.signOut();
    expect(await snapshots.load(alice.id)).toBeUndefined();
  });
});

describe("sending", () => {
  it("goes through the outbox and ends in the timeline", async () => {
    await make({ userId: alice.id }).start();
    const entry = await client.send({ conversationId: room, text: "hi" });
    expect(client.outbox(room)[0]!.id).toBe(entry.id);
    await vi.waitFor(() => expect(client.outbox(room)).toEqual([]));
    expect(client.messages(room)[0]).toMatchObject({ seq: 1, clientMsgId: entry.id });
    expect(client.conversation(room)).toMatchObject({ lastReadSeq: 1, unread: 0 });
  });

  it("sends again when the answer is lost: one message, the same id", async () => {
    await make().start();
    await online();
    client.wire.setFaults({ loseNextAnswer: true });
    await client.send({ conversationId: room, text: "hi" });
    await vi.waitFor(() => expect(g.messages.length).toBe(1));
    await vi.advanceTimersByTimeAsync(6000);
    await vi.waitFor(() => expect(client.outbox(room)).toEqual([]));
    const sends = g.callsOf("message:send");
    expect([sends.length, g.messages.length, seqs().length]).toEqual([2, 1, 1]);
    expect(sends[0].clientMsgId).toBe(sends[1].clientMsgId);
  });

  it("does not send again what sync has brought", async () => {
    await make().start();
    await online();
    g.once("message:send", (p) => {
      g.add(p.text, alice.id, p.clientMsgId); // stored, then the connection breaks
      g.socket!.drop("transport close");
      return undefined as never;
    });
    await client.send({ conversationId: room, text: "hi" });
    await vi.waitFor(() => expect(g.messages.length).toBe(1));
    g.socket!.connect();
    await online();
    await vi.waitFor(() => expect(client.outbox(room)).toEqual([]));
    expect(seqs()).toEqual([1]);
    expect(g.callsOf("message:send").length).toBe(1);
  });

  it("waits while the connection is off and goes out with the next", async () => {
    await make().start();
    await online();
    client.wire.setFaults({ offline: true });
    await client.send({ conversationId: room, text: "1" });
    await client.send({ conversationId: room, text: "2" });
    expect(client.connection.status).toBe("offline");
    expect(client.outboxSize).toBe(2);
    client.wire.setFaults({ offline: false });
    await vi.waitFor(() => expect(g.messages.map((m) => m.text)).toEqual(["1", "2"]));
  });
});

describe("reading, typing, presence", () => {
  it("reports the highest read once, never what is not held", async () => {
    for (let i = 0; i < 5; i++) g.add("x");
    await make().start();
    await online();
    client.markRead(room, 2);
    client.markRead(room, 4);
    client.markRead(room, 3);
    expect(client.conversation(room)!.unread).toBe(1);
    await vi.advanceTimersByTimeAsync(100);
    expect(g.callsOf("message:read")).toEqual([{ conversationId: room, seq: 4 }]);
    client.markRead(room, 99);
    await vi.advanceTimersByTimeAsync(100);
    expect(g.callsOf("message:read").at(-1)).toEqual({ conversationId: room, seq: 5 });
  });

  it("reports a read that an outage swallowed", async () => {
    g.add("x");
    await make().start();
    await online();
    client.markRead(room, 1);
    g.socket!.drop("transport close");
    await vi.advanceTimersByTimeAsync(100);
    expect(g.callsOf("message:read")).toEqual([]);
    g.socket!.connect();
    await online();
    await vi.advanceTimersByTimeAsync(0);
    await vi.waitFor(() => expect(g.positions.read).toBe(1));
  });

  it("throttles typing and shows it until a message comes", async () => {
    await make().start();
    await online();
    for (let i = 0; i < 10; i++) client.type(room);
    expect(g.callsOf("typing").length).toBe(1);
    g.emit("typing", { conversationId: room, userId: bob.id, expiresInMs: 3000 });
    expect(client.typing(room)).toEqual([bob.id]);
    g.emit("message", g.add("done"));
    expect(client.typing(room)).toEqual([]);
  });

  it("follows presence again after a reconnect", async () => {
    await make().start();
    await online();
    client.watchPresence([bob.id, bob.id]);
    await vi.waitFor(() => expect(client.presence(bob.id)?.online).toBe(true));
    g.emit("presence", { userId: bob.id, online: false, lastSeenAt: "2026-01-01T00:00:00.000Z" });
    expect(client.presence(bob.id)?.online).toBe(false);
    g.socket!.drop("transport close");
    g.socket!.connect();
    await vi.waitFor(() => expect(g.callsOf("presence").length).toBe(2));
  });
});

describe("the connection", () => {
  it("asks once for a fresh token when the gateway refuses the old one", async () => {
    g.refuse = { code: "token_expired", message: "the token has expired" };
    const token = vi.fn((fresh: boolean) => {
      if (fresh) g.refuse = undefined;
      return fresh ? "new" : "old";
    });
    await make({ token }).start();
    await online();
    expect((g.socket as FakeSocket).tokens).toEqual(["old", "new"]);
  });

  it("says why it was refused and stops trying", async () => {
    g.refuse = { code: "unauthenticated", message: "a valid token is required" };
    await make().start();
    await vi.waitFor(() => expect(client.connection).toMatchObject({ status: "refused", code: "unauthenticated" }));
    expect((g.socket as FakeSocket).tokens.length).toBe(2);
  });

  it("does not come back when the session was revoked", async () => {
    await make().start();
    await online();
    g.emit("session:closing", { code: "revoked", retry: false, afterMs: 0 });
    g.socket!.active = false;
    g.socket!.drop("io server disconnect");
    expect(client.connection).toMatchObject({ status: "refused", code: "revoked" });
  });

  it("comes back when the server just ended the socket", async () => {
    await make().start();
    await online();
    g.socket!.active = false;
    g.socket!.drop("io server disconnect");
    expect(client.connection.status).toBe("offline");
    await vi.advanceTimersByTimeAsync(1000);
    await online();
  });

  it("refuses a session of somebody else", async () => {
    await make({ userId: bob.id }).start();
    await vi.waitFor(() => expect(errors.length).toBe(1));
    expect(client.connection.status).toBe("stopped");
  });

  it("delays in order and records what goes by", async () => {
    const records: string[] = [];
    make();
    client.wire.events.on("record", (r) => records.push(`${r.direction} ${r.kind} ${r.event}`));
    client.wire.setFaults({ delayMs: 300 });
    await client.start();
    for (let i = 0; i < 20; i++) await vi.advanceTimersByTimeAsync(300);
    await online();
    g.emit("message", g.add("1"));
    client.wire.setFaults({ delayMs: 0 });
    g.emit("message", g.add("2"));
    expect(seqs()).toEqual([]);
    await vi.advanceTimersByTimeAsync(299);
    expect(seqs()).toEqual([]);
    await vi.advanceTimersByTimeAsync(1);
    expect(seqs()).toEqual([1, 2]);
    expect(records).toContain("in answer sync");
    expect(records).toContain("out ack message");
    expect(records).toContain("none fault delayMs");
  });
});
