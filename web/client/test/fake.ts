/**
 * A gateway in memory for the library's tests: the contract's rules for one process,
 * as a socket that the library can hold. Answers come after a turn of the event
 * loop, as on a network.
 */
import type { SocketLike } from "../src/index.js";
import type { Conversation, Message } from "../src/types.js";

type Handler = (payload: any) => object | Promise<object> | undefined;

export const alice = { id: "00000000-0000-4000-8000-00000000000a", name: "Alice" };
export const bob = { id: "00000000-0000-4000-8000-00000000000b", name: "Bob" };
export const room = "01900000-0000-7000-8000-000000000001";

export class FakeGateway {
  messages: Message[] = [];
  calls: { event: string; payload: any }[] = [];
  acked: number[] = [];
  /** Overrides for the next calls of an event; undefined means: no answer ever. */
  next = new Map<string, Handler[]>();
  socket: FakeSocket | undefined;
  positions = { read: 0, delivered: 0, othersRead: 0, othersDelivered: 0 };
  hidden = false; // the conversation is not listed yet
  refuse: { code: string; message: string } | undefined;
  /** Of the history; undefined for a gateway that knows of none. */
  epoch: string | undefined;
  /** How many histories there were: ids of messages tell them apart. */
  #history = 1;
  /** The id that a direct conversation gets when it is opened; room's by default. */
  openedId: string | undefined;

  /** Goes back to an older state: the first n messages. What comes then is another history. */
  restore(n: number, epoch = this.epoch): void {
    this.messages = this.messages.slice(0, n);
    this.positions.read = Math.min(this.positions.read, n);
    this.positions.delivered = Math.min(this.positions.delivered, n);
    this.epoch = epoch;
    this.#history++;
  }

  add(text: string, senderId = bob.id, clientMsgId = `m${this.messages.length + 1}`, seq = this.lastSeq + 1): Message {
    const m: Message = {
      id: `id-${seq}-${this.#history}`, conversationId: room, seq, version: seq, senderId, clientMsgId, text,
      createdAt: new Date(Date.UTC(2026, 0, 1) + seq * 1000).toISOString(),
    };
    this.messages.push(m);
    return m;
  }

  get lastSeq(): number {
    return this.messages.at(-1)?.seq ?? 0;
  }

  view(): Conversation {
    const last = this.messages.at(-1);
    return {
      id: room, kind: "direct", title: "Bob", peer: bob, memberCount: 2, lastMessage: last, lastSeq: this.lastSeq,
      version: this.lastSeq, firstSeq: 1, lastReadSeq: this.positions.read, lastDeliveredSeq: this.positions.delivered,
      othersDeliveredSeq: this.positions.othersDelivered, othersReadSeq: this.positions.othersRead,
      unread: this.lastSeq - this.positions.read, updatedAt: last?.createdAt ?? "2026-01-01T00:00:00.000Z",
    };
  }

  /** Emits to the client, if it is connected. */
  emit(event: string, payload: unknown): void {
    if (!this.socket?.connected) return;
    if (event === "message") this.socket.fire(event, payload, () => this.acked.push((payload as Message).seq));
    else this.socket.fire(event, payload);
  }

  callsOf(event: string): any[] {
    return this.calls.filter((c) => c.event === event).map((c) => c.payload);
  }

  once(event: string, handler: Handler): void {
    this.next.set(event, [...(this.next.get(event) ?? []), handler]);
  }

  async answer(event: string, payload: any): Promise<object | undefined> {
    this.calls.push({ event, payload });
    const special = this.next.get(event)?.shift();
    if (special) return special(payload);
    return this.#usual(event, payload);
  }

