/**
 * The gateway's rules for a message's text, so that a page can tell before it
 * sends. Length is counted in Unicode code points, as the gateway counts it: an
 * emoji outside the BMP is one, though `"😀".length` is 2.
 */

export const MAX_TEXT_LENGTH = 2000;

export function codePoints(text: string): number {
  let n = 0;
  for (let i = 0; i < text.length; i++) {
    const unit = text.charCodeAt(i);
    if (unit >= 0xd800 && unit < 0xdc00 && i + 1 < text.length) {
      const next = text.charCodeAt(i + 1);
      if (next >= 0xdc00 && next < 0xe000) i++;
    }
    n++;
  }
  return n;
}

/** Why a text can't be sent, by the gateway's own codes; null when it can. */
export function checkText(text: string, max = MAX_TEXT_LENGTH): "text_empty" | "text_too_long" | "invalid_text" | null {
  if (text.includes("\0")) return "invalid_text";
  // Unicode White_Space, which is what the gateway means by an empty text. \s has
  // U+FEFF in addition and lacks U+0085.
  if (!/[^\p{White_Space}]/u.test(text)) return "text_empty";
  return codePoints(text) > max ? "text_too_long" : null;
}

/** A piece of a text: plain, or an address that is safe to link to. */
export interface TextPart {
  text: string;
  href?: string;
}

const address = /\bhttps?:\/\/[^\s<>"'`\u0000-\u001f\u200b-\u200f\u2028-\u202f\u2066-\u2069]+/giu;

/**
 * Cuts a text into plain pieces and web addresses. Only http and https become
 * links; closing punctuation stays outside, and so do characters that change the
 * direction of writing, with which an address could look like another one.
 */
export function textParts(text: string): TextPart[] {
  const parts: TextPart[] = [];
  let end = 0;
  for (const match of text.matchAll(address)) {
    const shown = trimAddress(match[0]);
    const href = safeHref(shown);
    if (!href) continue;
    if (match.index > end) parts.push({ text: text.slice(end, match.index) });
    parts.push({ text: shown, href });
    end = match.index + shown.length;
  }
  if (end < text.length) parts.push({ text: text.slice(end) });
  return parts;
}

function trimAddress(s: string): string {
  for (;;) {
    const last = s[s.length - 1] ?? "";
    const open = last === ")" ? "(" : last === "]" ? "[" : "";
    const unbalanced = open !== "" && s.split(last).length > s.split(open).length;
    if (!unbalanced && !/[.,;:!?…»”’*_~]/u.test(last)) return s;
    s = s.slice(0, -1);
  }
}

function safeHref(s: string): string | undefined {
  try {
    const url = new URL(s);
    // A user name in an address only serves to deceive.
    if ((url.protocol === "http:" || url.protocol === "https:") && !url.username && !url.password) return url.href;
  } catch {
    // Not an address after all: it is shown as text.
  }
  return undefined;
}
