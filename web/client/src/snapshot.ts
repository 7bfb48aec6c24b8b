/**
 * What a page keeps of the conversations for its next start: it shows them at once,
 * also without a connection, and syncs from there. The newest conversations and the
 * newest messages of each, for one user; nothing is lost when it is lost.
 */
import { openDatabase, transact } from "./indexeddb.js";
import type { Conversation, Message, User } from "./types.js";

export interface KeptConversation {
  conversation: Conversation;
  /** Rising, without a gap between lowSeq and heldSeq. */
  messages: readonly Message[];
  lowSeq: number;
  heldSeq: number;
}

export interface Snapshot {
  userId: string;
  /** Of which history it is; unknown in those that older pages kept. */
  epoch?: string;
  conversations: KeptConversation[];
  users: User[];
}

export interface SnapshotStore {
  load(userId: string): Promise<Snapshot | undefined>;
  save(snapshot: Snapshot): Promise<void>;
  remove(userId: string): Promise<void>;
}

/** Bounds of a snapshot. */
export const maxKeptConversations = 50;
export const maxKeptMessages = 50;
export const maxKeptUsers = 500;

export class MemorySnapshotStore implements SnapshotStore {
  #kept = new Map<string, Snapshot>();

  async load(userId: string): Promise<Snapshot | undefined> {
    return this.#kept.get(userId);
  }

  async save(snapshot: Snapshot): Promise<void> {
    this.#kept.set(snapshot.userId, structuredClone(snapshot));
  }

  async remove(userId: string): Promise<void> {
    this.#kept.delete(userId);
  }
}

export class IndexedDBSnapshotStore implements SnapshotStore {
  #db = openDatabase("xabar-snapshots", (db) => db.createObjectStore("snapshots", { keyPath: "userId" }));

  load(userId: string): Promise<Snapshot | undefined> {
    return transact(this.#db, "snapshots", "readonly", (s) => s.get(userId));
  }

  async save(snapshot: Snapshot): Promise<void> {
    await transact(this.#db, "snapshots", "readwrite", (s) => s.put(snapshot));
  }

  async remove(userId: string): Promise<void> {
    await transact(this.#db, "snapshots", "readwrite", (s) => s.delete(userId));
  }
}

export function defaultSnapshotStore(): SnapshotStore {
  return typeof indexedDB === "undefined" ? new MemorySnapshotStore() : new IndexedDBSnapshotStore();
}