  #usual(event: string, p: any): object {
    switch (event) {
      case "conversations":
        return { ok: true, conversations: this.hidden ? [] : [this.view()], unreadTotal: 0, nextCursor: null };
      case "sync": {
        const named = p.positions[room];
        const other = !!p.epoch && p.epoch !== this.epoch;
        const there = this.messages.find((m) => m.seq === named?.seq);
        const reset = !!named && (other || named.seq > this.lastSeq || named.version > this.lastSeq || (!!there && !!named.id && there.id !== named.id));
        const after = reset ? 0 : (named?.seq ?? 0);
        if (this.hidden) return { ok: true, conversations: [], epoch: this.epoch, gone: named && [room] };
        if (!reset) this.positions.delivered = Math.max(this.positions.delivered, named?.seq ?? 0);
        const news = this.messages.filter((m) => m.seq > after);
        if (news.length === 0 && named && !reset) return { ok: true, conversations: [], epoch: this.epoch };
        return {
          ok: true, epoch: this.epoch, reset: other || undefined,
          conversations: [{ conversation: this.view(), messages: news.slice(0, 50), changes: [], hasMore: news.length > 50, reset: reset || undefined }],
        };
      }
      case "history": {
        const limit = p.limit ?? 50;
        const found = p.afterSeq !== undefined
          ? this.messages.filter((m) => m.seq > p.afterSeq)
          : this.messages.filter((m) => m.seq < (p.beforeSeq ?? Infinity)).reverse();
        return { ok: true, messages: found.slice(0, limit), hasMore: found.length > limit, lastSeq: this.lastSeq };
      }
      case "message:send": {
        const known = this.messages.find((m) => m.clientMsgId === p.clientMsgId);
        return { ok: true, message: known ?? this.add(p.text, alice.id, p.clientMsgId), duplicate: !!known };
      }
      case "message:delivered":
        this.positions.delivered = Math.max(this.positions.delivered, p.seq);
        return { ok: true, lastDeliveredSeq: this.positions.delivered };
      case "message:read":
        this.positions.read = Math.max(this.positions.read, Math.min(p.seq, this.lastSeq));
        return { ok: true, lastReadSeq: this.positions.read, unread: this.lastSeq - this.positions.read };
      case "members":
        return {
          ok: true, nextCursor: null,
          members: [alice, bob].map((user) => ({ user, role: "member", lastDeliveredSeq: 0, lastReadSeq: 0 })),
        };
      case "conversation:open":
        this.hidden = false;
        return { ok: true, conversation: { ...this.view(), id: this.openedId ?? room }, created: true };
      case "presence":
        return { ok: true, presence: p.userIds.map((userId: string) => ({ userId, online: true, lastSeenAt: null })) };
      default:
        return { ok: false, error: { code: "unknown_event", message: "there is no such event", retryable: false } };
    }
  }
}

export class FakeSocket implements SocketLike {
  connected = false;
  active = false;
  #listeners = new Map<string, ((...args: any[]) => void)[]>();
  #pending = new Set<() => void>();
  tokens: string[] = [];

  constructor(
    private readonly gateway: FakeGateway,
    private readonly auth: (give: (auth: object) => void) => void,
  ) {
    gateway.socket = this;
  }

  on(event: string, listener: (...args: any[]) => void): void {
    this.#listeners.set(event, [...(this.#listeners.get(event) ?? []), listener]);
  }

  fire(event: string, ...args: unknown[]): void {
    for (const listener of this.#listeners.get(event) ?? []) listener(...args);
  }

  connect(): void {
    this.active = true;
    this.auth((auth) => {
      this.tokens.push((auth as { token: string }).token);
      if (this.gateway.refuse) {
        this.active = false;
        const e = Object.assign(new Error(this.gateway.refuse.message), { data: this.gateway.refuse });
        this.fire("connect_error", e);
        return;
      }
      this.connected = true;
      this.fire("connect");
      this.fire("session", {
        user: alice, serverTime: new Date().toISOString(), unreadTotal: 0, features: [], epoch: this.gateway.epoch,
        limits: {
          maxTextLength: 2000, pageLimit: 50, typingIntervalMs: 2000, typingExpiresMs: 3000, ackTimeoutMs: 1000, maxPayload: 1e6,
        },
      });
    });
  }

  disconnect(): void {
    this.active = false;
    this.drop("io client disconnect");
  }

  /** The connection breaks. */
  drop(reason: string): void {
    if (!this.connected) return;
    this.connected = false;
    for (const fail of [...this.#pending]) fail();
    this.fire("disconnect", reason);
  }

  timeout(ms: number) {
    return {
      emit: (event: string, payload: unknown, callback: (failed: unknown, answer?: unknown) => void) => {
        let done = false;
        const finish = (failed: unknown, answer?: unknown) => {
          if (done) return;
          done = true;
          this.#pending.delete(fail);
          clearTimeout(timer);
          callback(failed, answer);
        };
        const fail = () => finish(new Error("socket has been disconnected"));
        const timer = setTimeout(() => finish(new Error("operation has timed out")), ms);
        this.#pending.add(fail);
        void this.gateway.answer(event, payload).then((answer) => answer && finish(null, answer));
      },
    };
  }

  volatile = {
    emit: (event: string, payload: unknown) => {
      this.gateway.calls.push({ event, payload });
    },
  };
}
