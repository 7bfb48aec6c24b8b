/**
 * The objects of the wire, as the gateway's contract names them. Times are RFC 3339
 * in UTC with milliseconds; a seq is a message's number inside its conversation,
 * from 1, rising, with holes possible.
 */

export interface User {
  id: string;
  externalId?: string;
  name: string;
  avatarUrl?: string;
}

export interface Message {
  id: string;
  conversationId: string;
  seq: number;
  version: number;
  senderId: string;
  clientMsgId: string;
  text: string;
  replyToSeq?: number;
  createdAt: string;
  editedAt?: string;
  deletedAt?: string;
}

export interface Conversation {
  id: string;
  kind: "direct" | "group";
  title: string;
  peer?: User;
  memberCount: number;
  lastMessage?: Message;
  lastSeq: number;
  version: number;
  /** The oldest message still kept and visible to the caller. */
  firstSeq: number;
  lastReadSeq: number;
  lastDeliveredSeq: number;
  /** The lowest positions among the others; absent in conversations of more than 32. */
  othersDeliveredSeq?: number;
  othersReadSeq?: number;
  unread: number;
  mutedUntil?: string;
  updatedAt: string;
}

export interface Member {
  user: User;
  role: "owner" | "admin" | "member";
  lastDeliveredSeq: number;
  lastReadSeq: number;
}

export interface Receipt {
  userId: string;
  deliveredAt: string | null;
  readAt: string | null;
  /** In conversations of more than 32 members only whether, not since when. */
  delivered?: boolean;
  read?: boolean;
}

export interface Presence {
  userId: string;
  online: boolean;
  lastSeenAt: string | null;
}

export interface Contact {
  user: User;
  online: boolean;
  lastSeenAt: string | null;
}

export interface Limits {
  maxTextLength: number;
  pageLimit: number;
  typingIntervalMs: number;
  typingExpiresMs: number;
  ackTimeoutMs: number;
  maxPayload: number;
}

export interface Session {
  user: User;
  serverTime: string;
  unreadTotal: number;
  limits: Limits;
  features: string[];
  /** Which history the gateway holds; another one after a backup was restored. Older gateways have none. */
  epoch?: string;
}

export interface PositionEvent {
  conversationId: string;
  userId: string;
  seq: number;
  at: string;
}

export interface TypingEvent {
  conversationId: string;
  userId: string;
  expiresInMs: number;
}

export interface ClosingEvent {
  code: "draining" | "token_expired" | "revoked" | "slow_consumer" | (string & {});
  retry: boolean;
  afterMs: number;
}

/** What the gateway answers when it refuses a request. */
export interface WireError {
  code: string;
  message: string;
  retryable: boolean;
  retryAfterMs?: number;
  field?: string;
}

export interface HistoryAnswer {
  messages: Message[];
  hasMore: boolean;
  lastSeq: number;
}

export interface SyncedConversation {
  conversation: Conversation;
  messages: Message[];
  changes: Message[];
  hasMore: boolean;
  /** What the page holds of it is of another history: it is told anew. */
  reset?: boolean;
}

export interface SyncPosition {
  seq: number;
  version: number;
  /** Of the message at seq. */
  id?: string;
}

export interface SyncAnswer {
  conversations: SyncedConversation[];
  nextCursor?: string | null;
  epoch?: string;
  /** The epoch that was named is another one: nothing that the page holds counts. */
  reset?: boolean;
  /** Conversations that were named and are not the user's, or no longer. */
  gone?: string[];
}

/** Each request event with its payload and its answer (beside `ok`). */
export interface Requests {
  "message:send": [
    { conversationId?: string; toUserId?: string; clientMsgId: string; text: string; replyToSeq?: number },
    { message: Message; duplicate: boolean },
  ];
  "message:delivered": [{ conversationId: string; seq: number }, { lastDeliveredSeq: number }];
  "message:read": [{ conversationId: string; seq: number }, { lastReadSeq: number; unread: number }];
  history: [
    { conversationId: string; beforeSeq?: number; afterSeq?: number; limit?: number },
    HistoryAnswer,
  ];
  sync: [{ positions: Record<string, SyncPosition>; cursor?: string; epoch?: string }, SyncAnswer];
  members: [
    { conversationId: string; cursor?: string; limit?: number },
    { members: Member[]; nextCursor: string | null },
  ];
  conversations: [
    { cursor?: string; limit?: number },
    { conversations: Conversation[]; unreadTotal: number; nextCursor: string | null },
  ];
  "conversation:open": [
    { userId: string } | { title: string; memberIds: string[] },
    { conversation: Conversation; created: boolean },
  ];
  receipts: [
    { conversationId: string; seq: number; cursor?: string },
    { receipts: Receipt[]; nextCursor: string | null },
  ];
  contacts: [{ cursor?: string; limit?: number }, { contacts: Contact[]; nextCursor: string | null }];
  presence: [{ userIds: string[] }, { presence: Presence[] }];
  "auth:refresh": [{ token: string }, { expiresAt: string | null }];
}

/** What the gateway emits. `message` alone comes with an acknowledgement. */
export interface ServerEvents {
  session: Session;
  message: Message;
  "message:changed": Message;
  "message:delivered": PositionEvent;
  "message:read": PositionEvent;
  typing: TypingEvent;
  unread: { total: number };
  conversation: Conversation;
  "conversation:left": { conversationId: string };
  presence: Presence;
  "session:closing": ClosingEvent;
}
