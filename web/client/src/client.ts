/** The whole client: see ../README.md. */
import { Book, type BookEntry } from "./book.js";
import { Emitter } from "./emitter.js";
import { ChatError } from "./errors.js";
import { defaultOutboxStore, type OutboxEntry, type OutboxStore } from "./outbox-store.js";
import { Outbox, type NewEntry } from "./outbox.js";
import { People } from "./people.js";
import { ReadReporter } from "./reads.js";
import { defaultSnapshotStore, maxKeptUsers, type SnapshotStore } from "./snapshot.js";
import { Syncer } from "./syncer.js";
import type { Contact, Conversation, Limits, Member, Message, Presence, Receipt, Session, User } from "./types.js";
import { TypingState, TypingThrottle } from "./typing.js";
import { Wire, type ConnectionState, type WireOptions } from "./wire.js";

export interface ClientOptions extends WireOptions {
  /**
   * Who the token is for. With it the outbox is shown before there is a connection,
   * and a session of another user is refused.
   */
  userId?: string;
  /** Where messages wait; IndexedDB by default. */
  outbox?: OutboxStore;
  /** Where the newest conversations are kept for the next start; IndexedDB by default. */
  snapshots?: SnapshotStore;
}

export interface ClientEvents {
  /** Something that the getters show has changed. Several changes in a row come as one. */
  change: void;
  connection: ConnectionState;
  session: Session;
  /** A message of somebody else that the page had not, live or after an outage. */
  message: { message: Message; live: boolean };
  /**
   * The gateway's database was restored from an older backup: what was held of these conversations
   * is dropped and told anew. Messages that the backup lacks are lost; the outbox is not.
   */
  reset: { conversationIds: readonly string[] };
  /** Something failed that no promise reports. The library goes on by itself. */
  error: ChatError | Error;
}

/** Changes are kept so long after they happen, several together. */
const saveAfterMs = 1000;

const defaultLimits: Limits = {
  maxTextLength: 2000, pageLimit: 50, typingIntervalMs: 2000, typingExpiresMs: 3000, ackTimeoutMs: 1000, maxPayload: 1e6,
};

/** Messages of conversations that are not known yet are kept for so many conversations. */
const maxStrangers = 50;

/** Single messages that were looked up are kept up to so many. */
const maxLookedUp = 500;

export class ChatClient {
  readonly events = new Emitter<ClientEvents>();
  /** The connection below: everything that goes by, and faults to provoke. */
  readonly wire: Wire;
  readonly #book: Book;
  readonly #outbox: Outbox;
  readonly #people: People;
  readonly #reads: ReadReporter;
  readonly #syncer: Syncer;
  readonly #typing: TypingState;
  readonly #throttle: TypingThrottle;
  #session: Session | undefined;
  #userId: string | undefined;
  #strangers = new Map<string, { message: Message; ack: () => void }[]>();
  #lookedUp = new Map<string, Message>();
  #loading = new Map<string, Promise<boolean>>();
  #membersAsked = new Set<string>();
  #announced = false;
  readonly #snapshots: SnapshotStore;
  #signedOut = false;
  #epoch: string | undefined; // of which history the book is; unknown at first
  #saving: ReturnType<typeof setTimeout> | undefined;
  #restored: Promise<void> = Promise.resolve();

