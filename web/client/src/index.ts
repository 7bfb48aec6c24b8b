/** Everything that a page needs; ../README.md shows how. */
export { ChatClient, type ClientEvents, type ClientOptions } from "./client.js";
export { ChatError } from "./errors.js";
export { IndexedDBOutboxStore, MemoryOutboxStore, type OutboxEntry, type OutboxStore } from "./outbox-store.js";
export { newId } from "./outbox.js";
export { tickOf, type Tick } from "./positions.js";
export { IndexedDBSnapshotStore, MemorySnapshotStore, type Snapshot, type SnapshotStore } from "./snapshot.js";
export { checkText, codePoints, textParts, MAX_TEXT_LENGTH, type TextPart } from "./text.js";
export type * from "./types.js";
export { VisibleMessages, windowHasFocus } from "./visible.js";
export { Wire, type ConnectionState, type Faults, type SocketLike, type TokenSource, type WireOptions, type WireRecord } from "./wire.js";
