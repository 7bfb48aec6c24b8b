import type { WireError } from "./types.js";

/**
 * Every failure that the library reports: what the gateway answered, or a code of
 * its own: `timeout` (no answer came; the outcome is unknown, so a repeat with the
 * same clientMsgId is the right thing) and `offline` (there is no connection).
 */
export class ChatError extends Error {
  readonly code: string;
  readonly retryable: boolean;
  readonly retryAfterMs?: number;
  readonly field?: string;

  constructor(e: WireError) {
    super(e.message);
    this.name = "ChatError";
    this.code = e.code;
    this.retryable = e.retryable;
    this.retryAfterMs = e.retryAfterMs;
    this.field = e.field;
  }

  static timeout(): ChatError {
    return new ChatError({ code: "timeout", message: "no answer came in time", retryable: true });
  }

  static offline(): ChatError {
    return new ChatError({ code: "offline", message: "there is no connection", retryable: true });
  }

  /** Makes a ChatError of anything that was thrown. */
  static from(thrown: unknown): ChatError {
    if (thrown instanceof ChatError) return thrown;
    const message = thrown instanceof Error ? thrown.message : String(thrown);
    return new ChatError({ code: "internal", message, retryable: true });
  }
}