  constructor(options: ClientOptions) {
    this.#userId = options.userId;
    this.#snapshots = options.snapshots ?? defaultSnapshotStore();
    const changed = () => this.#changed();
    const failed = (e: ChatError | Error) => this.events.emit("error", e);
    this.wire = new Wire(options);
    this.#book = new Book(() => this.#userId, changed);
    this.#people = new People(this.wire, changed, failed);
    this.#reads = new ReadReporter(this.wire, this.#book, failed);
    this.#typing = new TypingState(changed);
    this.#throttle = new TypingThrottle(defaultLimits.typingIntervalMs);
    this.#outbox = new Outbox({
      store: options.outbox ?? defaultOutboxStore(),
      send: async (e) => {
        const { message } = await this.wire.request("message:send", {
          conversationId: e.conversationId, clientMsgId: e.id, text: e.text, replyToSeq: e.replyToSeq,
        });
        return message;
      },
      sent: (m) => this.#sent(m),
      changed,
      storeFailed: (e) => failed(ChatError.from(e)),
    });
    this.#syncer = new Syncer({
      wire: this.wire,
      book: this.#book,
      arrived: (_, messages) => {
        for (const m of messages) this.#heard(m, false);
      },
      synced: (epoch) => this.#synced(epoch),
      epoch: () => this.#epoch,
      reset: (ids) => this.#drop(ids),
      gone: (id) => this.#gone(id),
      failed,
    });
    this.#listen();
  }

  // ---- life

  /**
   * Connects, and meanwhile shows what the last page kept and what waits in the
   * outbox. Connects again by itself until stop.
   */
  async start(): Promise<void> {
    if (this.#userId) this.#restored = this.#restore(this.#userId);
    this.wire.start();
    await this.#restored;
  }

  /** Disconnects and ends every timer. What waits in the outbox stays stored. */
  stop(): void {
    clearTimeout(this.#saving);
    this.#saving = undefined;
    this.#outbox.stop();
    this.#reads.stop();
    this.#syncer.stop();
    this.#typing.clear();
    this.wire.stop();
  }

  /** Removes what is kept of the conversations on this device. What waits in the outbox stays. */
  async signOut(): Promise<void> {
    this.stop();
    this.#signedOut = true;
    if (this.#userId) await this.#snapshots.remove(this.#userId);
  }

  // ---- what is known; the same object until it changes

  get connection(): ConnectionState {
    return this.wire.state;
  }

  /** The last session event; undefined before the first connect. */
  get session(): Session | undefined {
    return this.#session;
  }

  get userId(): string | undefined {
    return this.#userId;
  }

  get limits(): Limits {
    return this.#session?.limits ?? defaultLimits;
  }

  /** Newest activity first. */
  get conversations(): readonly Conversation[] {
    return this.#book.list;
  }

  conversation(id: string): Conversation | undefined {
    return this.#book.view(id);
  }

  /** The direct conversation with a user, if there is one. */
  directWith(userId: string): Conversation | undefined {
    return this.#book.list.find((c) => c.kind === "direct" && c.peer?.id === userId);
  }

  /** What this page holds of a conversation, rising in seq. */
  messages(conversationId: string): readonly Message[] {
    return this.#book.get(conversationId)?.timeline.messages ?? noMessages;
  }

  /** One message, if this page holds it or has looked it up. */
  messageAt(conversationId: string, seq: number): Message | undefined {
    return this.#book.get(conversationId)?.timeline.at(seq) ?? this.#lookedUp.get(`${conversationId} ${seq}`);
  }

  /** Whether there are older messages to load. */
  hasOlder(conversationId: string): boolean {
    const entry = this.#book.get(conversationId);
    return !!entry && entry.timeline.lowSeq > entry.conversation.firstSeq;
  }

  /** What is on its way out of a conversation, in order. */
  outbox(conversationId: string): readonly OutboxEntry[] {
    return this.#outbox.in(conversationId);
  }

  /** How many messages wait or have failed, in all conversations. */
  get outboxSize(): number {
    return this.#outbox.size;
  }

  /** How many messages go out as soon as there is a connection. */
  get waitingCount(): number {
    return this.#outbox.waiting;
  }

  isSending(entryId: string): boolean {
    return this.#outbox.isSending(entryId);
  }

  /** Who is typing. */
  typing(conversationId: string): readonly string[] {
    return this.#typing.in(conversationId);
  }

  members(conversationId: string): ReadonlyMap<string, Member> | undefined {
    return this.#book.get(conversationId)?.members;
  }

  user(id: string): User | undefined {
    return this.#people.user(id);
  }

  presence(userId: string): Presence | undefined {
    return this.#people.presence(userId);
  }

  get contacts(): readonly Contact[] | undefined {
    return this.#people.contacts;
  }

  // ---- what can be done

  /** Puts a message into the outbox: stored when the promise resolves, sent when there is a connection. */
  send(e: NewEntry): Promise<OutboxEntry> {
    return this.#outbox.add(e);
  }

  retry(entryId: string): Promise<void> {
    return this.#outbox.retry(entryId);
  }

  /** False when it is just being sent. */
  discard(entryId: string): Promise<boolean> {
    return this.#outbox.discard(entryId);
  }

  /** The user has seen everything up to and including seq. */
  markRead(conversationId: string, seq: number): void {
    this.#reads.read(conversationId, seq);
  }

  /** Call it at every key: it tells the others at most once in the gateway's interval. */
  type(conversationId: string): void {
    if (this.wire.connected && this.#throttle.allow(conversationId)) this.wire.volatile("typing", { conversationId });
  }

  /** Fetches the page before the oldest message. False when there is none. */
  loadOlder(conversationId: string): Promise<boolean> {
    const running = this.#loading.get(conversationId);
    if (running) return running;
    const loading = this.#loadOlder(conversationId).finally(() => this.#loading.delete(conversationId));
    this.#loading.set(conversationId, loading);
    return loading;
  }

  /** Fetches one message that messageAt does not know, such as one that was replied to. */
  async lookUp(conversationId: string, seq: number): Promise<Message | undefined> {
    const known = this.messageAt(conversationId, seq);
    if (known) return known;
    const page = await this.wire.request("history", { conversationId, beforeSeq: seq + 1, limit: 1 });
    const found = page.messages.find((m) => m.seq === seq);
    if (!found) return undefined;
    if (this.#lookedUp.size >= maxLookedUp) this.#lookedUp.clear();
    this.#lookedUp.set(`${conversationId} ${seq}`, found);
    this.#changed();
    return found;
  }

  /** Fetches a conversation's members, with their positions. */
  async loadMembers(conversationId: string): Promise<void> {
    const all: Member[] = [];
    let cursor: string | undefined;
    do {
      const page = await this.wire.request("members", { conversationId, cursor });
      all.push(...page.members);
      cursor = page.nextCursor ?? undefined;
    } while (cursor);
    for (const m of all) this.#people.learn(m.user);
    const entry = this.#book.get(conversationId);
    if (entry) this.#book.setMembers(entry, all);
  }

  loadContacts(): Promise<readonly Contact[]> {
    return this.#people.loadContacts();
  }

  /** Whose presence to follow, instead of those before: at most 200. */
  watchPresence(userIds: Iterable<string>): void {
    this.#people.watch(userIds);
  }

  async openDirect(userId: string): Promise<Conversation> {
    const { conversation } = await this.wire.request("conversation:open", { userId });
    return this.#put(conversation).conversation;
  }

  async createGroup(title: string, memberIds: string[]): Promise<Conversation> {
    const { conversation } = await this.wire.request("conversation:open", { title, memberIds });
    return this.#put(conversation).conversation;
  }

  /** For one message: who has it, who has read it, since when. */
  async receipts(conversationId: string, seq: number): Promise<Receipt[]> {
    const all: Receipt[] = [];
    let cursor: string | undefined;
    do {
      const page = await this.wire.request("receipts", { conversationId, seq, cursor });
      all.push(...page.receipts);
      cursor = page.nextCursor ?? undefined;
    } while (cursor);
    return all;
  }

  /** Drops a conversation that the user has left. */
  forget(conversationId: string): void {
    this.#book.remove(conversationId);
  }

  // ---- inside

  #listen(): void {
    const { incoming, events } = this.wire;
    events.on("state", (state) => {
      this.events.emit("connection", state);
      this.#changed();
    });
    // Sync names what is held, so what was kept must be there first.
    events.on("up", () => void this.#restored.then(() => this.#syncer.run()));
    events.on("down", () => {
      this.#outbox.close();
      this.#typing.clear();
    });
    incoming.on("session", (s) => this.#begin(s));
    incoming.on("message", ([m, ack]) => this.#live(m, ack));
    incoming.on("message:changed", (m) => {
      const entry = this.#book.get(m.conversationId);
      if (entry) this.#book.messageChanged(entry, m);
    });
    incoming.on("message:delivered", (e) => this.#position("delivered", e));
    incoming.on("message:read", (e) => this.#position("read", e));
    incoming.on("typing", (e) => {
      if (e.userId !== this.#userId) this.#typing.started(e.conversationId, e.userId, e.expiresInMs);
    });
    incoming.on("conversation", (c) => this.#put(c));
    incoming.on("conversation:left", (e) => this.forget(e.conversationId));
    incoming.on("presence", (p) => this.#people.heard(p));
  }

  async #restore(userId: string): Promise<void> {
    const failed = (e: unknown) => this.events.emit("error", ChatError.from(e));
    const kept = this.#snapshots.load(userId).catch(failed);
    await this.#outbox.load(userId);
    const snapshot = await kept;
    for (const user of snapshot?.users ?? []) this.#people.learn(user);
    if (snapshot && !this.#otherEpoch(snapshot.epoch)) {
      this.#epoch = snapshot.epoch;
      for (const c of snapshot.conversations) this.#book.restore(c);
    }
    this.#changed();
  }

  async #save(): Promise<void> {
    this.#saving = undefined;
    // Before the list is there this page knows less than the last one kept.
    if (!this.#userId || !this.#session || this.#signedOut || this.connection.status !== "online") return;
    const users = this.#people.users.slice(-maxKeptUsers);
    await this.#snapshots.save({ userId: this.#userId, epoch: this.#epoch, conversations: this.#book.keep(), users });
  }

  #begin(session: Session): void {
    if (this.#userId && this.#userId !== session.user.id) {
      this.stop();
      this.events.emit("error", new ChatError({ code: "forbidden", message: "the token is another user's", retryable: false }));
      return;
    }
    this.#userId = session.user.id;
    this.#session = session;
    this.#throttle.intervalMs = session.limits.typingIntervalMs;
    this.#people.learn(session.user);
    void this.#outbox.load(session.user.id);
    if (this.#otherEpoch(this.#epoch)) {
      // Before any message of the other history comes.
      this.#epoch = session.epoch;
      this.#drop(this.#book.ids());
      this.#syncer.restart();
    }
    this.events.emit("session", session);
    this.#changed();
  }

  /** Whether an epoch is known not to be the gateway's. */
  #otherEpoch(epoch: string | undefined): boolean {
    return !!epoch && !!this.#session?.epoch && epoch !== this.#session.epoch;
  }

  /** What is held of conversations is of another history. What waits in the outbox stays: it is sent as new. */
  #drop(conversationIds: readonly string[]): void {
    for (const id of conversationIds) {
      this.#book.reset(id);
      this.#reads.forget(id);
      this.#syncer.forget(id);
    }
    this.#lookedUp.clear();
    if (conversationIds.length > 0) this.events.emit("reset", { conversationIds });
  }

  /**
   * A conversation is not the user's any more. One with somebody that a restored backup does not
   * have yet is opened again if messages wait for it.
   */
  #gone(id: string): void {
    const c = this.#book.view(id);
    this.#book.remove(id);
    if (!c?.peer || this.#outbox.in(id).length === 0) return;
    this.openDirect(c.peer.id).then(
      (opened) => this.#outbox.move(id, opened.id),
      (e: unknown) => this.events.emit("error", ChatError.from(e)),
    );
  }

  #synced(epoch: string | undefined): void {
    this.#epoch = epoch ?? this.#epoch;
    for (const c of this.#book.list) this.#people.learn(c.peer);
    this.wire.synced();
    this.#outbox.open();
    this.#reads.resume();
    this.#people.resume();
  }

  #put(view: Conversation): BookEntry {
    this.#people.learn(view.peer);
    const entry = this.#book.put(view);
    const waiting = this.#strangers.get(view.id);
    this.#strangers.delete(view.id);
    for (const { message, ack } of waiting ?? []) this.#live(message, ack);
    return entry;
  }

  #live(m: Message, ack: () => void): void {
    const entry = this.#book.get(m.conversationId);
    if (!entry) return this.#stranger(m, ack);
    const how = this.#book.live(entry, m);
    if (how === "of another history") return this.#otherHistory(m, ack);
    ack();
    if (how === "known") return;
    this.#heard(m, true);
    if (how === "beyond a gap") this.#syncer.gap(entry);
  }

  #otherHistory(m: Message, ack: () => void): void {
    this.#drop([m.conversationId]);
    this.#stranger(m, ack);
  }

  /** A message of a conversation that is not known yet: its view is on the way, or is fetched. */
  #stranger(message: Message, ack: () => void): void {
    const id = message.conversationId;
    const waiting = this.#strangers.get(id);
    if (waiting) {
      waiting.push({ message, ack });
      return;
    }
    // Without an acknowledgement the gateway brings it again.
    if (this.#strangers.size >= maxStrangers) return;
    this.#strangers.set(id, [{ message, ack }]);
    this.wire.request("conversations", {}).then(
      ({ conversations }) => {
        for (const c of conversations) if (c.id === id) this.#put(c);
        this.#strangers.delete(id);
      },
      () => this.#strangers.delete(id), // the next sync brings it
    );
  }

  #heard(m: Message, live: boolean): void {
    this.#typing.stopped(m.conversationId, m.senderId);
    if (m.senderId === this.#userId) this.#outbox.arrived(m);
    else this.events.emit("message", { message: m, live });
  }

  #sent(m: Message): void {
    const entry = this.#book.get(m.conversationId);
    const how = entry && this.#book.sent(entry, m);
    if (how === "of another history") this.#otherHistory(m, () => {});
    else if (entry && how === "beyond a gap") this.#syncer.gap(entry);
  }

  #position(kind: "delivered" | "read", e: Parameters<Book["position"]>[1]): void {
    const { needsMembers } = this.#book.position(kind, e);
    if (!needsMembers || this.#membersAsked.has(e.conversationId)) return;
    this.#membersAsked.add(e.conversationId);
    this.loadMembers(e.conversationId)
      .catch((failure: ChatError) => this.events.emit("error", failure))
      .finally(() => this.#membersAsked.delete(e.conversationId));
  }

  async #loadOlder(conversationId: string): Promise<boolean> {
    const entry = this.#book.get(conversationId);
    if (!entry || !this.hasOlder(conversationId)) return false;
    const page = await this.wire.request("history", { conversationId, beforeSeq: entry.timeline.lowSeq });
    this.#book.before(entry, page.messages, page.hasMore);
    return page.messages.length > 0;
  }

  #changed(): void {
    if (this.#announced) return;
    this.#announced = true;
    queueMicrotask(() => {
      this.#announced = false;
      this.events.emit("change", undefined);
    });
    if (this.#saving || this.wire.state.status !== "online") return;
    this.#saving = setTimeout(() => {
      this.#save().catch((e: unknown) => this.events.emit("error", ChatError.from(e)));
    }, saveAfterMs);
  }
}

const noMessages: readonly Message[] = [];
