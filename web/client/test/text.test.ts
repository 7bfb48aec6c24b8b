import { describe, expect, it } from "vitest";
import { checkText, codePoints, textParts } from "../src/index.js";

describe("codePoints", () => {
  it.each([
    ["", 0], ["abc", 3], ["😀", 1], ["👨‍👩‍👧", 5], ["e\u0301", 2], ["\ud800", 1], ["a\udc00b", 3], ["😀".repeat(2000), 2000],
  ])("%j", (text, n) => expect(codePoints(text)).toBe(n));
});

describe("checkText", () => {
  it.each([
    ["hello", null],
    ["", "text_empty"],
    [" \n\t\u00a0\u0085\u2003", "text_empty"],
    ["\u200b", null], // zero width space is not White_Space
    ["a\0b", "invalid_text"],
    ["😀".repeat(2000), null],
    ["😀".repeat(2001), "text_too_long"],
  ])("%j", (text, code) => expect(checkText(text)).toBe(code));
});

describe("textParts", () => {
  const links = (text: string) => textParts(text).filter((p) => p.href).map((p) => p.text);

  it("keeps every character", () => {
    for (const text of ["", "see https://a.example/x, now", "http://a http://b", "<b>https://c.example</b>"]) {
      expect(textParts(text).map((p) => p.text).join("")).toBe(text);
    }
  });

  it("links http and https only", () => {
    expect(links("https://a.example/p?q=1#f and http://b.example")).toEqual(["https://a.example/p?q=1#f", "http://b.example"]);
    expect(links("javascript:alert(1) data:text/html,x file:///etc/passwd ftp://x mailto:a@b")).toEqual([]);
    expect(links("javascript:https://a.example")).toEqual(["https://a.example"]);
  });

  it("leaves closing punctuation and brackets outside", () => {
    expect(links("(see https://a.example/x). And https://a.example/wiki/X_(y)!")).toEqual([
      "https://a.example/x", "https://a.example/wiki/X_(y)",
    ]);
  });

  it("is not deceived by user names, quotes and direction overrides", () => {
    expect(links("https://bank.example@evil.example/")).toEqual([]);
    expect(links('https://a.example/"onmouseover="x')).toEqual(["https://a.example/"]);
    expect(links("https://a.example/\u202egnp.exe")).toEqual(["https://a.example/"]);
    expect(links("https://")).toEqual([]);
  });
});
